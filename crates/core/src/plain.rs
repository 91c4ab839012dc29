//! Text of strangers, made safe to show: on a terminal it can colour itself, and neither moves the cursor nor turns the direction of
//! what stands beside it.

/// Adds a text. Control characters are spelt out (`\x07`), but for the tabulator and sequences that set colours; what is added holds no
/// line break.
pub fn write_to(shown: &mut String, text: &str) {
    let is_plain = |character: char| !(character.is_control() || turns(character)) || character == '\t';
    let mut rest = text;
    while let Some(at) = rest.find(|character| !is_plain(character)) {
        let (before, after) = rest.split_at(at);
        shown.push_str(before);
        let length = colour(after);
        if length > 0 {
            let (sequence, behind) = after.split_at(length);
            shown.push_str(sequence);
            rest = behind;
            continue;
        }
        let mut characters = after.chars();
        if let Some(control) = characters.next() {
            let code = u32::from(control);
            shown.push_str(&if code < 0x100 { format!("\\x{code:02x}") } else { format!("\\u{{{code:x}}}") });
        }
        rest = characters.as_str();
    }
    shown.push_str(rest);
}

/// The text as it may be shown.
pub fn shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    write_to(&mut shown, text);
    shown
}

/// Whether a character turns the direction of the text around it.
const fn turns(character: char) -> bool {
    matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The length of the sequence that sets a colour at the beginning of a text; 0 if there is none.
fn colour(text: &str) -> usize {
    let Some(parameters) = text.strip_prefix("\u{1b}[") else { return 0 };
    let end =
        parameters.find(|character: char| !(character.is_ascii_digit() || matches!(character, ';' | ':')));
    match end {
        Some(end) if parameters.get(end..).is_some_and(|rest| rest.starts_with('m')) => end + 3,
        Some(_) | None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_text_stays_as_it_is() {
        for text in [
            "",
            "plain",
            "ünï ☃ 日本語 \u{1f600}",
            "a\tb",
            "\u{1b}[31mred\u{1b}[0m",
            "\u{1b}[1;38:5:9mx\u{1b}[m",
        ] {
            assert_eq!(shown(text), text);
        }
    }

    #[test]
    fn what_would_move_the_cursor_is_spelt_out() {
        for (text, wanted) in [
            ("a\rb", "a\\x0db"),
            ("\u{1b}[2J", "\\x1b[2J"),
            ("\u{1b}]0;title\u{7}", "\\x1b]0;title\\x07"),
            ("\u{1b}[31", "\\x1b[31"),
            ("\u{1b}", "\\x1b"),
            ("\0\u{7f}\u{9b}31m", "\\x00\\x7f\\x9b31m"),
            ("line\nbreak", "line\\x0abreak"),
            ("a\u{202e}b\u{2066}c", "a\\u{202e}b\\u{2066}c"),
        ] {
            assert_eq!(shown(text), wanted);
        }
    }
}
