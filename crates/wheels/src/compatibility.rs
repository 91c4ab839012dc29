//! On which interpreters a wheel runs: the tags of its name, and the tags that an interpreter supports.

use std::collections::{BTreeSet, HashMap};

/// More combinations than any honest name has; one of 255 bytes could spell 70,000.
const MOST_COMBINATIONS: usize = 1_024;

/// This is no compatibility tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("invalid compatibility tag")]
pub struct NotATag;

/// The compatibility of a wheel as its name has it: `py2.py3-none-any` stands for two tags. All in lower case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TagSet {
    pythons: BTreeSet<String>,
    abis: BTreeSet<String>,
    platforms: BTreeSet<String>,
}

impl TagSet {
    /// Reads `<python>-<abi>-<platform>`, each of which may be several with dots between.
    ///
    /// # Errors
    /// When a part is missing or empty, when a python tag is no identifier, or when it stands for more than 1,024 tags.
    pub fn parse(text: &str) -> Result<Self, NotATag> {
        let mut parts = text.split('-');
        let (Some(pythons), Some(abis), Some(platforms), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(NotATag);
        };
        let tags = Self { pythons: members(pythons)?, abis: members(abis)?, platforms: members(platforms)? };
        if !tags.pythons.iter().all(|python| is_identifier(python)) || tags.count() > MOST_COMBINATIONS {
            return Err(NotATag);
        }
        Ok(tags)
    }

    /// Every tag that this stands for, as `python-abi-platform`.
    pub fn expanded(&self) -> impl Iterator<Item = String> + '_ {
        self.pythons.iter().flat_map(move |python| {
            self.abis.iter().flat_map(move |abi| {
                self.platforms.iter().map(move |platform| format!("{python}-{abi}-{platform}"))
            })
        })
    }

    fn count(&self) -> usize {
        self.pythons.len() * self.abis.len() * self.platforms.len()
    }
}

fn members(text: &str) -> Result<BTreeSet<String>, NotATag> {
    text.split('.')
        .map(|member| {
            let is_member = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'+');
            let is_one = !member.is_empty() && member.bytes().all(is_member);
            is_one.then(|| member.to_ascii_lowercase()).ok_or(NotATag)
        })
        .collect()
}

fn is_identifier(text: &str) -> bool {
    !text.starts_with(|first: char| first.is_ascii_digit()) && !text.contains('+')
}

/// What an interpreter supports, the best first, as it says itself (`packaging.tags.sys_tags`).
#[derive(Debug, Clone, Default)]
pub struct SupportedTags {
    places: HashMap<String, usize>,
}

impl SupportedTags {
    /// Takes the tags in the interpreter's order. Each may stand for several; these are equally good.
    ///
    /// # Errors
    /// When one of them is no tag.
    pub fn new<T: AsRef<str>>(tags: impl IntoIterator<Item = T>) -> Result<Self, NotATag> {
        let mut places = HashMap::new();
        for (place, tag) in tags.into_iter().enumerate() {
            for single in TagSet::parse(tag.as_ref())?.expanded() {
                places.entry(single).or_insert(place);
            }
        }
        Ok(Self { places })
    }

    /// The place of the best tag of a wheel among the supported ones; 0 is the best, `None` is a wheel for others.
    #[must_use]
    pub fn place(&self, tags: &TagSet) -> Option<usize> {
        tags.expanded().filter_map(|tag| self.places.get(&tag).copied()).min()
    }
}
