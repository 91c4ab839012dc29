//! What can go wrong with an expression, when it is read and when it is evaluated.

use thiserror::Error;

use super::limits;

/// Why a text is not an expression of flows, and where.
///
/// The display is the original's message where that is its own; where the original shows its interpreter's,
/// the words are ours.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{kind}")]
pub struct SyntaxError {
    kind: SyntaxKind,
    offset: usize,
}

impl SyntaxError {
    pub(super) fn new(kind: SyntaxKind, offset: usize) -> Self {
        Self { kind, offset }
    }

    pub(super) fn invalid(message: impl Into<String>, offset: usize) -> Self {
        Self::new(SyntaxKind::Invalid(message.into()), offset)
    }

    /// What is wrong.
    pub fn kind(&self) -> &SyntaxKind {
        &self.kind
    }

    /// Where: a byte offset in the stripped text, at most its length.
    pub fn offset(&self) -> usize {
        self.offset
    }
}

/// The ways in which a text can fail to be an expression.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SyntaxKind {
    /// The text contains `_ctx` or `_env`, anywhere.
    #[error("Use $ctx/$env references instead of _ctx/_env.")]
    Underscore,
    /// A `$` that starts neither `$ctx.name` nor `$env.name`.
    #[error("All references must use $ctx.xxx or $env.xxx form.")]
    Reference,
    /// A bare name.
    #[error("Unknown identifier '{0}' in expression.")]
    Name(String),
    /// A call of anything.
    #[error("Only $ctx/$env references are allowed.")]
    Call,
    /// Python that flows do not use, under Python's name for it.
    #[error("Unsupported syntax: {0}")]
    Unsupported(&'static str),
    /// Not an expression at all.
    #[error("{0}")]
    Invalid(String),
    /// More text than anyone writes.
    #[error("Expression is too long: {0} bytes (limit {limit})", limit = limits::TEXT_BYTES)]
    TooLong(usize),
    /// More nesting than anyone reads.
    #[error("Expression is nested too deeply (limit {limit} levels)", limit = limits::NESTING)]
    TooDeep,
}

/// An expression that could not be evaluated.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("Failed to evaluate expression '{text}': {cause}")]
pub struct EvalError {
    text: String,
    cause: Cause,
}

impl EvalError {
    pub(super) fn new(text: &str, cause: Cause) -> Self {
        Self { text: text.to_owned(), cause }
    }

    /// What went wrong, without the expression's text.
    pub fn cause(&self) -> &Cause {
        &self.cause
    }
}

/// Why an evaluation failed. The texts are Python's where Python has one.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Cause {
    /// A reference that leads nowhere; holds it as written, `$ctx.params.x`.
    #[error("{0} not found.")]
    NotFound(String),
    /// An operation on values that do not have it.
    #[error("{0}")]
    Type(String),
    /// A value that an operation cannot take, or a bad format.
    #[error("{0}")]
    Value(String),
    /// Division, modulo or a negative power of zero.
    #[error("{0}")]
    ZeroDivision(&'static str),
    /// A number that does not fit where Python has to put it.
    #[error("{0}")]
    Overflow(&'static str),
    /// One of our own limits.
    #[error("{0}")]
    Limit(&'static str),
}

impl Cause {
    pub(super) fn type_error(message: impl Into<String>) -> Self {
        Self::Type(message.into())
    }
}
