//! Where a character of a scalar's text stands in the YAML source, whatever quotes, escapes, folds or
//! indentation lie between.

use crate::diagnostic::Position;
use crate::yaml::{Place, Style};

/// The source of a document, for looking up characters.
pub(crate) struct Source<'a> {
    text: &'a str,
    /// The byte of every character, where they differ.
    bytes: Option<Vec<usize>>,
}

impl<'a> Source<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let bytes = (!text.is_ascii()).then(|| text.char_indices().map(|(at, _)| at).collect());
        Self { text, bytes }
    }

    fn from_char(&self, index: usize) -> &'a str {
        let at = self.bytes.as_ref().map_or(index, |bytes| bytes.get(index).copied().unwrap_or(self.text.len()));
        self.text.get(at..).unwrap_or_default()
    }
}

/// From offsets in a scalar's text to positions in the source.
#[derive(Debug, Clone)]
pub(crate) struct Locator {
    /// Runs in which text and source go in step, by rising offset. Empty: only the scalar's place is known.
    runs: Vec<Run>,
    whole: Position,
}

#[derive(Debug, Clone, Copy)]
struct Run {
    offset: usize,
    line: u32,
    column: u32,
}

impl Locator {
    /// Aligns `text` with the place it was read from; where that fails, every position is the scalar's.
    pub(crate) fn new(source: &Source<'_>, text: &str, place: Place) -> Self {
        let rest = source.from_char(place.chars.0);
        let runs = Walk { rest, line: place.at.line, column: place.at.column, style: place.style }.align(text);
        Self { runs: runs.unwrap_or_default(), whole: place.at }
    }

    /// The position of `text[start..end]`, cut at the end of its line.
    pub(crate) fn position(&self, text: &str, start: usize, end: usize) -> Position {
        let next = self.runs.partition_point(|run| run.offset <= start);
        let Some(run) = next.checked_sub(1).and_then(|number| self.runs.get(number)) else {
            return self.runs.first().map_or(self.whole, |run| Position::new(run.line, run.column, 1));
        };
        let limit = self.runs.get(next).map_or(text.len(), |run| run.offset);
        let count = |from: usize, to: usize| {
            let slice = text.get(from..to).unwrap_or_default();
            let line = slice.split(['\n', '\r']).next().unwrap_or_default();
            u32::try_from(line.chars().count()).unwrap_or(u32::MAX)
        };
        let length = count(start, end.min(limit)).max(1);
        Position::new(run.line, run.column.saturating_add(count(run.offset, start)), length)
    }
}

/// A walk over the source of one scalar.
struct Walk<'a> {
    rest: &'a str,
    line: u32,
    column: u32,
    style: Style,
}

impl Walk<'_> {
    /// Every visible character of the text must turn up in the source, in order, with only white space
    /// between; anything else (an escape by number, an odd header) ends the attempt.
    fn align(mut self, text: &str) -> Option<Vec<Run>> {
        match self.style {
            Style::Plain => {}
            Style::SingleQuoted | Style::DoubleQuoted => {
                self.next()?;
            }
            Style::Block => while !matches!(self.next()?, '\n' | '\r') {},
            Style::Collection => return None,
        }
        let mut runs: Vec<Run> = Vec::new();
        let mut expected = (0, 0);
        for (offset, wanted) in text.char_indices() {
            if wanted.is_whitespace() {
                expected.1 += 1;
                if matches!(wanted, '\n' | '\r') {
                    expected = (0, 0);
                }
                continue;
            }
            let (line, column) = self.find(wanted)?;
            if expected != (line, column) {
                runs.push(Run { offset, line, column });
            }
            expected = (self.line, self.column);
        }
        Some(runs)
    }

    /// Moves behind the next character that stands for `wanted` and says where that one begins.
    fn find(&mut self, wanted: char) -> Option<(u32, u32)> {
        loop {
            let place = (self.line, self.column);
            let c = self.next()?;
            match (self.style, c) {
                (Style::DoubleQuoted, '\\') => match self.next()? {
                    'n' | 'r' | 't' | ' ' | '\n' | '\r' | '\t' => {}
                    escaped @ ('"' | '\\' | '/') if escaped == wanted => return Some(place),
                    _ => return None,
                },
                (Style::SingleQuoted, '\'') => {
                    return (self.next() == Some('\'') && wanted == '\'').then_some(place);
                }
                _ if c == wanted => return Some(place),
                _ if c.is_whitespace() => {}
                _ => return None,
            }
        }
    }

    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        match c {
            '\r' if self.rest.starts_with('\n') => {}
            '\n' | '\r' => {
                self.line += 1;
                self.column = 1;
            }
            _ => self.column += 1,
        }
        Some(c)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::{self, Bounds};

    /// Where the first `!` of the graph stands.
    fn found(source: &str) -> (u32, u32) {
        let root = yaml::load(source, Bounds { nodes: 100, bytes: 1000 }).unwrap();
        let node = &root.as_map().unwrap()[0].1;
        let text = node.as_str().unwrap();
        let at = text.find('!').unwrap();
        let position = Locator::new(&Source::new(source), text, node.place).position(text, at, at + 1);
        (position.line, position.column)
    }

    #[test]
    fn every_style_of_scalar_maps_back_to_its_line_and_column() {
        for (source, place) in [
            ("graph: a >> !", (1, 13)),
            ("graph: 'it''s !'", (1, 15)),
            ("graph: \"a \\\"\\n !\"", (1, 16)),
            ("graph: \"a\\\n   !\"", (2, 4)),
            ("graph: |\n  a\n\n    !\n", (4, 5)),
            ("graph: |2\n    a\n  !\n", (3, 3)),
            ("graph: >-\n  a\n  b !\n", (3, 5)),
            ("# é\ngraph: |\r\n  é a\r\n  é !\r\n", (4, 5)),
            ("graph: a\n  !", (2, 3)),
            ("graph: \"\\x41 !\"", (1, 8)),
        ] {
            assert_eq!(found(source), place, "{source}");
        }
    }
}
