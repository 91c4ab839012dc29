//! Steps from terms.

use std::sync::Arc;

use serde_json::Value as Json;

use super::expression::{Bare, count, expression, max_rounds};
use super::parse::Term;
use super::{Graph, Mention, refuse};
use crate::diagnostic::{Diagnostic, Position};
use crate::graph::DEFAULT_MAX_ROUNDS;
use crate::program::{Control, ControlKind, NameId, Step};

const COLLECT_MODES: [&str; 4] = ["list", "last", "first", "flatten"];

pub(super) fn lower(terms: &[Term]) -> Result<Graph, Diagnostic> {
    let mut lowering = Lowering { mentions: Vec::new(), controls: 0 };
    let steps = lowering.pipeline(terms)?;
    Ok(Graph { mentions: lowering.mentions, steps, has_control: lowering.controls > 0 })
}

struct Lowering {
    mentions: Vec<Mention>,
    controls: usize,
}

impl Lowering {
    fn pipeline(&mut self, terms: &[Term]) -> Result<Vec<Step>, Diagnostic> {
        terms.iter().map(|term| self.term(term)).collect()
    }

    fn term(&mut self, term: &Term) -> Result<Step, Diagnostic> {
        let kind = match term {
            Term::Task { node, task, at } => {
                self.mentions.push(Mention { node: node.clone(), task: task.clone(), at: *at });
                return Ok(Step::Task(NameId(self.mentions.len() - 1)));
            }
            // Expansion leaves none of them.
            Term::Pipe { name, at } => return Err(refuse(format!("Unknown pipe reference: {name}"), *at)),
            Term::Switch { on, cases, default, at } => self.switch(on, cases, default.as_deref(), *at)?,
            // The body first, as the reference does: of several mistakes it reports the innermost.
            Term::Repeat { count: raw, collect, body, at } => {
                let body = self.pipeline(body)?;
                let count = count(raw, *at)?;
                check_collect(collect.as_deref(), *at)?;
                ControlKind::Repeat { count, body }
            }
            Term::ForEach { over, item, index, collect, body, at } => {
                let body = self.pipeline(body)?;
                let over = expression(over, Bare::Params, *at)?;
                check_collect(collect.as_deref(), *at)?;
                let named = |name: &Option<String>| name.clone().filter(|name| !name.is_empty());
                ControlKind::ForEach { over, item: named(item), index: named(index), body }
            }
            Term::Until { cond, max_iter, collect, body, at } => {
                let body = self.pipeline(body)?;
                let condition = expression(cond, Bare::Context, *at)?;
                let max_rounds = match max_iter {
                    None => DEFAULT_MAX_ROUNDS,
                    Some(raw) => max_rounds(raw, *at)?,
                };
                check_collect(collect.as_deref(), *at)?;
                ControlKind::Until { condition, max_rounds, body }
            }
        };
        let id = self.controls;
        self.controls += 1;
        Ok(Step::Control(Arc::new(Control { id, kind })))
    }

    fn switch(
        &mut self,
        on: &str,
        cases: &[(String, Vec<Term>)],
        default: Option<&[Term]>,
        at: Position,
    ) -> Result<ControlKind, Diagnostic> {
        if cases.is_empty() && default.is_none() {
            return Err(refuse("switch must define at least one case.", at));
        }
        let mut lowered = Vec::with_capacity(cases.len());
        for (value, branch) in cases {
            lowered.push((case_value(value, at)?, self.pipeline(branch)?));
        }
        let default = default.map(|branch| self.pipeline(branch)).transpose()?;
        let on = expression(on, Bare::Params, at)?;
        Ok(ControlKind::Switch { on, cases: lowered, default })
    }
}

/// `true`, `false` and digits are what they look like, quoted or not; other text is itself.
fn case_value(text: &str, at: Position) -> Result<Json, Diagnostic> {
    match text {
        "true" => Ok(Json::Bool(true)),
        "false" => Ok(Json::Bool(false)),
        _ if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => {
            let number: u64 =
                text.parse().map_err(|_| refuse(format!("the case {text} is too large a number"), at))?;
            Ok(Json::from(number))
        }
        _ => Ok(Json::String(text.to_owned())),
    }
}

/// Checked, but without any effect, as in the reference.
fn check_collect(mode: Option<&str>, at: Position) -> Result<(), Diagnostic> {
    match mode {
        None | Some("") => Ok(()),
        Some(mode) if COLLECT_MODES.contains(&mode) => Ok(()),
        Some(mode) => Err(refuse(format!("Invalid collect mode: {mode}"), at)
            .with_help("possible are list, last, first, flatten")),
    }
}
