//! Pipes: every `pipe(x)` is replaced by the terms of that pipe, within the limits of the reference.

use std::collections::HashMap;

use indexmap::IndexMap;

use super::parse::{self, Term};
use super::{Where, refuse};
use crate::diagnostic::{Diagnostic, Position};
use crate::document::Text;
use crate::source::{Locator, Source};

/// Pipes inside pipes.
const MAX_DEPTH: usize = 128;
/// Terms after every pipe has been put in its place. A term inside a loop or switch counts again with it.
const MAX_TERMS: usize = 4096;

pub(super) struct Expansion<'a> {
    pipes: &'a IndexMap<String, Text>,
    source: &'a Source<'a>,
    parsed: HashMap<String, Vec<Term>>,
    stack: Vec<String>,
    terms: usize,
}

impl<'a> Expansion<'a> {
    pub(super) fn new(pipes: &'a IndexMap<String, Text>, source: &'a Source<'a>) -> Self {
        Self { pipes, source, parsed: HashMap::new(), stack: Vec::new(), terms: 0 }
    }

    pub(super) fn run(mut self, terms: &[Term]) -> Result<Vec<Term>, Diagnostic> {
        Ok(self.pipeline(terms)?.0)
    }

    /// The expanded terms, and how many they are with everything inside.
    fn pipeline(&mut self, terms: &[Term]) -> Result<(Vec<Term>, usize), Diagnostic> {
        let mut result = Vec::with_capacity(terms.len());
        let mut total = 0;
        for term in terms {
            total += self.term(term, &mut result)?;
        }
        Ok((result, total))
    }

    fn term(&mut self, term: &Term, result: &mut Vec<Term>) -> Result<usize, Diagnostic> {
        let (expanded, inner, at) = match term {
            Term::Pipe { name, at } => {
                let (terms, count) = self.pipe(name, *at)?;
                result.extend(terms);
                return Ok(count);
            }
            Term::Task { at, .. } => (term.clone(), 0, *at),
            Term::Switch { on, cases, default, at } => {
                let mut inner = 0;
                let mut expanded = Vec::with_capacity(cases.len());
                for (value, branch) in cases {
                    let (branch, count) = self.pipeline(branch)?;
                    inner += count;
                    expanded.push((value.clone(), branch));
                }
                let default = match default {
                    None => None,
                    Some(branch) => {
                        let (branch, count) = self.pipeline(branch)?;
                        inner += count;
                        Some(branch)
                    }
                };
                (Term::Switch { on: on.clone(), cases: expanded, default, at: *at }, inner, *at)
            }
            Term::Repeat { count, collect, body, at } => {
                let (body, inner) = self.pipeline(body)?;
                (Term::Repeat { count: count.clone(), collect: collect.clone(), body, at: *at }, inner, *at)
            }
            Term::ForEach { over, item, index, collect, body, at } => {
                let (body, inner) = self.pipeline(body)?;
                let (over, item, index, collect) =
                    (over.clone(), item.clone(), index.clone(), collect.clone());
                (Term::ForEach { over, item, index, collect, body, at: *at }, inner, *at)
            }
            Term::Until { cond, max_iter, collect, body, at } => {
                let (body, inner) = self.pipeline(body)?;
                let (cond, max_iter, collect) = (cond.clone(), max_iter.clone(), collect.clone());
                (Term::Until { cond, max_iter, collect, body, at: *at }, inner, *at)
            }
        };
        self.terms += 1 + inner;
        if self.terms > MAX_TERMS {
            return Err(too_many_terms(at));
        }
        result.push(expanded);
        Ok(1 + inner)
    }

    fn pipe(&mut self, name: &str, at: Position) -> Result<(Vec<Term>, usize), Diagnostic> {
        let Some(text) = self.pipes.get(name) else {
            let known: Vec<&str> = self.pipes.keys().map(String::as_str).collect();
            let problem = refuse(format!("Unknown pipe reference: {name}"), at);
            return Err(match crate::names::closest(name, known.into_iter()) {
                Some(close) => problem.with_help(format!("did you mean '{close}'?")),
                None => problem.with_help("pipes are defined under 'pipes:'"),
            });
        };
        if self.stack.iter().any(|outer| outer == name) {
            let way = [self.stack.as_slice(), &[name.to_owned()]].concat().join(" -> ");
            return Err(refuse(format!("Cyclic pipe reference detected: {way}"), at));
        }
        if self.stack.len() >= MAX_DEPTH {
            return Err(refuse(format!("Pipe expansion depth exceeded ({MAX_DEPTH})"), at));
        }
        if !self.parsed.contains_key(name) {
            let locator = Locator::new(self.source, &text.text, text.place);
            let terms = parse::pipeline(&text.text, &Where::Text(&text.text, &locator), 0)?;
            self.parsed.insert(name.to_owned(), terms);
        }
        let terms = self.parsed.get(name).cloned().unwrap_or_default();
        self.stack.push(name.to_owned());
        let expanded = self.pipeline(&terms)?;
        self.stack.pop();
        Ok(expanded)
    }
}

pub(super) fn too_many_terms(at: Position) -> Diagnostic {
    refuse(format!("Expanded terms exceeded limit ({MAX_TERMS})"), at)
}
