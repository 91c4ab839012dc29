//! One cheap pass before the parser: characters YAML forbids, and flow collections so long or deep that the
//! parser, which reads ahead to the closing bracket, would hold a token for each of their entries. Tabs, which
//! the parser would let pass and PyYAML does not, are refused here too.

use super::{Bounds, MAX_DEPTH, invalid};
use crate::diagnostic::{Diagnostic, Position};

/// Checks the text and gives the lines that begin inside brackets or quotes, with the column of the outermost
/// one: PyYAML does not care how such lines are indented, our parser does.
pub(super) fn check(text: &str, bounds: Bounds) -> Result<Vec<(u32, usize)>, Diagnostic> {
    let mut inside = Vec::new();
    let mut scan = Scan { depth: 0, entries: 0, line: 0, quote: None, outermost: 0, bounds };
    // The indentation that the lines of a block scalar must exceed, and that of the last line outside of one.
    let mut block: Option<Option<usize>> = None;
    let mut previous: Option<usize> = None;
    for (number, line) in (1_u32..).zip(lines(text)) {
        scan.line = number;
        if let Some(column) = line.chars().position(|c| !is_printable(c)) {
            let at = Position::new(number, u32::try_from(column).unwrap_or(u32::MAX).saturating_add(1), 1);
            return Err(invalid("the document contains a control character", at));
        }
        if line.strip_prefix("%YAML").is_some_and(|rest| !rest.trim_start().starts_with("1.")) {
            return Err(invalid("only YAML 1 is supported", Position::new(number, 1, 5)));
        }
        let indent = line.len() - line.trim_start_matches(' ').len();
        let blank = line.trim_matches([' ', '\t']).is_empty();
        if let Some(parent) = block {
            // The text of a block scalar lasts while its lines are indented deeper than its key.
            if blank || parent.is_none_or(|parent| indent > parent) {
                continue;
            }
            block = None;
        }
        if scan.depth > 0 || scan.quote.is_some() {
            inside.push((number, scan.outermost));
        }
        scan.line(line)?;
        if scan.depth == 0 && scan.quote.is_none() && ends_in_block_header(line) {
            // A header on a line of its own belongs to the key above it.
            let alone = line[indent..].starts_with(['|', '>', '&', '!']) || line.starts_with("---");
            block = Some(if alone { previous } else { Some(indent) });
        }
        if !blank {
            previous = Some(indent);
        }
    }
    Ok(inside)
}

struct Scan {
    depth: usize,
    entries: usize,
    line: u32,
    quote: Option<u8>,
    /// Where the bracket or quote stands in which everything else is.
    outermost: usize,
    bounds: Bounds,
}

impl Scan {
    fn line(&mut self, line: &str) -> Result<(), Diagnostic> {
        let bytes = line.as_bytes();
        let mut at = 0;
        // Whether a token may begin here: brackets and quotes inside a plain scalar are text.
        let mut fresh = true;
        while let Some(&byte) = bytes.get(at) {
            if let Some(quote) = self.quote {
                match byte {
                    b'\\' if quote == b'"' => at += 1,
                    b'\'' if quote == b'\'' && bytes.get(at + 1) == Some(&b'\'') => at += 1,
                    _ if byte == quote => self.quote = None,
                    _ => {}
                }
                at += 1;
                fresh = false;
                continue;
            }
            match byte {
                b'#' if at == 0 || matches!(bytes[at - 1], b' ' | b'\t') => break,
                b'\t' => return Err(invalid("a tab cannot stand here; use spaces", self.here(at))),
                b'"' | b'\'' if fresh => {
                    self.quote = Some(byte);
                    if self.depth == 0 {
                        self.outermost = at;
                    }
                }
                b'[' | b'{' if fresh || self.depth > 0 => self.open(at)?,
                b']' | b'}' => self.depth = self.depth.saturating_sub(1),
                b',' if self.depth > 0 => self.entry(at)?,
                _ => {}
            }
            fresh = match byte {
                b' ' | b'\t' => fresh || matches!(bytes.get(at.wrapping_sub(1)), Some(b':' | b'-' | b'?')),
                b'[' | b'{' | b',' => self.depth > 0,
                b':' => self.depth > 0,
                b'-' | b'?' => fresh,
                // Properties of a node: what follows them begins afresh.
                b'&' | b'!' if fresh => {
                    at += bytes[at..].iter().take_while(|b| !matches!(b, b' ' | b',' | b'[' | b'{')).count();
                    continue;
                }
                _ => false,
            };
            at += 1;
        }
        Ok(())
    }

