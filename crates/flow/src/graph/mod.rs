//! The server graph language: Python expressions over tasks, parsed and never executed.
//!
//! `lex` and `parse` give a syntax tree, `meaning` works out what its operators build. A form that the
//! reference accepts but turns into something else is refused here, with what to write instead.

mod ast;
mod attach;
mod group;
mod lex;
mod loops;
mod meaning;
mod parse;
mod refusal;
mod statement;
mod value;

use crate::diagnostic::{Diagnostic, Position};
use crate::program::Program;
use crate::source::Locator;

pub(crate) use loops::DEFAULT_MAX_ROUNDS;

/// Parses a graph and works out its meaning.
pub(crate) fn read(text: &str, locator: &Locator) -> Result<Program, Diagnostic> {
    let place = Places { text, locator };
    let tokens = lex::tokens(text).map_err(|error| place.refuse(error))?;
    let statements = parse::statements(text, &tokens).map_err(|error| place.refuse(error))?;
    meaning::Meaning::new(place).read(&statements)
}

/// A part of the graph text, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Span {
    const fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    const fn to(self, end: Self) -> Self {
        Self { start: self.start, end: end.end }
    }
}

/// A problem inside the graph text.
#[derive(Debug)]
struct Problem {
    message: String,
    help: Option<String>,
    span: Span,
}

impl Problem {
    fn new(message: impl Into<String>, span: Span) -> Self {
        Self { message: message.into(), help: None, span }
    }

    fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// The graph text and where its parts stand in the document.
#[derive(Clone, Copy)]
struct Places<'a> {
    text: &'a str,
    locator: &'a Locator,
}

impl<'a> Places<'a> {
    fn position(&self, span: Span) -> Position {
        self.locator.position(self.text, span.start, span.end)
    }

    fn slice(&self, span: Span) -> &'a str {
        self.text.get(span.start..span.end).unwrap_or_default()
    }

    fn refuse(&self, problem: Problem) -> Diagnostic {
        let diagnostic = Diagnostic::new("invalid_graph", problem.message).at(self.position(problem.span));
        match problem.help {
            Some(help) => diagnostic.with_help(help),
            None => diagnostic,
        }
    }
}
