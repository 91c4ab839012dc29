//! What a worker's record in the registry says of wheels, in the contract's form.

use pyoco_core::time::Timestamp;
use pyoco_wheels::Candidate;
use serde_json::{Value, json};

use super::manifest::Manifest;

/// Lists are cut to so many.
const MOST: usize = 50;
/// An error is cut to so many characters.
const LONGEST_ERROR: usize = 2_000;

/// How the last look at the shelf went.
#[derive(Debug, Clone, Default)]
pub(super) struct Report {
    result: Option<Result<(), String>>,
    last_attempt_at: Option<Timestamp>,
    last_success_at: Option<Timestamp>,
    change: Change,
}

/// What the last successful look found.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Change {
    /// What this worker takes.
    pub(super) selected: Vec<String>,
    /// What of it was not there before.
    pub(super) updated: Vec<String>,
    /// What was there before and is not any more.
    pub(super) removed: Vec<String>,
    /// What is for this worker and its Python cannot run.
    pub(super) skipped: Vec<Candidate>,
}

impl Report {
    pub(super) fn succeeded(&mut self, change: Change, now: Timestamp) {
        (self.last_attempt_at, self.last_success_at) = (Some(now), Some(now));
        (self.result, self.change) = (Some(Ok(())), change);
    }

    pub(super) fn failed(&mut self, error: &str, now: Timestamp) {
        self.last_attempt_at = Some(now);
        self.result = Some(Err(error.chars().take(LONGEST_ERROR).collect()));
    }

    pub(super) fn shown(&self, installed: &Manifest) -> Value {
        let unix = |at: Option<Timestamp>| at.map(Timestamp::as_unix_seconds);
        let names = |names: &[String]| {
            let mut names = names.to_vec();
            names.sort_unstable();
            names.truncate(MOST);
            names
        };
        let skipped = self.change.skipped.iter().take(MOST).map(|wheel| {
            json!({
                "wheel_name": wheel.name,
                "package_name": wheel.name.package(),
                "package_version": wheel.name.version().to_string(),
                "reason": "unsupported_wheel_tags",
            })
        });
        let installed = installed.0.iter().take(MOST).map(|(name, wheel)| {
            json!({
                "wheel_name": name,
                "package_name": wheel.package_name,
                "package_version": wheel.package_version,
                "installed_at": wheel.installed_at,
                "nuid": wheel.nuid,
            })
        });
        let result = match &self.result {
            None => "idle",
            Some(Ok(())) => "ok",
            Some(Err(_)) => "error",
        };
        json!({
            "enabled": true,
            "last_result": result,
            "last_attempt_at": unix(self.last_attempt_at),
            "last_success_at": unix(self.last_success_at),
            "last_synced_at": unix(self.last_success_at),
            "last_error": self.result.as_ref().and_then(|result| result.as_ref().err()),
            "selected_count": self.change.selected.len(),
            "updated_count": self.change.updated.len(),
            "removed_count": self.change.removed.len(),
            "skipped_incompatible_count": self.change.skipped.len(),
            "selected_wheels": names(&self.change.selected),
            "updated_wheels": names(&self.change.updated),
            "removed_wheels": names(&self.change.removed),
            "skipped_incompatible": skipped.collect::<Vec<_>>(),
            "installed_wheels": installed.collect::<Vec<_>>(),
        })
    }
}

/// Of a worker that installs none.
pub(crate) fn disabled() -> Value {
    let mut shown = Report::default().shown(&Manifest::default());
    shown["enabled"] = json!(false);
    shown["last_result"] = json!("disabled");
    shown
}
