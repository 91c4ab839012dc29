//! What is said about forms that several operators refuse.

use super::value::{Group, Value};
use super::{Problem, Span};

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
        Some(Value::Group(_) | Value::List(_)) => {
            problem.help("name all members in one group: '(a & b & c) >> d'")
        }
        Some(Value::Flow | Value::Literal(_) | Value::Case(_) | Value::Switch(_) | Value::SwitchWord)
        | None => problem,
    }
}

/// A loop or switch that no `flow >>` reaches.
pub(super) fn not_attached(span: Span) -> Problem {
    Problem::new("this loop or switch is not part of the flow, so it would be lost", span)
        .help("begin the statement with 'flow >>'")
}
