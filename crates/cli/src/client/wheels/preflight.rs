//! What is looked at before a wheel is sent: that it is a sound one, as the gateway will ask; that it says what it is for and offers
//! something, as its users would ask; and that the gateway has neither this version of it nor a newer one.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use pyoco_wheels::{InspectError, Limits, Metadata, WheelName, inspect, may_upload, parse_tags};

/// A shorter description says nothing.
const LEAST_DESCRIPTION: usize = 80;

const NO_USAGE: &str =
    "usage documentation is missing (need METADATA description>=80 chars or Project-URL: Documentation,...)";
const NO_ENTRY_POINTS: &str = "entry_points are missing (dist-info/entry_points.txt)";

/// A wheel that somebody wants to upload.
pub(super) struct Wheel {
    pub(super) path: PathBuf,
    pub(super) tags: String,
    pub(super) may_lack_entry_points: bool,
    pub(super) may_lack_usage: bool,
}

/// What was found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Findings {
    /// Worth knowing.
    pub(super) warnings: Vec<String>,
    /// Worth not to be sent.
    pub(super) flaws: Vec<String>,
}

impl Wheel {
    /// Looks at the file.
    pub(super) fn look(&self) -> io::Result<Findings> {
        let mut findings = Findings::default();
        if let Err(error) = parse_tags(&self.tags) {
            findings.flaws.push(error.to_string());
        }
        let name = match WheelName::parse(file_name(&self.path)) {
            Ok(name) => name,
            Err(error) => {
                findings.flaws.push(error.to_string());
                return Ok(findings);
            }
        };
        let wheel = match inspect(&mut File::open(&self.path)?, &name, &Limits::default()) {
            Ok(wheel) => wheel,
            Err(InspectError::Unsound(unsound)) => {
                findings.flaws.push(unsound.to_string());
                return Ok(findings);
            }
            Err(InspectError::Unreadable(error)) => return Err(error),
        };
        if wheel.metadata.summary.as_deref().is_none_or(|summary| summary.trim().is_empty()) {
            findings.warn("METADATA Summary is empty");
        }
        match (says_its_use(&wheel.metadata), self.may_lack_usage) {
            (true, _) => {}
            (false, true) => findings.warn("usage documentation seems missing"),
            (false, false) => findings.flaws.push(NO_USAGE.to_owned()),
        }
        match (wheel.entry_points.is_empty(), self.may_lack_entry_points) {
            (false, _) => {}
            (true, true) => findings.warn("entry_points are missing"),
            (true, false) => findings.flaws.push(NO_ENTRY_POINTS.to_owned()),
        }
        Ok(findings)
    }
}

impl Findings {
    pub(super) fn warn(&mut self, warning: impl Into<String>) {
        self.warnings.push(warning.into());
    }

    /// Holds a wheel against those that are there.
    pub(super) fn compare<'a>(&mut self, path: &Path, there: impl Iterator<Item = &'a str>) {
        let Ok(name) = WheelName::parse(file_name(path)) else { return };
        let there: Vec<WheelName> = there.filter_map(|name| WheelName::parse(name).ok()).collect();
        let Err(refused) = may_upload(&there, &name) else { return };
        let same = there.iter().filter(|wheel| wheel.package() == name.package());
        let Some(newest) = same.max_by_key(|wheel| wheel.version()) else { return };
        self.flaws.push(format!("{refused} ({newest} is there)"));
    }
}

fn file_name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

fn says_its_use(metadata: &Metadata) -> bool {
    let is_documentation = |url: &String| {
        url.split_once(',').is_some_and(|(label, _)| label.to_ascii_lowercase().contains("doc"))
    };
    metadata.description.trim().chars().nth(LEAST_DESCRIPTION - 1).is_some()
        || metadata.project_urls.iter().any(is_documentation)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(description: &str, urls: &[&str]) -> Metadata {
        Metadata {
            name: "a".to_owned(),
            version: "1".to_owned(),
            summary: None,
            requires_python: None,
            requires_dist: Vec::new(),
            project_urls: urls.iter().map(|url| (*url).to_owned()).collect(),
            description: description.to_owned(),
        }
    }

    #[test]
    fn a_use_is_said_in_a_long_text_or_at_an_address() {
        assert!(says_its_use(&metadata(&"x".repeat(80), &[])));
        assert!(!says_its_use(&metadata(&format!("  {}  ", "x".repeat(79)), &[])));
        assert!(says_its_use(&metadata("", &["Homepage, http://a", "Documentation, http://a/docs"])));
        assert!(!says_its_use(&metadata("", &["Homepage, http://a/docs"])));
    }

    #[test]
    fn a_version_that_would_be_refused_is_named_with_what_is_there() {
        let path = Path::new("dist/My_Tool-1.10-py3-none-any.whl");
        let compared = |there: &[&str]| {
            let mut findings = Findings::default();
            findings.compare(path, there.iter().copied());
            findings.flaws
        };
        assert!(compared(&["my_tool-1.9-py3-none-any.whl", "other-2-py3-none-any.whl", "odd"]).is_empty());
        assert_eq!(
            compared(&["my.tool-1.10.0-py2-none-any.whl", "my_tool-1.9-py3-none-any.whl"]),
            ["wheel version already exists; bump version (my.tool-1.10.0-py2-none-any.whl is there)"]
        );
        assert_eq!(
            compared(&["my_tool-2-py3-none-any.whl"]),
            [
                "wheel version must be greater than existing latest version (my_tool-2-py3-none-any.whl is there)"
            ]
        );
    }
}
