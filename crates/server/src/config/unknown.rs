//! Names that look like ours and are none: probably misspelt.

use std::fmt;

use super::table::{TABLE, variable};

/// Two names may be the same one misspelt when they are as much alike as this (of 1).
const ALIKE: f64 = 0.85;

/// A name that means nothing to this version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// As it was given.
    pub name: String,
    /// What may have been meant.
    pub nearest: Option<&'static str>,
}

impl Unknown {
    /// A name that looks like ours and is in no table.
    pub fn of(name: &str) -> Option<Self> {
        if !name.starts_with("PYOCO_") || variable(name).is_some() {
            return None;
        }
        // Without what they all begin with, which would make all of them alike.
        let rest = |name: &str| name.trim_start_matches("PYOCO_").replace('_', "");
        let given = rest(name);
        let likeness = |known: &str| strsim::normalized_damerau_levenshtein(&given, &rest(known));
        let ours = TABLE
            .iter()
            .filter(|row| row.name.starts_with("PYOCO_"))
            .map(|row| (row.name, likeness(row.name)));
        let nearest = ours.max_by(|(_, one), (_, other)| one.total_cmp(other));
        Some(Self {
            name: name.to_owned(),
            nearest: nearest.filter(|(_, likeness)| *likeness >= ALIKE).map(|(name, _)| name),
        })
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is set, but this version knows no such setting", self.name)?;
        match self.nearest {
            Some(nearest) => write!(f, "; did you mean {nearest}?"),
            None => f.write_str("; is it misspelt?"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found_or_none() {
        let nearest = |name| Unknown::of(name).map(|unknown| unknown.nearest);
        assert_eq!(nearest("PYOCO_DATADIR"), Some(Some("PYOCO_DATA_DIR")));
        assert_eq!(nearest("PYOCO_NATS_ULR"), Some(Some("PYOCO_NATS_URL")));
        assert_eq!(nearest("PYOCO_HTTP_AUTHMODE"), Some(Some("PYOCO_HTTP_AUTH_MODE")));
        assert_eq!(nearest("PYOCO_SWEEP_INTERVAL_SECS"), Some(Some("PYOCO_SWEEP_INTERVAL_SEC")));
        assert_eq!(nearest("PYOCO_SOMETHING_ELSE"), Some(None));
        assert_eq!(nearest("PYOCO_DATA_DIR"), None);
        assert_eq!(nearest("OTHER_DATADIR"), None);
    }
}
