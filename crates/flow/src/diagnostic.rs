//! What is wrong with a document, where, and what to write instead.
//!
//! A reason is machine text and stable; a message is for the author. Not here: which problems exist (every
//! module reports its own) and how a surface turns them into an answer.

use std::fmt;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

/// A place in the YAML document. Lines and columns count from one, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
    /// How many characters the caret underlines; never beyond the end of the line.
    pub length: u32,
}

impl Position {
    pub(crate) const fn new(line: u32, column: u32, length: u32) -> Self {
        Self { line, column, length }
    }
}

/// One problem of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    reason: String,
    message: String,
    position: Option<Position>,
    help: Option<String>,
}

impl Diagnostic {
    /// A problem with its machine text and its explanation.
    pub fn new(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { reason: reason.into(), message: message.into(), position: None, help: None }
    }

    /// Says where it is.
    #[must_use]
    pub fn at(mut self, position: impl Into<Option<Position>>) -> Self {
        self.position = position.into();
        self
    }

    /// Says what to do about it.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The stable machine text, e.g. `unknown_flow_keys: ['extra']` or `invalid_graph`.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The explanation for the author.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Where it is, when that is known.
    pub const fn position(&self) -> Option<Position> {
        self.position
    }

    /// Its line, counted from one.
    pub fn line(&self) -> Option<u32> {
        self.position.map(|position| position.line)
    }

    /// Its column in characters, counted from one.
    pub fn column(&self) -> Option<u32> {
        self.position.map(|position| position.column)
    }

    /// What to write instead.
    pub fn help(&self) -> Option<&str> {
        self.help.as_deref()
    }

    fn render(&self, file_name: &str, source: &str) -> String {
        let title = Level::ERROR.primary_title(self.message.as_str());
        let mut group = match self.position.and_then(|position| byte_range(source, position)) {
            Some(range) => title.element(
                Snippet::source(source).path(file_name).annotation(AnnotationKind::Primary.span(range)),
            ),
            None => Group::with_title(title),
        };
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        Renderer::plain().render(&[group])
    }
}

/// The bytes of `source` under a position; `None` when the source is not the one that was read.
fn byte_range(source: &str, position: Position) -> Option<std::ops::Range<usize>> {
    let mut start = 0;
    for _ in 1..position.line {
        let rest = source.get(start..)?;
        let at = rest.find(['\n', '\r'])?;
        start += at + if rest[at..].starts_with("\r\n") { 2 } else { 1 };
    }
    let line = source.get(start..)?.split(['\n', '\r']).next()?;
    let offset = |column: usize| line.char_indices().nth(column).map_or(line.len(), |(at, _)| at);
    let first = position.column.saturating_sub(1) as usize;
    Some(start + offset(first)..start + offset(first + position.length as usize))
}

/// Why a document is no flow: one problem or more, the first of which decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowError {
    first: Box<Diagnostic>,
    others: Vec<Diagnostic>,
}

impl FlowError {
    pub(crate) fn several(mut problems: Vec<Diagnostic>) -> Option<Self> {
        if problems.is_empty() {
            return None;
        }
        let first = Box::new(problems.remove(0));
        Some(Self { first, others: problems })
    }

    /// The problem that decides.
    pub const fn first(&self) -> &Diagnostic {
        &self.first
    }

    /// The machine text of the first problem.
    pub fn reason(&self) -> &str {
        self.first.reason()
    }

    /// All problems, the deciding one first.
    pub fn diagnostics(&self) -> impl Iterator<Item = &Diagnostic> {
        std::iter::once(&*self.first).chain(&self.others)
    }

    /// Draws every problem under the line it is about, as a compiler does.
    pub fn render(&self, file_name: &str, source: &str) -> String {
        let source = source.strip_prefix('\u{feff}').unwrap_or(source);
        let drawn: Vec<String> =
            self.diagnostics().map(|problem| problem.render(file_name, source)).collect();
        drawn.join("\n\n")
    }
}

impl From<Diagnostic> for FlowError {
    fn from(problem: Diagnostic) -> Self {
        Self { first: Box::new(problem), others: Vec::new() }
    }
}

impl fmt::Display for FlowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.first.message())
    }
}

impl std::error::Error for FlowError {}
