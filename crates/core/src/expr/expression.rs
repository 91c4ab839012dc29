//! The front door: text in, value out.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::error::{EvalError, SyntaxError, SyntaxKind};
use super::node::Node;
use super::scope::Scope;
use super::value::Value;
use super::{eval, limits, parse};

/// A parsed expression. Cheap to clone; equal when the text is equal; serialised as its text.
///
/// ```
/// use pyoco_core::expr::{Expression, Scope, Value};
///
/// struct Nothing;
/// impl Scope for Nothing {
///     fn ctx(&self, _root: &str) -> Option<&serde_json::Value> {
///         None
///     }
///     fn env(&self, _name: &str) -> Option<&str> {
///         None
///     }
/// }
///
/// let sum = Expression::parse(" 1 + 2 * 3 ").unwrap();
/// assert_eq!(sum.text(), "1 + 2 * 3");
/// assert!(sum.eval(&Nothing).unwrap().py_eq(&Value::from(7)));
///
/// let bad = Expression::parse("len('x')").unwrap_err();
/// assert_eq!(bad.to_string(), "Only $ctx/$env references are allowed.");
/// ```
#[derive(Clone)]
pub struct Expression(Arc<Parsed>);

struct Parsed {
    text: String,
    node: Node,
}

impl Expression {
    /// Reads an expression. White space around it is stripped first, and offsets count from there.
    ///
    /// # Errors
    ///
    /// When the text is not an expression, uses Python that flows do not have, or is over a limit.
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        let text = text.trim_matches(is_python_space);
        if text.len() > limits::TEXT_BYTES {
            let offset = text.floor_char_boundary(limits::TEXT_BYTES);
            return Err(SyntaxError::new(SyntaxKind::TooLong(text.len()), offset));
        }
        // The original looks for its own internal names in the raw text, so also in literals.
        if let Some(offset) = [text.find("_ctx"), text.find("_env")].into_iter().flatten().min() {
            return Err(SyntaxError::new(SyntaxKind::Underscore, offset));
        }
        let node = parse::parse(text)?;
        Ok(Self(Arc::new(Parsed { text: text.to_owned(), node })))
    }

    /// The text, without white space around it.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// Evaluates the expression over `scope`.
    ///
    /// # Errors
    ///
    /// When a reference leads nowhere, an operation does not fit its operands, or a limit is reached.
    pub fn eval(&self, scope: &dyn Scope) -> Result<Value, EvalError> {
        eval::evaluate(&self.0.node, scope).map_err(|cause| EvalError::new(self.text(), cause))
    }
}

/// White space as Python's `str.strip` sees it: Unicode's, and the four ASCII separators.
fn is_python_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\x1c'..='\x1f')
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Expression").field(&self.text()).finish()
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Expression {}

impl Hash for Expression {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text().hash(state);
    }
}

impl Serialize for Expression {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.text())
    }
}

impl<'de> Deserialize<'de> for Expression {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(D::Error::custom)
    }
}
