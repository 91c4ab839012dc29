//! Statements of a graph: expressions, names for parts of it, policies of tasks.

use pyoco_core::plan::FailPolicy;
use pyoco_core::time::Millis;

use super::ast::{Expr, Literal, Statement};
use super::meaning::Meaning;
use super::refusal::not_attached;
use super::value::Value;
use super::{Problem, Span};
use crate::program::{NameId, PolicyChange, Step};

impl Meaning<'_> {
    pub(super) fn statement(&mut self, statement: &Statement) -> Result<(), Problem> {
        match statement {
            Statement::Expressions(parts) => {
                for part in parts {
                    if self.eval(part)?.has_control() {
                        return Err(not_attached(part.span));
                    }
                }
                Ok(())
            }
            Statement::Binding { name, value } => self.bind(*name, value),
            Statement::Policy { task, field, value } => self.policy(*task, *field, value),
        }
    }

    fn bind(&mut self, name: Span, value: &Expr) -> Result<(), Problem> {
        let text = self.places.slice(name);
        if matches!(text, "flow" | "switch") {
            return Err(Problem::new(format!("'{text}' has its own meaning in a graph"), name)
                .help("choose another name"));
        }
        let value = self.eval(value)?;
        self.bound.insert(text, value);
        Ok(())
    }

    fn policy(&mut self, task: Span, field: Span, value: &Expr) -> Result<(), Problem> {
        let task = self.policy_target(task)?;
        let Value::Literal(literal) = self.eval(value)? else {
            return Err(Problem::new("a policy is a literal value", value.span));
        };
        let wrong =
            |wanted: &str| Problem::new(format!("{} is {wanted}", self.places.slice(field)), value.span);
        let change = match (self.places.slice(field), &literal) {
            // Any other word means stop, as in the reference.
            ("fail_policy", Literal::Str { text, .. }) => {
                PolicyChange::Fail(if text == "isolate" { FailPolicy::Isolate } else { FailPolicy::Stop })
            }
            ("fail_policy", _) => return Err(wrong("\"stop\" or \"isolate\"")),
            ("retries", Literal::Int(count)) => PolicyChange::Retries(
                u32::try_from(*count).map_err(|_| wrong("a number of retries, 0 or more"))?,
            ),
            ("retries", _) => return Err(wrong("a number of retries, 0 or more")),
            ("timeout_sec", Literal::None) => PolicyChange::Timeout(None),
            ("timeout_sec", Literal::Int(_) | Literal::Float(_)) => {
                let seconds = seconds(&literal).and_then(Millis::from_seconds);
                PolicyChange::Timeout(match seconds {
                    None => return Err(wrong("a number of seconds, or None")),
                    Some(Millis(0)) if !is_zero(&literal) => Some(Millis(1)),
                    Some(Millis(0)) => None,
                    limit => limit,
                })
            }
            ("timeout_sec", _) => return Err(wrong("a number of seconds, or None")),
            ("trigger_policy", Literal::Str { text, .. }) => {
                if text == "ANY" {
                    self.any.insert(task);
                } else {
                    self.any.remove(&task);
                }
                return Ok(());
            }
            ("trigger_policy", _) => return Err(wrong("\"ALL\" or \"ANY\"")),
            (other, _) => {
                return Err(Problem::new(format!("a task has no policy '{other}'"), field)
                    .help("possible are fail_policy, retries, timeout_sec, trigger_policy"));
            }
        };
        self.program.policies.push((task, change));
        Ok(())
    }

    fn policy_target(&mut self, span: Span) -> Result<NameId, Problem> {
        let name = self.places.slice(span);
        let bound = match self.bound.get(name) {
            None if matches!(name, "flow" | "switch") => {
                return Err(Problem::new(format!("'{name}' is not a task"), span));
            }
            None => return Ok(self.intern(name, span)),
            Some(value) => value,
        };
        let last = match bound {
            Value::Chain(chain) if chain.is_task => chain.steps.last(),
            Value::Chain(_) | Value::Group(_) | Value::List(_) | Value::Flow | Value::Literal(_) => None,
            Value::Case(_) | Value::Switch(_) | Value::SwitchWord => None,
        };
        match last {
            Some(Step::Task(task)) => Ok(*task),
            Some(Step::Control(_) | Step::Parallel(_)) | None => {
                Err(Problem::new(format!("'{name}' is {}, not a task", bound.noun()), span))
            }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "seconds beyond 2^53 are refused anyway")]
fn seconds(literal: &Literal) -> Option<f64> {
    match literal {
        Literal::Int(value) => Some(*value as f64),
        Literal::Float(value) => Some(*value),
        Literal::None | Literal::Bool(_) | Literal::Str { .. } => None,
    }
}

fn is_zero(literal: &Literal) -> bool {
    seconds(literal) == Some(0.0)
}
