//! What the operators of a graph build: dependencies between tasks, sequences, groups.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use pyoco_core::plan;

use super::ast::{Expr, ExprKind, Literal, Statement};
use super::attach::FlowState;
use super::lex::MAX_DEPTH;
use super::value::{Case, Chain, Group, GroupKind, List, Value, heads, literal_json, tails};
use super::{Places, Problem, Span};
use crate::diagnostic::Diagnostic;
use crate::program::{NameId, Parallel, Program, Step};

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
            ExprKind::Name => self.name(expr.span),
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
            Value::Group(group) if group.kind == GroupKind::List => {
                Err(Problem::new("nothing would wait for this list: a group hands on only what stands on its right", span)
                    .help("say it in two statements: '(a & b) >> [c, d]' and '(c & d) >> e'"))
            }
            Value::Group(group) => self.after_group(group, left_span, right, span),
            Value::List(_) => Err(Problem::new("a list on the left of '>>' links nothing", left_span)
                .help("write a group: '(a & b) >> c', or start with 'flow >> [a, b] >> c'")),
            Value::Literal(literal) => self.case(&literal, right, span),
            Value::Case(_) => Err(Problem::new("a case has exactly one '>>': this one would never match", left_span.to(span))
                .help("put the chain in parentheses: '\"X\" >> (a >> b)'")),
            Value::Switch(_) | Value::SwitchWord => Err(no_cases(left_span)),
        }
    }

    fn after_chain(&mut self, left: Chain, right: Value, span: Span) -> Result<Value, Problem> {
        let right = match right {
            Value::Chain(right) if right.lead > 0 => {
                return Err(Problem::new("only the end of this group would be linked, not its members", span)
                    .help("leave out the parentheses: 'x >> (a & b) >> c'"));
            }
            Value::Chain(right) => right,
            Value::Group(group) => self.fork(group, span)?,
            Value::List(list) => self.fork(listed(list), span)?,
            other @ (Value::Flow | Value::Literal(_) | Value::Case(_) | Value::Switch(_) | Value::SwitchWord) => {
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

    /// A group as one step, for the forms that are ours.
    pub(super) fn fork(&self, group: Group, span: Span) -> Result<Chain, Problem> {
        let any = group.kind == GroupKind::Any;
        let depth = self.nest(group.depth + 1, span)?;
        let branches = branches(group.members, any, span)?;
        if branches.is_empty() {
            return Err(Problem::new("an empty list has no task to go on with", span));
        }
        let mut steps = group.before;
        steps.push(Step::Parallel(Rc::new(Parallel { branches, any })));
        Ok(Chain { steps, is_task: false, ours: true, lead: 0, size: group.size, depth })
    }

    fn after_group(&mut self, left: Group, left_span: Span, right: Value, span: Span) -> Result<Value, Problem> {
        if !left.ours && !left.is_plain() {
            return Err(ignored_members(&left, left_span));
        }
        let any = left.kind == GroupKind::Any;
        let ours = left.ours || is_ours(&right);
        match right {
            Value::Chain(right) => {
                if !ours && !right.is_task {
                    return Err(Problem::new("a group links to tasks and groups only; this chain would not be linked", span)
                        .help("leave out the parentheses: '(a & b) >> c >> d'"));
                }
                if right.lead > 0 {
                    return Err(Problem::new("only the end of this group would be linked, not its members", span)
                        .help("leave out the parentheses: '(a & b) >> (c & d) >> e'"));
                }
                let before = self.lead_of(left, span)?;
                let is_task = right.is_task;
                let lead = if ours { 0 } else { before.steps.len() };
                self.link_all(&before, &heads(&right.steps), any, ours, span)?;
                let mut chain = self.silently_concatenate(before, right, span)?;
                (chain.is_task, chain.ours, chain.lead) = (is_task, ours, lead);
                Ok(Value::Chain(chain))
            }
            Value::Group(right) => self.group_to_group(left, right, ours, span),
            Value::List(list) => self.group_to_group(left, listed(list), ours, span),
            other @ (Value::Flow | Value::Literal(_) | Value::Case(_) | Value::Switch(_) | Value::SwitchWord) => {
                Err(Problem::new(format!("a group cannot be followed by {}: nothing would be linked", other.noun()), span))
            }
        }
    }

    fn group_to_group(&mut self, left: Group, right: Group, ours: bool, span: Span) -> Result<Value, Problem> {
        if !ours && !right.is_plain() {
            return Err(ignored_members(&right, span));
        }
        let leads = |member: &Value| matches!(member, Value::Chain(chain) if chain.lead > 0);
        if !right.before.is_empty() || right.members.iter().any(leads) {
            return Err(Problem::new("only the end of this group would be linked, not its members", span)
                .help("leave out the parentheses around the chain of groups"));
        }
        let any = left.kind == GroupKind::Any;
        let before = self.lead_of(left, span)?;
        let targets = self.fork(right.clone(), span)?;
        self.link_all(&before, &heads(&targets.steps), any, ours, span)?;
        let size = self.grow(before.size + right.size, span)?;
        let depth = before.depth.max(right.depth);
        Ok(Value::Group(Group { before: before.steps, ours, size, depth, ..right }))
    }

    fn link_all(&mut self, from: &Chain, to: &[NameId], any: bool, ours: bool, span: Span) -> Result<(), Problem> {
        let (from, _) = tails(&from.steps).map_err(|_| mixture(span))?;
        self.link(&from, to, !ours, span)?;
        if any {
            self.any.extend(to);
        }
        Ok(())
    }

    fn lead_of(&self, group: Group, span: Span) -> Result<Chain, Problem> {
        self.fork(group, span)
    }

    fn silently_concatenate(&self, mut left: Chain, right: Chain, span: Span) -> Result<Chain, Problem> {
        left.size = self.grow(left.size + right.size, span)?;
        left.depth = left.depth.max(right.depth);
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
            return Err(Problem::new(format!("groups, lists and loops are nested deeper than {MAX_DEPTH} levels"), span));
        }
        Ok(depth)
    }

    /// `left & right`, `left | right`.
    fn group(&mut self, (left, left_span): Spanned, (right, span): Spanned, kind: GroupKind) -> Result<Value, Problem> {
        let (operator, other) = if kind == GroupKind::All { ("&", "|") } else { ("|", "&") };
        let runs = |value: &Value| matches!(value, Value::Chain(_) | Value::Group(_) | Value::List(_));
        if !runs(&left) || matches!(left, Value::List(_)) {
            let problem = Problem::new(format!("'{operator}' joins tasks, not {}", left.noun()), left_span);
            return Err(match left {
                Value::Flow => problem.help("'>>' binds tighter: write 'flow >> (a & b)'"),
                _ => problem,
            });
        }
        if !runs(&right) {
            return Err(Problem::new(format!("'{operator}' joins tasks, not {}", right.noun()), span));
        }
        let size = self.grow(1 + left.size() + right.size(), span)?;
        let depth = self.nest(1 + left.depth().max(right.depth()), span)?;
        // To the reference only a task may stand on the left; with one, everything may stand on the right.
        let accepted = matches!(&left, Value::Chain(chain) if chain.is_task && !chain.ours);
        let ours = !accepted || is_ours(&right);
        let mut members = Vec::new();
        for value in [left, right] {
            match value {
                Value::Group(inner) if ours && inner.kind == kind && inner.before.is_empty() => members.extend(inner.members),
                Value::Group(inner) if ours && inner.kind != kind => {
                    let message = format!("'{operator}' and '{other}' in one group have no single meaning");
                    return Err(Problem::new(message, left_span.to(span)).help("put a task between the two groups"));
                }
                Value::List(_) if ours => {
                    return Err(Problem::new(format!("'{operator}' joins tasks, not a list"), span));
                }
                other => members.push(other),
            }
        }
        Ok(Value::Group(Group { kind, members, ours, before: Vec::new(), size, depth }))
    }

    fn case(&mut self, literal: &Literal, right: Value, span: Span) -> Result<Value, Problem> {
        match right {
            Value::Chain(chain) if chain.lead > 0 => {
                Err(Problem::new("the group before the last task would not be part of this case", span)
                    .help("begin the case with a task: '\"X\" >> (a >> (b & c) >> d)'"))
            }
            Value::Chain(chain) => {
                let value = match literal {
                    Literal::Str { text, .. } if text == "*" || text == "__default__" => None,
                    other => Some(literal_json(other)),
                };
                let Chain { steps, ours, size, depth, .. } = chain;
                Ok(Value::Case(Rc::new(Case { value, body: steps, size, depth, ours })))
            }
            other => Err(Problem::new(format!("a case leads to a task or a chain, not to {}", other.noun()), span)
                .help("begin the case with a task: '\"X\" >> (a >> (b & c) >> d)'")),
        }
    }
}

/// A list where a group is wanted.
pub(super) fn listed(list: List) -> Group {
    let List { items, size, depth, .. } = list;
    let ours = items.iter().any(is_ours);
    Group { kind: GroupKind::List, members: items, ours, before: Vec::new(), size, depth }
}

pub(super) fn is_ours(value: &Value) -> bool {
    match value {
        Value::Chain(chain) => chain.ours,
        Value::Group(group) => group.ours,
        Value::List(list) => list.items.iter().any(is_ours),
        Value::Case(case) => case.ours,
        Value::Flow | Value::Literal(_) | Value::Switch(_) | Value::SwitchWord => false,
    }
}

pub(super) fn cannot_treat(value: &Value, span: Span) -> Problem {
    Problem::new(format!("Cannot treat {} as a flow fragment.", value.repr()), span)
        .help("'>>' is followed by a task, a chain or a group")
}

pub(super) fn no_cases(span: Span) -> Problem {
    Problem::new("this switch has no cases, so it would be skipped", span)
        .help("write switch(\"..\")[\"X\" >> a, \"*\" >> b]")
}

pub(super) fn mixture(span: Span) -> Problem {
    Problem::new("this would wait for 'any of' some and 'all of' others, which one join cannot do", span)
        .help("put a task between the inner and the outer group")
}

/// The reference looks only at plain tasks in a group; the others would be left out.
pub(super) fn ignored_members(group: &Group, span: Span) -> Problem {
    let stray = group.members.iter().find(|member| !matches!(member, Value::Chain(chain) if chain.is_task));
    let noun = stray.map_or("a member", Value::noun);
    let problem = Problem::new(format!("{noun} inside a group or list would be left out of the join"), span);
    match stray {
        Some(Value::Chain(_)) => problem.help("let the chain stand first in a group: '((a >> b) & c) >> d'"),
        Some(Value::Group(_) | Value::List(_)) => problem.help("name all members in one group: '(a & b & c) >> d'"),
        Some(Value::Flow | Value::Literal(_) | Value::Case(_) | Value::Switch(_) | Value::SwitchWord) | None => problem,
    }
}

/// The members of a group as sequences; groups of the same kind inside become part of it.
fn branches(members: Vec<Value>, any: bool, span: Span) -> Result<Vec<Vec<Step>>, Problem> {
    let mut result = Vec::with_capacity(members.len());
    for member in members {
        match member {
            Value::Chain(chain) => result.push(chain.steps),
            Value::Group(group) if !group.before.is_empty() => {
                return Err(Problem::new("a group that follows another cannot be a member of a third", span));
            }
            Value::Group(group) if (group.kind == GroupKind::Any) == any => {
                result.extend(branches(group.members, any, span)?);
            }
            Value::List(list) if !any => result.extend(branches(list.items, any, span)?),
            Value::Group(_) | Value::List(_) => return Err(mixture(span)),
            other @ (Value::Flow | Value::Literal(_) | Value::Case(_) | Value::Switch(_) | Value::SwitchWord) => {
                return Err(Problem::new(format!("a group has tasks as members, not {}", other.noun()), span));
            }
        }
    }
    Ok(result)
}
