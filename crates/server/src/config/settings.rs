//! Reading settings: from the environment first, then from the `.env` file, then the default of the table; every mistake is kept.
//!
//! A name that is not in the table, a default that is not of its kind, and a reader that knows other choices than the table are
//! mistakes too, which the tests of the configuration find.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use pyoco_core::ids::Tag;
use pyoco_gateway::HeaderName;

use super::table::{TABLE, variable};
use super::unknown::Unknown;
use super::variable::{Kind, Variable};

/// Where settings come from, and what was wrong with them.
pub(super) struct Settings {
    env: HashMap<String, String>,
    file: HashMap<String, String>,
    pub(super) mistakes: Vec<String>,
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// An argument of the command line.
    Flag,
    /// The environment of the process.
    Environment,
    /// The `.env` file.
    File,
    /// Nobody has said anything.
    Default,
}

impl Settings {
    pub(super) fn new(env: HashMap<String, String>, file: HashMap<String, String>) -> Self {
        Self { env, file, mistakes: Vec::new() }
    }

    /// A value as it stands, and where; an empty one counts as not given.
    pub(super) fn found(&self, name: &str) -> Option<(&str, Source)> {
        let filled = |values: &'_ HashMap<String, String>| {
            values.get(name).is_some_and(|value| !value.trim().is_empty())
        };
        let (values, source) = if filled(&self.env) {
            (&self.env, Source::Environment)
        } else if filled(&self.file) {
            (&self.file, Source::File)
        } else {
            return None;
        };
        values.get(name).map(|value| (value.as_str(), source))
    }

    /// What the environment of the process says about something that is no setting of ours. An empty value says nothing.
    pub(super) fn environment(&self, name: &str) -> Option<&str> {
        self.env.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
    }

    /// A value with the blanks around it, which may be part of a secret.
    pub(super) fn verbatim(&mut self, name: &'static str) -> Option<String> {
        self.row(name)?;
        self.found(name).map(|(value, _)| value.to_owned())
    }

    /// A text, or what the table has for it, or nothing.
    pub(super) fn given(&mut self, name: &'static str) -> Option<String> {
        self.read(name, |_, text| Some(text.to_owned()))
    }

    /// A text that has a default.
    pub(super) fn text(&mut self, name: &'static str) -> String {
        self.given(name).unwrap_or_default()
    }

    pub(super) fn number<T: TryFrom<i64> + Default>(&mut self, name: &'static str) -> T {
        let number = self.read(name, |kind, text| {
            let Kind::Whole(least) = kind else { return None };
            whole(least, text).and_then(|number| T::try_from(number).ok())
        });
        number.unwrap_or_default()
    }

    pub(super) fn seconds(&mut self, name: &'static str) -> Duration {
        self.read(name, seconds).unwrap_or_default()
    }

    pub(super) fn flag(&mut self, name: &'static str) -> bool {
        self.read(name, |kind, text| if kind == Kind::Flag { flag(text) } else { None }).unwrap_or_default()
    }

    pub(super) fn tag(&mut self, name: &'static str) -> Tag {
        self.read(name, |_, text| Tag::new(text).ok()).unwrap_or_default()
    }

    pub(super) fn header(&mut self, name: &'static str) -> HeaderName {
        let header = self.read(name, |_, text| text.parse().ok());
        header.unwrap_or(HeaderName::from_static("x-api-key"))
    }

    /// One of several. `last_resort` is what a mistake goes on with.
    pub(super) fn choice<T: Copy>(&mut self, name: &'static str, choices: &[(&str, T)], last_resort: T) -> T {
        let chosen = self.read(name, |kind, text| {
            let Kind::Choice(of) = kind else { return None };
            let are_the_same = choices.iter().map(|(name, _)| name).eq(of);
            let found = choices.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
            found.filter(|_| are_the_same).map(|(_, value)| *value)
        });
        chosen.unwrap_or(last_resort)
    }

    /// The value of a setting as its kind has it, or its default. `None` when there is neither, or when what there is is none:
    /// then it is a mistake.
    fn read<T>(&mut self, name: &'static str, parse: impl Fn(Kind, &str) -> Option<T>) -> Option<T> {
        let row = self.row(name)?;
        let text = self.found(name).map_or(row.default, |(text, _)| text.trim());
        if text.is_empty() {
            return None;
        }
        let value = if row.kind.accepts(text) { parse(row.kind, text) } else { None };
        if value.is_none() {
            self.mistakes.push(row.mistake());
        }
        value
    }

    fn row(&mut self, name: &'static str) -> Option<&'static Variable> {
        let row = variable(name);
        if row.is_none() {
            self.mistakes.push(format!("{name} is not in the table of settings"));
        }
        row
    }

    /// Looks at the values that nobody has read here.
    pub(super) fn check_rest(&mut self, is_of_interest: impl Fn(&Variable) -> bool) {
        for row in TABLE.iter().filter(|row| is_of_interest(row)) {
            let wrong = self.found(row.name).is_some_and(|(text, _)| !row.kind.accepts(text.trim()));
            if wrong && !self.mistakes.contains(&row.mistake()) {
                self.mistakes.push(row.mistake());
            }
        }
    }

    /// Names that look like ours and that are not in the table: probably misspelt.
    pub(super) fn unknown(&self) -> Vec<Unknown> {
        let names: BTreeSet<&String> = self.env.keys().chain(self.file.keys()).collect();
        names.into_iter().filter_map(|name| Unknown::of(name)).collect()
    }
}

impl Kind {
    /// Whether a text is a value of this kind.
    pub fn accepts(self, text: &str) -> bool {
        match self {
            Self::Text | Self::Path | Self::Secret => true,
            Self::Url => text.split(',').map(str::trim).all(|url| !url.is_empty()),
            Self::Address => is_address(text),
            Self::Flag => flag(text).is_some(),
            Self::Seconds | Self::SomeSeconds => seconds(self, text).is_some(),
            Self::Whole(least) => whole(least, text).is_some(),
            Self::Choice(of) => of.iter().any(|choice| choice.eq_ignore_ascii_case(text)),
            Self::Tag => Tag::new(text).is_ok(),
            Self::Header => text.parse::<HeaderName>().is_ok(),
        }
    }
}

fn whole(least: i64, text: &str) -> Option<i64> {
    text.parse().ok().filter(|number| *number >= least)
}

fn seconds(kind: Kind, text: &str) -> Option<Duration> {
    let is_enough = |seconds: &Duration| match kind {
        Kind::Seconds => true,
        Kind::SomeSeconds => !seconds.is_zero(),
        Kind::Text
        | Kind::Path
        | Kind::Url
        | Kind::Address
        | Kind::Secret
        | Kind::Flag
        | Kind::Whole(_)
        | Kind::Choice(_)
        | Kind::Tag
        | Kind::Header => false,
    };
    Duration::try_from_secs_f64(text.parse().ok()?).ok().filter(is_enough)
}

fn is_address(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}

pub(super) fn flag(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Some(true),
        "0" | "false" | "no" | "off" => Some(false),
        _ => None,
    }
}
