//! The tree over a scope.

use serde_json::Value as Json;

use super::error::Cause;
use super::limits::{self, Budget, VALUE_BYTES};
use super::node::{Arithmetic, Comparison, Logic, Node, Root};
use super::ops;
use super::scope::Scope;
use super::value::Value;

pub(super) fn evaluate(node: &Node, scope: &dyn Scope) -> Result<Value, Cause> {
    Evaluation { scope, budget: Budget::new() }.value(node)
}

struct Evaluation<'a> {
    scope: &'a dyn Scope,
    budget: Budget,
}

impl Evaluation<'_> {
    /// Recurses only as deep as the parser let the tree become.
    fn value(&self, node: &Node) -> Result<Value, Cause> {
        match node {
            Node::Constant(value) => self.charged(value.clone()),
            Node::Reference { root, path } => self.reference(*root, path),
            Node::Logic { operator, operands } => self.logic(*operator, operands),
            Node::Not(operand) => Ok(Value::Bool(!self.value(operand)?.truthy())),
            Node::Sign { operator, operand } => ops::sign(*operator, &self.value(operand)?),
            Node::Power { base, exponent } => ops::power(&self.value(base)?, &self.value(exponent)?),
            Node::Chain { first, rest } => self.chain(first, rest),
            Node::Compare { first, rest } => self.compare(first, rest).map(Value::Bool),
        }
    }

    fn charged(&self, value: Value) -> Result<Value, Cause> {
        self.budget.charge(value.weight())?;
        Ok(value)
    }

    /// The first operand that decides, or the last.
    fn logic(&self, operator: Logic, operands: &[Node]) -> Result<Value, Cause> {
        let mut result = Value::None;
        for operand in operands {
            result = self.value(operand)?;
            let decides = match operator {
                Logic::And => !result.truthy(),
                Logic::Or => result.truthy(),
            };
            if decides {
                break;
            }
        }
        Ok(result)
    }

    fn chain(&self, first: &Node, rest: &[(Arithmetic, Node)]) -> Result<Value, Cause> {
        let mut result = self.value(first)?;
        for (operator, operand) in rest {
            result = self.charged(ops::apply(*operator, result, self.value(operand)?)?)?;
        }
        Ok(result)
    }

    /// `a < b < c` is `a < b and b < c`, each evaluated once at most.
    fn compare(&self, first: &Node, rest: &[(Comparison, Node)]) -> Result<bool, Cause> {
        let mut left = self.value(first)?;
        for (comparison, operand) in rest {
            let right = self.value(operand)?;
            if !ops::holds(*comparison, &left, &right)? {
                return Ok(false);
            }
            left = right;
        }
        Ok(true)
    }

    fn reference(&self, root: Root, path: &str) -> Result<Value, Cause> {
        let not_found = || Cause::NotFound(format!("{}.{path}", root.text()));
        match root {
            Root::Env => {
                // A variable has no fields, so a path of two segments leads nowhere.
                let variable =
                    Some(path).filter(|path| !path.contains('.')).and_then(|name| self.scope.env(name));
                self.charged(Value::from(variable.ok_or_else(not_found)?))
            }
            Root::Ctx => {
                let data = self.lookup(path).ok_or_else(not_found)?;
                self.budget.charge(weight(data, limits::DATA_DEPTH)?)?;
                Ok(Value::from_json(data))
            }
        }
    }

    /// Only mappings have fields, and no field is named by nothing, as after a double or last dot.
    fn lookup(&self, path: &str) -> Option<&Json> {
        let mut segments = path.split('.');
        let root = segments.next()?;
        let Some(key) = segments.next() else { return self.scope.ctx(root) };
        let member = Some(key).filter(|key| !key.is_empty()).and_then(|key| self.scope.member(root, key));
        segments
            .try_fold(member?, |data, segment| data.as_object().filter(|_| !segment.is_empty())?.get(segment))
    }
}

/// What reading the data will cost, before it is copied.
fn weight(data: &Json, depth: usize) -> Result<usize, Cause> {
    let depth = depth.checked_sub(1).ok_or(limits::DATA_TOO_DEEP)?;
    let mut total = VALUE_BYTES;
    match data {
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
        Json::String(text) => total += text.len(),
        Json::Array(items) => {
            for item in items {
                total += weight(item, depth)?;
            }
        }
        Json::Object(entries) => {
            for (key, value) in entries {
                total += VALUE_BYTES + key.len() + weight(value, depth)?;
            }
        }
    }
    Ok(total)
}
