//! The tree of an expression.
//!
//! Chains of equal precedence are flat lists, not left-leaning trees: only brackets, signs, `not` and `**` make
//! the tree deeper, and the parser limits those. So a walk over it, and its drop, may recurse.

use super::value::Value;

#[derive(Debug, Clone)]
pub(super) enum Node {
    Constant(Value),
    Reference { root: Root, path: Box<str> },
    Logic { operator: Logic, operands: Vec<Self> },
    Not(Box<Self>),
    Sign { operator: Sign, operand: Box<Self> },
    Power { base: Box<Self>, exponent: Box<Self> },
    Chain { first: Box<Self>, rest: Vec<(Arithmetic, Self)> },
    Compare { first: Box<Self>, rest: Vec<(Comparison, Self)> },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Root {
    Ctx,
    Env,
}

impl Root {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Ctx => "$ctx",
            Self::Env => "$env",
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Logic {
    And,
    Or,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Sign {
    Plus,
    Minus,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Ordered(Order),
    In,
    NotIn,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Order {
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}
