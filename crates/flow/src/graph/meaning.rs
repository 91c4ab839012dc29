//! What the operators of a graph build: dependencies between tasks, sequences, groups.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use pyoco_core::plan;

use super::ast::{Expr, ExprKind, Literal, Statement};
use super::attach::FlowState;
use super::group::listed;
use super::lex::MAX_DEPTH;
use super::refusal::{cannot_treat, mixture, no_cases};
use super::value::{Case, Chain, GroupKind, List, Value, heads, literal_json, tails};
use super::{Places, Problem, Span};
use crate::diagnostic::Diagnostic;
use crate::program::{NameId, Program};

/// Most links and copied steps of one graph: a few lines of it could otherwise ask for billions.
const MAX_WORK: usize = 400_000;

/// A value, and the part of the graph it comes from.
pub(super) type Spanned = (Value, Span);

pub(super) struct Meaning<'a> {
    pub(super) places: Places<'a>,
    pub(super) program: Program,
    pub(super) bound: HashMap<&'a str, Value>,
    pub(super) flow: FlowState,
    pub(super) any: HashSet<NameId>,
    /// Where each loop and switch was written, and which of them `flow` reaches.
    pub(super) controls: Vec<Span>,
    pub(super) attached: HashSet<usize>,
    work: usize,
}

impl<'a> Meaning<'a> {
    pub(super) fn new(places: Places<'a>) -> Self {
        Self {
            places,
            program: Program::default(),
            bound: HashMap::new(),
            flow: FlowState::default(),
            any: HashSet::new(),
            controls: Vec::new(),
            attached: HashSet::new(),
            work: 0,
        }
    }

    pub(super) fn read(mut self, statements: &[Statement]) -> Result<Program, Diagnostic> {
        for statement in statements {
            self.statement(statement).map_err(|problem| self.places.refuse(problem))?;
        }
        self.finish().map_err(|problem| self.places.refuse(problem))?;
        let mut any: Vec<NameId> = self.any.into_iter().collect();
        any.sort_unstable();
        self.program.any = any;
        if self.flow.is_program {
            self.program.steps = Some(self.flow.steps);
        }
        Ok(self.program)
    }

    pub(super) fn eval(&mut self, expr: &Expr) -> Result<Value, Problem> {
        match &expr.kind {
            ExprKind::Name(name) => self.name(*name),
            ExprKind::Literal(literal) => Ok(Value::Literal(literal.clone())),
            ExprKind::List { items, tuple } => {
                let items = items.iter().map(|item| self.eval(item)).collect::<Result<_, _>>()?;
                let list = List::new(items, *tuple);
                self.grow(list.size, expr.span)?;
                self.nest(list.depth, expr.span)?;
                Ok(Value::List(list))
            }
            ExprKind::Shift(parts) => self.fold(parts, Self::shift),
            ExprKind::All(parts) => self.fold(parts, |this, l, r| this.group(l, r, GroupKind::All)),
            ExprKind::Any(parts) => self.fold(parts, |this, l, r| this.group(l, r, GroupKind::Any)),
            ExprKind::Until(body, selector) => self.until(body, selector),
            ExprKind::Index(body, selector) => self.index(body, selector),
            ExprKind::Call(callee, arguments) => self.call(callee, arguments, expr.span),
        }
    }

    fn fold(
        &mut self,
        parts: &[Expr],
        combine: fn(&mut Self, Spanned, Spanned) -> Result<Value, Problem>,
    ) -> Result<Value, Problem> {
        let mut parts = parts.iter();
        let Some(first) = parts.next() else { return Ok(Value::List(List::new(Vec::new(), true))) };
        let mut left = (self.eval(first)?, first.span);
        for part in parts {
            let right = (self.eval(part)?, part.span);
            let span = left.1.to(right.1);
            left = (combine(self, left, right)?, span);
        }
        Ok(left.0)
    }

    fn name(&mut self, span: Span) -> Result<Value, Problem> {
        let name = self.places.slice(span);
        if let Some(size) = self.bound.get(name).map(Value::size) {
            self.spend(size, span)?;
        }
        if let Some(value) = self.bound.get(name) {
            return Ok(value.clone());
        }
        Ok(match name {
            "flow" => Value::Flow,
            "switch" => Value::SwitchWord,
            _ => Value::Chain(Chain::task(self.intern(name, span))),
        })
    }

    pub(super) fn intern(&mut self, name: &str, span: Span) -> NameId {
        if let Some(index) = self.program.names.get_index_of(name) {
            return NameId(index);
        }
        let position = self.places.position(span);
        NameId(self.program.names.insert_full(name.to_owned(), position).0)
    }

    pub(super) fn spend(&mut self, amount: usize, span: Span) -> Result<(), Problem> {
        self.work = self.work.saturating_add(amount);
        if self.work > MAX_WORK {
            return Err(Problem::new("the graph becomes too large here", span));
        }
        Ok(())
    }

