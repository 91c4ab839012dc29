//! The `.env` file: lines of `NAME=value`, in the dialect of the original. It feeds the configuration and never changes the
//! environment of the process.

use std::collections::HashMap;

/// Reads the text of a file. Lines that make no sense are skipped; later lines win.
pub(super) fn parse(text: &str) -> HashMap<String, String> {
    text.lines().filter_map(line).collect()
}

fn line(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let line = line.strip_prefix("export ").map_or(line, str::trim_start);
    let (key, value) = line.split_once('=')?;
    let key = key.trim();
    is_name(key).then(|| (key.to_owned(), unquote(value.trim())))
}

fn is_name(key: &str) -> bool {
    let starts = key.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    starts && key.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

fn unquote(value: &str) -> String {
    let inside = |quote: char| value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    if let Some(literal) = inside('\'') {
        return literal.to_owned();
    }
    if let Some(escaped) = inside('"') {
        return unescape(escaped);
    }
    // Only a blank before it makes a comment: a '#' may be part of a password.
    let end = value.find(" #").unwrap_or(value.len());
    value.get(..end).unwrap_or(value).trim_end().to_owned()
}

fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            plain.push(letter);
            continue;
        }
        match letters.next() {
            Some('n') => plain.push('\n'),
            Some('r') => plain.push('\r'),
            Some('t') => plain.push('\t'),
            Some(escaped @ ('"' | '\\' | '\'')) => plain.push(escaped),
            Some(other) => plain.extend(['\\', other]),
            None => plain.push('\\'),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_the_original_reads_them() {
        let text = "# a comment\n\nexport A=1\nB = two words  # said\nC='lit\\n # kept'\nD=\"x\\ny\"\nE=a#b\n1X=no\nno line\nA=2\nF=\n";
        let read = parse(text);
        let value = |key: &str| read.get(key).map(String::as_str);
        assert_eq!(value("A"), Some("2"));
        assert_eq!(value("B"), Some("two words"));
        assert_eq!(value("C"), Some("lit\\n # kept"));
        assert_eq!(value("D"), Some("x\ny"));
        assert_eq!(value("E"), Some("a#b"));
        assert_eq!(value("F"), Some(""));
        assert_eq!(read.len(), 6);
    }
}
