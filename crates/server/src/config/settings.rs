//! Reading settings: from the environment first, then from the `.env` file, then the default; every mistake is kept.

use std::collections::{BTreeSet, HashMap};
use std::str::FromStr;
use std::time::Duration;

/// Where settings come from, and what was wrong with them.
pub(super) struct Settings {
    pub(super) env: HashMap<String, String>,
    pub(super) file: HashMap<String, String>,
    asked: BTreeSet<&'static str>,
    pub(super) mistakes: Vec<String>,
}

impl Settings {
    pub(super) fn new(env: HashMap<String, String>, file: HashMap<String, String>) -> Self {
        Self { env, file, asked: BTreeSet::new(), mistakes: Vec::new() }
    }

    /// A setting as it stands; an empty one counts as not given.
    pub(super) fn given(&mut self, name: &'static str) -> Option<String> {
        self.asked.insert(name);
        let filled = |values: &HashMap<String, String>| {
            values.get(name).map(|value| value.trim()).filter(|value| !value.is_empty()).map(str::to_owned)
        };
        filled(&self.env).or_else(|| filled(&self.file))
    }

    /// A setting with the blanks around it, which may be part of a secret.
    pub(super) fn verbatim(&mut self, name: &'static str) -> Option<String> {
        self.asked.insert(name);
        let filled =
            |values: &HashMap<String, String>| values.get(name).filter(|value| !value.is_empty()).cloned();
        filled(&self.env).or_else(|| filled(&self.file))
    }

    pub(super) fn text(&mut self, name: &'static str, default: &str) -> String {
        self.given(name).unwrap_or_else(|| default.to_owned())
    }

    /// A value with a form of its own; `wanted` says which.
    pub(super) fn parsed<T>(
        &mut self,
        name: &'static str,
        default: T,
        wanted: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> T {
        let Some(text) = self.given(name) else { return default };
        parse(&text).unwrap_or_else(|| {
            // A setting may hold a secret by mistake: only its name is said.
            self.mistakes.push(format!("{name} must be {wanted}"));
            default
        })
    }

    pub(super) fn number<T: FromStr>(&mut self, name: &'static str, default: T) -> T {
        self.parsed(name, default, "a whole number", |text| text.parse().ok())
    }

    pub(super) fn seconds(&mut self, name: &'static str, default: f64) -> Duration {
        self.parsed(name, Duration::from_secs_f64(default), "a number of seconds, 0 or more", |text| {
            text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        })
    }

    pub(super) fn flag(&mut self, name: &'static str, default: bool) -> bool {
        self.parsed(name, default, "one of 1, true, yes, on, 0, false, no, off", flag)
    }

    pub(super) fn choice<T: Copy>(&mut self, name: &'static str, default: T, choices: &[(&str, T)]) -> T {
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let wanted = format!("one of {}", names.join(", "));
        self.parsed(name, default, &wanted, |text| {
            let found = choices.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
            found.map(|(_, value)| *value)
        })
    }

    /// Names that look like ours and that nobody asked for: probably misspelt.
    pub(super) fn unknown(&self) -> Vec<String> {
        let names: BTreeSet<&String> = self.env.keys().chain(self.file.keys()).collect();
        let is_unknown = |name: &&String| name.starts_with("PYOCO_") && !self.asked.contains(name.as_str());
        names.into_iter().filter(is_unknown).cloned().collect()
    }
}

pub(super) fn flag(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Some(true),
        "0" | "false" | "no" | "off" => Some(false),
        _ => None,
    }
}
