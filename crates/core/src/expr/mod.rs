//! The expression language of flows: conditions, loop sources, repeat counts and join rules.
//!
//! Here lives everything between the text `$ctx.params.n > 2` and its value: a lexer and a parser for the
//! small part of Python's expressions that flows may use, Python's arithmetic, and the limits that make
//! both safe for text from strangers. Evaluation reads a [`Scope`] and changes nothing.
//!
//! Not here: what the roots (`params`, `results`, `loop`, ...) hold, which is the caller's [`Scope`], and the
//! configured inputs of tasks, which use another, simpler notation.
//!
//! The one invariant: no text and no data can make parsing or evaluating panic, recurse deeply or work without
//! bound. Every limit is in `limits` and ends in an error.
//!
//! | file | what |
//! |---|---|
//! | `expression` | [`Expression`], the front door |
//! | `lex`, `parse`, `node` | text to tokens to tree, naming what is refused |
//! | `eval`, `scope` | the tree over a [`Scope`] |
//! | `value`, `number`, `repr` | [`Value`], exact integer and float conversions, Python's `repr` |
//! | `ops` | arithmetic, comparison, `%` formatting |
//! | `error`, `limits` | what can go wrong, and how much is too much |

mod error;
mod eval;
mod expression;
mod lex;
mod limits;
mod node;
mod number;
mod ops;
mod parse;
mod repr;
mod scope;
mod value;

pub use error::{Cause, EvalError, SyntaxError, SyntaxKind};
pub use expression::Expression;
pub use scope::Scope;
pub use value::Value;
