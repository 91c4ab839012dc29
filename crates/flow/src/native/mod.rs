//! The native graph language of the pyoco 0.8 command line: one pipeline of tasks, pipes, loops and switches.
//!
//! `lex` and `parse` give terms, `expand` puts pipes in their places, `lower` makes steps of them. Messages
//! are those of the reference, because users compare them; positions in a message count characters of the
//! graph text, positions of a diagnostic are those of the document.

mod expand;
mod expression;
mod lex;
mod lower;
mod parse;

use indexmap::IndexMap;

use crate::diagnostic::{Diagnostic, Position};
use crate::document::Text;
use crate::program::Step;
use crate::source::{Locator, Source};

/// A native graph whose names are not looked up yet.
#[derive(Debug, Clone)]
pub(crate) struct Graph {
    /// The tasks in the order they are written; steps refer to them by number.
    pub(crate) mentions: Vec<Mention>,
    pub(crate) steps: Vec<Step>,
    pub(crate) has_control: bool,
}

/// One place where the graph names a task.
#[derive(Debug, Clone)]
pub(crate) struct Mention {
    /// The node's own name, in `node: task`.
    pub(crate) node: Option<String>,
    pub(crate) task: String,
    pub(crate) at: Position,
}

/// Parses a graph with its pipes.
pub(crate) fn read(
    graph: &Text,
    pipes: &IndexMap<String, Text>,
    source: &Source<'_>,
) -> Result<Graph, Diagnostic> {
    let locator = Locator::new(source, &graph.text, graph.place);
    let pipeline = parse::pipeline(&graph.text, &Where::Text(&graph.text, &locator), 0)?;
    let pipeline = expand::Expansion::new(pipes, source).run(&pipeline)?;
    lower::lower(&pipeline)
}

/// Where the characters of a graph text stand in the document.
pub(crate) enum Where<'a> {
    Text(&'a str, &'a Locator),
    /// Inside a quoted branch: only its own place is known.
    Fixed(Position),
}

impl Where<'_> {
    fn position(&self, start: usize, end: usize) -> Position {
        match self {
            Self::Text(text, locator) => locator.position(text, start, end),
            Self::Fixed(position) => *position,
        }
    }
}

fn refuse(message: impl Into<String>, at: Position) -> Diagnostic {
    Diagnostic::new("invalid_graph", message).at(at)
}