    /// Every task of `to` waits for every task of `from`.
    pub(super) fn link(
        &mut self,
        from: &[NameId],
        to: &[NameId],
        keep_self: bool,
        span: Span,
    ) -> Result<(), Problem> {
        self.spend(from.len().saturating_mul(to.len()), span)?;
        for task in to {
            let waits = from.iter().filter(|on| keep_self || *on != task);
            self.program.links.extend(waits.map(|on| (*task, *on)));
        }
        Ok(())
    }

    /// `left >> right`.
    fn shift(&mut self, (left, left_span): Spanned, (right, span): Spanned) -> Result<Value, Problem> {
        match left {
            Value::Flow => {
                self.attach(right, span)?;
                Ok(Value::Flow)
            }
            Value::Chain(left) => self.after_chain(left, right, span),
            Value::Group(group) if group.kind == GroupKind::List => Err(Problem::new(
                "nothing would wait for this list: a group hands on only what stands on its right",
                span,
            )
            .help("say it in two statements: '(a & b) >> [c, d]' and '(c & d) >> e'")),
            Value::Group(group) => self.after_group(group, left_span, right, span),
            Value::List(_) => Err(Problem::new("a list on the left of '>>' links nothing", left_span)
                .help("write a group: '(a & b) >> c', or start with 'flow >> [a, b] >> c'")),
            Value::Literal(literal) => Self::case(&literal, right, span),
            Value::Case(_) => Err(Problem::new(
                "a case has exactly one '>>': this one would never match",
                left_span.to(span),
            )
            .help("put the chain in parentheses: '\"X\" >> (a >> b)'")),
            Value::Switch(_) | Value::SwitchWord => Err(no_cases(left_span)),
        }
    }

    fn after_chain(&mut self, left: Chain, right: Value, span: Span) -> Result<Value, Problem> {
        let right = match right {
            Value::Chain(right) if right.lead > 0 => {
                return Err(Problem::new(
                    "only the end of this group would be linked, not its members",
                    span,
                )
                .help("leave out the parentheses: 'x >> (a & b) >> c'"));
            }
            Value::Chain(right) => right,
            Value::Group(group) => Self::fork(group, span)?,
            Value::List(list) => Self::fork(listed(list), span)?,
            other @ (Value::Flow
            | Value::Literal(_)
            | Value::Case(_)
            | Value::Switch(_)
            | Value::SwitchWord) => {
                return Err(cannot_treat(&other, span));
            }
        };
        self.concatenate(left, right, span).map(Value::Chain)
    }

    /// One chain after the other: what ends the first is waited for by what begins the second.
    fn concatenate(&mut self, mut left: Chain, right: Chain, span: Span) -> Result<Chain, Problem> {
        let (from, any) = tails(&left.steps).map_err(|_| mixture(span))?;
        let to = heads(&right.steps);
        self.link(&from, &to, false, span)?;
        if any {
            self.any.extend(&to);
        }
        left.size = self.grow(left.size + right.size, span)?;
        left.depth = left.depth.max(right.depth);
        left.ours |= right.ours;
        left.is_task = false;
        left.steps.extend(right.steps);
        Ok(left)
    }

    pub(super) fn grow(&self, size: usize, span: Span) -> Result<usize, Problem> {
        if size > plan::MAX_NODES {
            return Err(Problem::new(format!("a flow has at most {} steps", plan::MAX_NODES), span));
        }
        Ok(size)
    }

    /// Bound names can nest without end; whatever walks a value is recursive.
    pub(super) fn nest(&self, depth: usize, span: Span) -> Result<usize, Problem> {
        if depth > MAX_DEPTH {
            return Err(Problem::new(
                format!("groups, lists and loops are nested deeper than {MAX_DEPTH} levels"),
                span,
            ));
        }
        Ok(depth)
    }

    fn case(literal: &Literal, right: Value, span: Span) -> Result<Value, Problem> {
        let Value::Chain(chain) = right else {
            return Err(Problem::new(
                format!("a case leads to a task or a chain, not to {}", right.noun()),
                span,
            )
            .help("begin the case with a task: '\"X\" >> (a >> (b & c) >> d)'"));
        };
        if chain.lead > 0 {
            return Err(Problem::new("the group before the last task would not be part of this case", span)
                .help("begin the case with a task: '\"X\" >> (a >> (b & c) >> d)'"));
        }
        // `__default__` is what the reference stores for `*`.
        let is_default = matches!(literal, Literal::Str { text, .. } if text == "*" || text == "__default__");
        let value = (!is_default).then(|| literal_json(literal));
        let Chain { steps, ours, size, depth, .. } = chain;
        Ok(Value::Case(Arc::new(Case { value, body: steps, size, depth, ours })))
    }
}
