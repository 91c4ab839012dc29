//! Where a character of a scalar's text stands in the YAML source, whatever quotes, escapes, folds or
//! indentation lie between.

use crate::diagnostic::Position;
use crate::yaml::{Loosened, Place, Style};

/// The source of a document, for looking up characters.
pub(crate) struct Source<'a> {
    loosened: &'a Loosened,
    /// The byte of every character, where they differ.
    bytes: Option<Vec<usize>>,
}

impl<'a> Source<'a> {
    pub(crate) fn new(loosened: &'a Loosened) -> Self {
        let text = &loosened.text;
        let bytes = (!text.is_ascii()).then(|| text.char_indices().map(|(at, _)| at).collect());
        Self { loosened, bytes }
    }

    fn after_char(&self, index: usize) -> &'a str {
        let text = self.loosened.text.as_str();
        let at = self.bytes.as_ref().map_or(index, |bytes| bytes.get(index).copied().unwrap_or(text.len()));
        text.get(at..).unwrap_or_default()
    }
}

/// Longest run and longest underlining, in bytes.
const LONGEST: usize = 256;

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
        let rest = source.after_char(place.chars.0);
        let Position { line, column, .. } = place.at;
        let walk =
            Walk { rest, line, column: i64::from(column), style: place.style, loosened: source.loosened };
        let runs = walk.align(text);
        Self { runs: runs.unwrap_or_default(), whole: place.at }
    }

    /// The position of `text[start..end]`, cut at the end of its line.
    pub(crate) fn position(&self, text: &str, start: usize, end: usize) -> Position {
        let next = self.runs.partition_point(|run| run.offset <= start);
        let Some(run) = next.checked_sub(1).and_then(|number| self.runs.get(number)) else {
            return self.runs.first().map_or(self.whole, |run| Position::new(run.line, run.column, 1));
        };
        let other_line = self
            .runs
            .get(next..)
            .unwrap_or_default()
            .iter()
            .take(LONGEST)
            .find(|other| other.line != run.line);
        let limit = other_line.map_or(text.len(), |run| run.offset).min(start.saturating_add(LONGEST));
        let count = |from: usize, to: usize| {
            let slice = text.get(from..text.floor_char_boundary(to)).unwrap_or_default();
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
    /// Below one on spaces that were added.
    column: i64,
    style: Style,
    loosened: &'a Loosened,
}

impl Walk<'_> {
    /// Every visible character of the text must turn up in the source, in order, with only white space
    /// between; anything else (an escape by number, an odd header) ends the attempt.
    fn align(mut self, text: &str) -> Option<Vec<Run>> {
        let had_properties = self.skip_properties()?;
        match self.style {
            // The parser places a block scalar without properties at its first character, behind the header.
            Style::Block if had_properties => while !matches!(self.next()?, '\n' | '\r') {},
            Style::Plain | Style::Block => {}
            Style::SingleQuoted | Style::DoubleQuoted => {
                self.next()?;
            }
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
            // Runs are kept short, because a position inside one is found by counting.
            let far = runs.last().is_none_or(|run| offset - run.offset > LONGEST);
            if expected != (line, column) || far {
                runs.push(Run { offset, line, column });
            }
            expected = (line, column + 1);
        }
        Some(runs)
    }

    /// An anchor or a tag before the scalar. No plain scalar begins like one; in a block one it would be text.
    fn skip_properties(&mut self) -> Option<bool> {
        let mut found = false;
        while self.rest.starts_with(['&', '!']) && (found || self.style != Style::Block || self.has_header())
        {
            found = true;
            while !self.rest.starts_with(char::is_whitespace) {
                self.next()?;
            }
            while self.rest.starts_with(char::is_whitespace) {
                self.next()?;
            }
        }
        Some(found)
    }

    fn has_header(&self) -> bool {
        let line = self.rest.split(['\n', '\r']).next().unwrap_or_default();
        let line = line.find(" #").map_or(line, |comment| &line[..comment]);
        line.trim_end()
            .trim_end_matches(['+', '-', '1', '2', '3', '4', '5', '6', '7', '8', '9'])
            .ends_with(['|', '>'])
    }

    /// Moves behind the next character that stands for `wanted` and says where that one begins.
    fn find(&mut self, wanted: char) -> Option<(u32, u32)> {
        loop {
            let place = (self.line, u32::try_from(self.column).unwrap_or(1));
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
                self.column = 1 - i64::from(self.loosened.added_to(self.line));
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
        let (root, loosened) = yaml::load(source, Bounds { nodes: 100, bytes: 1000 }).unwrap();
        let node = &root.as_map().unwrap()[0].1;
        let text = node.as_str().unwrap();
        let at = text.find('!').unwrap();
        let position = Locator::new(&Source::new(&loosened), text, node.place).position(text, at, at + 1);
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
            ("graph: | # comment\n\n\n  >> !\n", (4, 6)),
            ("graph: >-\n  a\n  b !\n", (3, 5)),
            ("# é\ngraph: |\r\n  é a\r\n  é !\r\n", (4, 5)),
            ("graph: a\n  !", (2, 3)),
            ("graph: \"a\nb !\"", (2, 3)),
            ("graph: &g 'a !'", (1, 14)),
            ("graph: &g !!str |-\n  a !", (2, 5)),
            ("graph: \"\\x41 !\"", (1, 8)),
        ] {
            assert_eq!(found(source), place, "{source}");
        }
    }
}
