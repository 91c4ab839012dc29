//! A second chance for documents whose brackets or quotes span lines that are not indented: PyYAML takes
//! them, our parser insists on the indentation of YAML 1.2.
//!
//! Inside brackets and quotes leading spaces mean nothing, so they are added; positions are told without them.

/// A text that may have spaces added in front of some lines.
#[derive(Debug)]
pub(crate) struct Loosened {
    pub(crate) text: String,
    /// Lines with the number of spaces added, by rising line.
    added: Vec<(u32, u32)>,
}

impl Loosened {
    /// The text as it is.
    pub(super) fn unchanged(text: &str) -> Self {
        Self { text: text.to_owned(), added: Vec::new() }
    }

    /// Indents the lines that begin inside a bracket or quote beyond it. `None` when there is none to change.
    pub(super) fn indented(text: &str, inside: &[(u32, usize)]) -> Option<Self> {
        // A lone carriage return ends a line for the parser, but not for the split below.
        if text.replace("\r\n", "\n").contains('\r') {
            return None;
        }
        let mut added = Vec::new();
        let mut result = String::with_capacity(text.len() + text.len() / 8);
        let mut inside = inside.iter().peekable();
        for (number, line) in (1_u32..).zip(text.split_inclusive('\n')) {
            if let Some((_, column)) = inside.next_if(|(inner, _)| *inner == number) {
                let indent = line.len() - line.trim_start_matches(' ').len();
                if indent <= *column && !line.trim().is_empty() {
                    let spaces = column + 1 - indent;
                    // Lines of a hostile document could grow it without end.
                    if result.len() + spaces > text.len().saturating_mul(4) {
                        return None;
                    }
                    result.extend(std::iter::repeat_n(' ', spaces));
                    added.push((number, u32::try_from(spaces).unwrap_or(u32::MAX)));
                }
            }
            result.push_str(line);
        }
        (!added.is_empty()).then_some(Self { text: result, added })
    }

    /// How many spaces were added in front of a line.
    pub(crate) fn added_to(&self, line: u32) -> u32 {
        self.added.binary_search_by_key(&line, |(number, _)| *number).map_or(0, |found| self.added[found].1)
    }
}