    fn open(&mut self, at: usize) -> Result<(), Diagnostic> {
        if self.depth == 0 {
            self.outermost = at;
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let message = format!("collections are nested deeper than {MAX_DEPTH} levels");
            return Err(invalid(message, self.here(at)));
        }
        self.entry(at)
    }

    fn entry(&mut self, at: usize) -> Result<(), Diagnostic> {
        self.entries += 1;
        if self.entries > self.bounds.nodes {
            return Err(too_many(self.bounds.nodes, self.here(at)));
        }
        Ok(())
    }

    fn here(&self, at: usize) -> Position {
        Position::new(self.line, u32::try_from(at).unwrap_or(u32::MAX).saturating_add(1), 1)
    }
}

/// The document has more values than a flow can need.
pub(super) fn too_many(limit: usize, at: Position) -> Diagnostic {
    invalid(format!("the document has more than {limit} values"), at)
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)).flat_map(|line| line.split('\r'))
}

/// What PyYAML's reader lets through.
const fn is_printable(c: char) -> bool {
    matches!(c, '\t' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

/// Whether the line ends in `|`, `>-`, `|2+  # comment` and the like.
fn ends_in_block_header(line: &str) -> bool {
    let line = line.find(" #").map_or(line, |comment| &line[..comment]).trim_end_matches([' ', '\t']);
    let header = line.trim_end_matches(|c: char| c.is_ascii_digit() || c == '+' || c == '-');
    let Some(before) = header.strip_suffix(['|', '>']) else { return false };
    line.len() - header.len() <= 2 && (before.is_empty() || before.ends_with([' ', '\t']))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { nodes: 10, bytes: 1000 };

    #[test]
    fn commas_count_only_inside_brackets() {
        let row = "1,2,3,4,5,6,7,8,9,10,11,12,13";
        for text in [
            format!("a: {row}\n"),
            format!("a: '{row}'\n"),
            format!("a: [\"{row}\"]\n"),
            format!("a: |\n  [{row}]\n  it's\n  {row}\nb: [1]\n"),
            format!("a: b # [{row}]\n"),
            format!("- |\n [{row}]\n- 1"),
            format!("a:\n  |\n [{row}]\nb: 1"),
            format!("--- |\n[{row}]\n"),
            format!("a: it's {row} [x\nb: it's, [{row}\n"),
        ] {
            assert!(check(&text, BOUNDS).is_ok(), "{text}");
        }
        for text in
            [format!("a: [{row}]"), format!("- {{{row}}}"), format!("&x [{row}]"), format!("a: [\n {row}\n]")]
        {
            assert!(check(&text, BOUNDS).is_err(), "{text}");
        }
    }

    #[test]
    fn deep_brackets_and_control_characters_are_refused() {
        assert!(check(&"[".repeat(65), Bounds { nodes: 1000, bytes: 0 }).is_err());
        assert!(check(&"[".repeat(64), Bounds { nodes: 1000, bytes: 0 }).is_ok());
        let problem = check("a: b\nc: \u{7}", BOUNDS).unwrap_err();
        assert_eq!((problem.line(), problem.column()), (Some(2), Some(4)));
        assert!(check("a: \u{feff}é\u{1F955}\r\n", BOUNDS).is_ok());
        for tabbed in ["\ta: 1", "a:\tb", "a: b\tc", "- a\t# c", "a: [\t1]"] {
            assert!(check(tabbed, BOUNDS).is_err(), "{tabbed}");
        }
        for tabbed in ["a: 'b\tc'", "a: b #\tc", "a: |\n  b\tc", "a:\n  >-\n  b\tc"] {
            assert!(check(tabbed, BOUNDS).is_ok(), "{tabbed}");
        }
    }
}
