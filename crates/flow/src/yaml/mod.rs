//! YAML 1.1 as PyYAML's `safe_load` reads it, with a position on every value and hard bounds.
//!
//! `prescan` refuses what would make the parser itself swell, `loosen` forgives indentation, `tree` builds nodes from parser events within
//! the bounds, `construct` gives them their values (tags, merge keys, repeated keys), `scalar` and `date`
//! know the plain scalars, `python` knows how Python compares and prints them. What the values mean to a
//! flow is decided in `document`.

mod construct;
mod date;
mod json;
mod loosen;
mod prescan;
mod python;
mod scalar;
mod tree;

use crate::diagnostic::{Diagnostic, Position};

pub(crate) use json::{NotJson, to_json};
pub(crate) use loosen::Loosened;
pub(crate) use python::{is_truthy, repr, repr_sorted, to_int};
pub(crate) use tree::Style;

/// Deepest nesting of collections.
pub(crate) const MAX_DEPTH: usize = 64;

/// How large a document may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Nodes after every alias has been replaced by what it stands for.
    pub(crate) nodes: usize,
    /// Bytes of scalars after the same.
    pub(crate) bytes: usize,
}

/// A value of the document and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) place: Place,
}

/// Where a node stands in the source.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) at: Position,
    /// First and last character, counted from the beginning of the document.
    pub(crate) chars: (usize, usize),
    pub(crate) style: Style,
}

/// What PyYAML would construct.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Int(i128),
    /// An integer of more digits than anything here can use.
    Huge(String),
    Float(f64),
    Str(String),
    Date(date::Moment),
    Binary(Vec<u8>),
    Seq(Vec<Node>),
    /// Pairs of `!!omap` and `!!pairs`: a list of tuples in Python.
    Pairs(Vec<(Node, Node)>),
    Map(Vec<(Node, Node)>),
    Set(Vec<Node>),
}

impl Node {
    pub(crate) fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::Str(text) => Some(text),
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Huge(_) | Value::Float(_) => None,
            Value::Date(_) | Value::Binary(_) | Value::Seq(_) | Value::Pairs(_) => None,
            Value::Map(_) | Value::Set(_) => None,
        }
    }

    pub(crate) fn as_map(&self) -> Option<&[(Self, Self)]> {
        match &self.value {
            Value::Map(entries) => Some(entries),
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Huge(_) | Value::Float(_) => None,
            Value::Str(_) | Value::Date(_) | Value::Binary(_) | Value::Seq(_) => None,
            Value::Pairs(_) | Value::Set(_) => None,
        }
    }

    pub(crate) fn as_seq(&self) -> Option<&[Self]> {
        match &self.value {
            Value::Seq(items) => Some(items),
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Huge(_) | Value::Float(_) => None,
            Value::Str(_) | Value::Date(_) | Value::Binary(_) | Value::Map(_) => None,
            Value::Pairs(_) | Value::Set(_) => None,
        }
    }

    pub(crate) const fn is_null(&self) -> bool {
        matches!(self.value, Value::Null)
    }
}

/// Reads the one document of `text`, and gives the text that positions inside scalars refer to. An empty stream
/// is a null, as in PyYAML.
pub(crate) fn load(text: &str, bounds: Bounds) -> Result<(Node, Loosened), Diagnostic> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let inside = prescan::check(text, bounds)?;
    let as_it_is = Loosened::unchanged(text);
    let (root, source) = match tree::build(&as_it_is, bounds) {
        Ok(root) => (root, as_it_is),
        Err(problem) => match Loosened::indented(text, &inside) {
            Some(loosened) => (tree::build(&loosened, bounds).map_err(|_| problem)?, loosened),
            None => return Err(problem),
        },
    };
    Ok((construct::value_of(&root)?, source))
}

/// Every problem of YAML itself has the same reason; the message tells them apart.
fn invalid(message: impl std::fmt::Display, at: impl Into<Option<Position>>) -> Diagnostic {
    Diagnostic::new("invalid_yaml", format!("invalid_yaml: {message}")).at(at)
}
