//! The syntax tree of a graph. Chains are flat lists, so that a long one is not a deep one.

use super::Span;

/// One statement.
#[derive(Debug)]
pub(super) enum Statement {
    /// Expressions, each evaluated for its effect.
    Expressions(Vec<Expr>),
    /// `x = a >> b`.
    Binding { name: Span, value: Expr },
    /// `a.task.retries = 2`.
    Policy { task: Span, field: Span, value: Expr },
}

#[derive(Debug)]
pub(super) struct Expr {
    pub(super) kind: ExprKind,
    pub(super) span: Span,
}

#[derive(Debug)]
pub(super) enum ExprKind {
    /// A name; parentheses around it are part of the expression, not of the name.
    Name(Span),
    Literal(Literal),
    /// `[..]`, or a tuple.
    List {
        items: Vec<Expr>,
        tuple: bool,
    },
    /// `a >> b >> c`.
    Shift(Vec<Expr>),
    /// `a & b & c`.
    All(Vec<Expr>),
    /// `a | b | c`.
    Any(Vec<Expr>),
    /// `x % y`.
    Until(Box<Expr>, Box<Expr>),
    /// `x[y]`.
    Index(Box<Expr>, Box<Expr>),
    /// `x(..)`.
    Call(Box<Expr>, Vec<Argument>),
}

#[derive(Debug)]
pub(super) struct Argument {
    pub(super) keyword: Option<Span>,
    pub(super) value: Expr,
}

/// A value that Python writes literally.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Literal {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str {
        text: String,
        /// Whether the text stands in the source as it is, one byte for one.
        verbatim: bool,
    },
}
