//! The tags of a wheel: which workers it is for. They have nothing to do with the interpreters it is for; those are in its name.

const MOST_TAGS: usize = 32;
const MOST_CHARACTERS: usize = 64;

/// The list of tags cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("invalid wheel tags")]
pub struct InvalidTags;

/// Reads a list with commas. Spaces around tags and empty ones are dropped, and of equal ones the first stays.
///
/// # Errors
/// When a tag has another character than `A-Z a-z 0-9 _ -`, is longer than 64, or when there are more than 32.
pub fn parse_tags(list: &str) -> Result<Vec<String>, InvalidTags> {
    let mut tags: Vec<String> = Vec::new();
    for tag in list.split(',').map(str::trim).filter(|tag| !tag.is_empty()) {
        let is_character = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if tag.len() > MOST_CHARACTERS || !tag.bytes().all(is_character) {
            return Err(InvalidTags);
        }
        if tags.iter().any(|known| known == tag) {
            continue;
        }
        if tags.len() == MOST_TAGS {
            return Err(InvalidTags);
        }
        tags.push(tag.to_owned());
    }
    Ok(tags)
}
