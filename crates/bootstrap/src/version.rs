//! Versions of nats-server, and which of them are known to be bad.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// A version such as `2.15.1` or `2.15.0-dev`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    numbers: [u32; 3],
    /// What is being made: it comes before the version itself.
    pre: Option<String>,
}

/// What is known of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing bad.
    Good,
    /// It works, and a later one is better.
    Aged(&'static str),
    /// It has lost what it had accepted.
    Bad(&'static str),
    /// It lacks what this product needs.
    TooOld,
}

/// The oldest that has what is needed: messages with a time to live, and reading many with one request.
pub const OLDEST: &str = "2.11.0";
/// What to install.
pub const ADVISED: &str = "2.15.1";

impl Version {
    const fn of(major: u32, minor: u32, patch: u32) -> Self {
        Self { numbers: [major, minor, patch], pre: None }
    }

    /// What is known of it.
    pub fn verdict(&self) -> Verdict {
        if *self < Self::of(2, 11, 0) {
            return Verdict::TooOld;
        }
        if *self >= Self::of(2, 12, 0) && *self < Self::of(2, 12, 5) {
            return Verdict::Bad(
                "jobs that were delivered too often were lost with three replicas, and it can be stopped from outside without a password",
            );
        }
        if *self < Self::of(2, 12, 6) {
            return Verdict::Aged("restoring a stream asks for fewer rights than it should");
        }
        if *self < Self::of(2, 14, 0) {
            return Verdict::Aged("a damaged snapshot of the cluster is deleted without a word");
        }
        Verdict::Good
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        self.numbers.cmp(&other.numbers).then_with(|| match (&self.pre, &other.pre) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) => Ordering::Greater,
            (Some(_), None) => Ordering::Less,
            (Some(one), Some(two)) => one.cmp(two),
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.numbers;
        write!(f, "{major}.{minor}.{patch}")?;
        self.pre.as_ref().map_or(Ok(()), |pre| write!(f, "-{pre}"))
    }
}

/// That is no version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no version of nats-server")]
pub struct NoVersion(String);

impl FromStr for Version {
    type Err = NoVersion;

    /// Also what `nats-server --version` prints: `nats-server: v2.15.1`.
    fn from_str(text: &str) -> Result<Self, NoVersion> {
        let refused = || NoVersion(text.chars().take(80).collect());
        let word = text.trim().rsplit(char::is_whitespace).next().unwrap_or_default();
        let word = word.strip_prefix('v').unwrap_or(word);
        let (numbers, pre) = match word.split_once('-') {
            Some((numbers, pre)) => (numbers, Some(pre.to_owned())),
            None => (word, None),
        };
        let parts: Option<Vec<u32>> = numbers.split('.').map(|part| part.parse().ok()).collect();
        let numbers = parts.and_then(|parts| <[u32; 3]>::try_from(parts).ok()).ok_or_else(refused)?;
        Ok(Self { numbers, pre })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        text.parse().unwrap()
    }

    #[test]
    fn versions_are_read_as_the_program_prints_them_and_compared_as_numbers() {
        assert_eq!(version("nats-server: v2.15.1\n"), Version::of(2, 15, 1));
        assert!(version("2.9.25") < version("2.11.0") && version("2.15.0-dev") < version("2.15.0"));
        assert!(version("2.15.0") < version("2.100.0"));
        assert_eq!(version("v2.15.0-RC.1").to_string(), "2.15.0-RC.1");
        for nonsense in ["", "nats-server", "2.15", "2.15.x", "usage: cat [FILE]"] {
            assert!(nonsense.parse::<Version>().is_err(), "{nonsense}");
        }
    }

    #[test]
    fn what_is_known_to_be_bad_is_named() {
        for (text, wanted) in [
            ("2.10.29", "TooOld"),
            ("2.11.4", "Aged"),
            ("2.12.0", "Bad"),
            ("2.12.4", "Bad"),
            ("2.12.5", "Aged"),
            ("2.13.0", "Aged"),
            ("2.14.0", "Good"),
            ("2.15.1", "Good"),
        ] {
            let found = format!("{:?}", version(text).verdict());
            assert!(found.starts_with(wanted), "{text}: {found}");
        }
        assert_eq!(
            (version(OLDEST).verdict(), version(ADVISED).verdict()),
            (version("2.11.0").verdict(), Verdict::Good)
        );
    }
}
