//! Loops and switches: `x[3]`, `x["$ctx.params.items as i"]`, `x % "condition"`, `switch("..")[..]`.

use pyoco_core::expr::Expression;
use pyoco_core::plan::Count;

use super::ast::{Argument, Expr, ExprKind, Literal};
use super::meaning::Meaning;
use super::refusal::no_cases;
use super::value::{Case, Chain, Value};
use super::{Problem, Span};
use crate::program::{Control, ControlKind, Step};

/// Names that a foreach variable would hide.
const RESERVED: [&str; 7] = ["params", "results", "scratch", "loop", "loops", "env", "artifacts"];

/// Rounds of an until loop that does not say how many.
pub(crate) const DEFAULT_MAX_ROUNDS: i64 = 1000;

impl Meaning<'_> {
    /// `body[selector]`.
    pub(super) fn index(&mut self, body: &Expr, selector: &Expr) -> Result<Value, Problem> {
        let value = self.eval(body)?;
        let span = body.span.to(selector.span);
        if let Value::Switch(on) = value {
            return self.switch(on, selector, span);
        }
        let Value::Chain(chain) = value else {
            return Err(match matches!(value, Value::SwitchWord) {
                true => no_cases(body.span),
                false => Problem::new(format!("{} cannot be repeated", value.noun()), body.span)
                    .help("repeat a task or a chain: 'a[2]', '(a >> b)[2]'"),
            });
        };
        check_body(chain.lead, span)?;
        let selected = self.eval(selector)?;
        let Chain { steps, ours, size, depth, .. } = chain;
        let kind = self.rounds(&selected, steps, selector.span)?;
        self.control(kind, size, depth, ours, span)
    }

    /// What the brackets behind a chain ask for.
    fn rounds(&self, selected: &Value, body: Vec<Step>, span: Span) -> Result<ControlKind, Problem> {
        let unsupported = |help: &str| {
            Problem::new(format!("Unsupported loop selector: {}", selected.repr()), span).help(help)
        };
        let wanted = "write a number of rounds, or \"$ctx.params.items as item\"";
        let Value::Literal(literal) = selected else { return Err(unsupported(wanted)) };
        match literal {
            Literal::Int(count) => {
                let negative = |_| Problem::new("Repeat count must be non-negative.", span);
                let count = u64::try_from(*count).map_err(negative)?;
                Ok(ControlKind::Repeat { count: Count::Fixed(count), body })
            }
            Literal::Str { text, verbatim } => {
                let (over, item) = self.foreach(text, *verbatim, span)?;
                Ok(ControlKind::ForEach { over, item, index: None, body })
            }
            Literal::Bool(_) => Err(unsupported("a count is a number: write [1] or [0]")),
            Literal::None | Literal::Float(_) => Err(unsupported(wanted)),
        }
    }

    /// `body % selector`.
    pub(super) fn until(&mut self, body: &Expr, selector: &Expr) -> Result<Value, Problem> {
        let value = self.eval(body)?;
        let Value::Chain(chain) = value else {
            return Err(Problem::new(format!("{} cannot be repeated", value.noun()), body.span)
                .help("repeat a task or a chain: 'a % \"condition\"'"));
        };
        let span = body.span.to(selector.span);
        check_body(chain.lead, span)?;
        let (condition, max) = match &selector.kind {
            ExprKind::List { items, tuple: true } => match items.as_slice() {
                [condition, max] => (condition, Some(max)),
                _ => {
                    let message = "Until tuple selector must be (expression, max_iter).";
                    return Err(Problem::new(message, selector.span));
                }
            },
            ExprKind::Name(_)
            | ExprKind::Literal(_)
            | ExprKind::List { .. }
            | ExprKind::Shift(_)
            | ExprKind::All(_)
            | ExprKind::Any(_)
            | ExprKind::Until(..)
            | ExprKind::Index(..)
            | ExprKind::Call(..) => (selector, None),
        };
        let condition = self.expression_of(condition)?;
        let max_rounds = match max {
            None => DEFAULT_MAX_ROUNDS,
            Some(max) => self.max_rounds(max)?,
        };
        let Chain { steps, ours, size, depth, .. } = chain;
        self.control(ControlKind::Until { condition, max_rounds, body: steps }, size, depth, ours, span)
    }

    fn max_rounds(&mut self, max: &Expr) -> Result<i64, Problem> {
        let value = self.eval(max)?;
        match &value {
            Value::Literal(Literal::None | Literal::Int(0)) => Ok(DEFAULT_MAX_ROUNDS),
            Value::Literal(Literal::Int(rounds)) => Ok(*rounds),
            Value::Literal(Literal::Bool(_) | Literal::Float(_) | Literal::Str { .. })
            | Value::Chain(_)
            | Value::Group(_)
            | Value::List(_)
            | Value::Flow
            | Value::Case(_)
            | Value::Switch(_)
            | Value::SwitchWord => Err(Problem::new(
                format!("max_iter must be a whole number or None, not {}", value.repr()),
                max.span,
            )),
        }
    }

    /// An expression written as a text.
    fn expression_of(&mut self, expr: &Expr) -> Result<Expression, Problem> {
        let value = self.eval(expr)?;
        let Value::Literal(Literal::Str { text, verbatim }) = &value else {
            return Err(Problem::new(format!("Unsupported expression value: {}", value.repr()), expr.span)
                .help("an expression is a text, e.g. \"$ctx.params.n > 3\""));
        };
        self.expression(text, 0, *verbatim, expr.span)
    }

    /// Parses an expression; `skipped` bytes of the text stand before it.
    fn expression(
        &self,
        text: &str,
        skipped: usize,
        verbatim: bool,
        span: Span,
    ) -> Result<Expression, Problem> {
        Expression::parse(text).map_err(|error| {
            let blanks = text.len() - text.trim_start().len();
            let at = span.start + 1 + skipped + blanks + error.offset();
            let inside = verbatim && at < span.end;
            Problem::new(error.to_string(), if inside { Span::new(at, at + 1) } else { span })
        })
    }

    /// `source as alias`; the alias may be left out.
    fn foreach(
        &self,
        text: &str,
        verbatim: bool,
        span: Span,
    ) -> Result<(Expression, Option<String>), Problem> {
        let blanks = text.len() - text.trim_start().len();
        let text = text.trim();
        let (source, alias) = match text.split_once(" as ") {
            None => (text, None),
            Some((source, alias)) => {
                let alias = alias.trim();
                if !is_identifier(alias) || RESERVED.contains(&alias) {
                    return Err(Problem::new(format!("Invalid foreach alias '{alias}'."), span)
                        .help("the name behind 'as' is one word and not one of params, results, scratch, loop, loops, env, artifacts"));
                }
                (source, Some(alias.to_owned()))
            }
        };
        let over =
            self.expression(source, blanks, verbatim, span).map_err(|problem| {
                match is_identifier(source.trim()) {
                    true => problem.help(format!("a parameter is written $ctx.params.{}", source.trim())),
                    false => problem,
                }
            })?;
        Ok((over, alias))
    }

    fn control(
        &mut self,
        kind: ControlKind,
        size: usize,
        depth: usize,
        ours: bool,
        span: Span,
    ) -> Result<Value, Problem> {
        let depth = self.nest(depth + 1, span)?;
        let size = self.grow(size + 1, span)?;
        let id = self.controls.len();
        self.controls.push(span);
        Ok(Value::Chain(Chain::control(Control { id, kind }, size, depth, ours)))
    }

    /// `switch("..")[cases]`.
    fn switch(&mut self, on: Expression, selector: &Expr, span: Span) -> Result<Value, Problem> {
        let value = self.eval(selector)?;
        let cases = if let Value::List(list) = value {
            list.items
        } else if matches!(value, Value::Case(_)) {
            vec![value]
        } else {
            return Err(Problem::new("switch()[...] expects CaseNode(s)", selector.span)
                .help(format!("found {}; a case is written \"X\" >> a", value.noun())));
        };
        if cases.is_empty() {
            return Err(Problem::new("switch() requires at least one case.", selector.span));
        }
        let (mut listed, mut default) = (Vec::with_capacity(cases.len()), None);
        let (mut size, mut depth, mut ours) = (0, 0, false);
        for case in cases {
            let Value::Case(case) = case else {
                return Err(Problem::new(format!("a switch has cases, not {}", case.noun()), selector.span)
                    .help("a case is written \"X\" >> a, the default \"*\" >> a"));
            };
            size += case.size;
            depth = depth.max(case.depth);
            ours |= case.ours;
            let Case { value, body, .. } = &*case;
            match value {
                Some(value) => listed.push((value.clone(), body.clone())),
                None => {
                    default.get_or_insert_with(|| body.clone());
                }
            }
        }
        self.spend(size, span)?;
        self.control(ControlKind::Switch { on, cases: listed, default }, size, depth, ours, span)
    }

    /// `a()` is `a`; `switch("..")` waits for its cases.
    pub(super) fn call(
        &mut self,
        callee: &Expr,
        arguments: &[Argument],
        span: Span,
    ) -> Result<Value, Problem> {
        let value = self.eval(callee)?;
        if matches!(value, Value::SwitchWord) {
            let [Argument { keyword: None, value }] = arguments else {
                return Err(Problem::new("switch takes one expression", span)
                    .help("write switch(\"$ctx.params.mode\")[..]"));
            };
            return Ok(Value::Switch(self.expression_of(value)?));
        }
        if !matches!(&value, Value::Chain(chain) if chain.is_task) {
            return Err(Problem::new(format!("{} cannot be called", value.noun()), callee.span));
        }
        if let Some(Argument { keyword, value }) = arguments.iter().find(|one| !is_harmless(&one.value)) {
            let span = keyword.map_or(value.span, |word| word.to(value.span));
            return Err(Problem::new("arguments of a task in a graph are ignored", span)
                .help("give arguments under tasks.<name>.inputs"));
        }
        // Ignored, but their names must exist, as in the reference.
        for argument in arguments {
            self.eval(&argument.value)?;
        }
        Ok(value)
    }
}

/// A loop around a chain whose first group the reference has forgotten.
fn check_body(lead: usize, span: Span) -> Result<(), Problem> {
    if lead > 0 {
        return Err(Problem::new("the group at the beginning of this loop would not be repeated", span)
            .help("begin the loop with a task: '(a >> (b & c) >> d)[2]'"));
    }
    Ok(())
}

fn is_harmless(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Name(_) | ExprKind::Literal(_) => true,
        ExprKind::List { items, .. } => items.iter().all(is_harmless),
        ExprKind::Shift(_) | ExprKind::All(_) | ExprKind::Any(_) | ExprKind::Until(..) => false,
        ExprKind::Index(..) | ExprKind::Call(..) => false,
    }
}

fn is_identifier(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_alphabetic() || c == '_')
        && chars.all(|c| c.is_alphanumeric() || c == '_')
}
