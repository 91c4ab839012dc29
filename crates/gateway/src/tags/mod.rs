//! Tags of jobs: the free labels by which people find them again. `job` is about the tags of one, `list` about all that are in use.
//!
//! Here is what a tag may be. In the log and the index a tag is a label, like those that the other surfaces give.

pub(crate) mod job;
pub(crate) mod list;

use pyoco_api::Location;
use serde_json::json;
use unicode_normalization::UnicodeNormalization as _;

use crate::validation::Inputs;

/// The longest tag, in characters.
pub(crate) const CHARACTERS: usize = 128;
/// Nothing that is longer than this can be one, however it is written.
const BYTES: usize = 4 << 10;

/// The tag that a text means: in normal form C and without space around it, so that what looks the same is the same.
pub(crate) fn normal(text: &str) -> Result<String, &'static str> {
    const TOO_LONG: &str = "it is longer than 128 characters";
    if text.len() > BYTES {
        return Err(TOO_LONG);
    }
    if text.chars().any(char::is_control) {
        return Err("it has control characters");
    }
    let composed: String = text.nfc().collect();
    match composed.trim() {
        "" => Err("it is empty"),
        // No client can name them in a path: they mean a place there.
        "." | ".." => Err("it is only dots"),
        tag if tag.chars().nth(CHARACTERS).is_some() => Err(TOO_LONG),
        tag => Ok(tag.to_owned()),
    }
}

/// The tag that a text at some place means.
pub(crate) fn read(inputs: &mut Inputs, place: [Location; 2], text: &str) -> Option<String> {
    match normal(text) {
        Ok(tag) => Some(tag),
        Err(rule) => {
            inputs.wrong("value_error", place, rule, json!(text), None);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_of_a_person_is_a_tag() {
        for tag in
            ["urgent", "two words", "日本語 タグ", "🚀🚀", "a/b", "50 %", "#1?&=+", "é", &"語".repeat(128)]
        {
            assert_eq!(normal(tag).as_deref(), Ok(tag));
        }
    }

    #[test]
    fn what_looks_the_same_is_the_same() {
        assert_eq!(normal("cafe\u{301}"), normal("caf\u{e9}"));
        assert_eq!(normal("か\u{3099}").as_deref(), Ok("が"));
        assert_eq!(normal("\u{3000} x\u{a0}").as_deref(), Ok("x"));
        // 128 characters, each of which was written as two.
        assert_eq!(normal(&"e\u{301}".repeat(128)), Ok("é".repeat(128)));
    }

    #[test]
    fn nothing_else_is_one() {
        let long = "x".repeat(129);
        let huge = "x".repeat(1 << 20);
        for text in ["", ".", "..", " \u{3000}", "a\nb", "a\n", "a\0", "\u{85}x\u{9b}", &long, &huge] {
            assert!(normal(text).is_err(), "{:?}", text.get(..8));
        }
    }
}
