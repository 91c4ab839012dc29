//! The doctor: looks for what is wrong, or soon will be, and says what to do about it. It changes nothing.
//!
//! - `machine` looks at what a process needs around it: Python
//! - `embedded` looks at a folder, `shared` at NATS
//! - `logs` folds the logs of executions, as the auditor does, and puts nothing right

mod embedded;
mod logs;
mod machine;
mod shared;

use std::fmt;
use std::time::Duration;

use pyoco_core::time::Timestamp;
use pyoco_engine::Clock as _;
use serde::Serialize;

use crate::config::{AuthMode, Survey};
use crate::{Config, SystemClock};

/// Something that the doctor saw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What it is about.
    pub about: &'static str,
    /// What was seen.
    pub seen: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

/// How bad something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// As it should be.
    Ok,
    /// It works, and may not for long, or not as somebody believes.
    Warn,
    /// It does not work.
    Error,
}

/// How far the doctor goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Depth {
    /// Everything, however long it takes; otherwise a sample of what there is much of.
    pub is_deep: bool,
}

/// Looks at everything that a configuration names.
pub async fn examine(survey: &Survey, depth: Depth) -> Vec<Finding> {
    let mut findings = settings(survey);
    findings.extend(machine::examine(&survey.config).await);
    if survey.config.nats_url.is_some() {
        findings.extend(shared::examine(&survey.config, depth, SystemClock.now()).await);
    } else {
        findings.extend(embedded::examine(&survey.config, depth, SystemClock.now()).await);
    }
    findings
}

/// What the settings say.
fn settings(survey: &Survey) -> Vec<Finding> {
    const ABOUT: &str = "configuration";
    let advice = "pyoco-server check-config shows every setting, pyoco-server config explains it";
    let mut findings: Vec<Finding> = Vec::new();
    findings
        .extend(survey.mistakes.iter().map(|mistake| Finding::error(ABOUT, mistake.clone()).advice(advice)));
    if survey.config.nats_url.is_some() {
        findings.extend(survey.missing_files().into_iter().map(|missing| Finding::error(ABOUT, missing)));
    }
    findings.extend(survey.remarks.iter().map(|remark| Finding::warn(ABOUT, remark.clone()).advice(advice)));
    if findings.is_empty() {
        findings.push(Finding::ok(ABOUT, "every setting makes sense"));
    }
    findings.push(match survey.config.auth_mode {
        AuthMode::ApiKey => Finding::ok("access", "requests need an API key"),
        AuthMode::None => Finding::ok(
            "access",
            "requests need no API key; `up` listens for others only when it is told --allow-unauthenticated",
        ),
    });
    findings
}

impl Finding {
    fn new(severity: Severity, about: &'static str, seen: impl Into<String>) -> Self {
        Self { severity, about, seen: seen.into(), advice: None }
    }

    /// As it should be.
    pub fn ok(about: &'static str, seen: impl Into<String>) -> Self {
        Self::new(Severity::Ok, about, seen)
    }

    /// It works, and may not for long.
    pub fn warn(about: &'static str, seen: impl Into<String>) -> Self {
        Self::new(Severity::Warn, about, seen)
    }

    /// It does not work.
    pub fn error(about: &'static str, seen: impl Into<String>) -> Self {
        Self::new(Severity::Error, about, seen)
    }

    /// With what to do.
    #[must_use]
    pub fn advice(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Error => "error",
        })
    }
}

/// What should have gone on before this and has not is stuck: two comparisons would have found it.
fn overdue_before(config: &Config, now: Timestamp) -> Timestamp {
    earlier(now, config.sweep_every.saturating_mul(2).saturating_add(Duration::from_secs(1)))
}

fn earlier(now: Timestamp, by: Duration) -> Timestamp {
    let by = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
    Timestamp::from_micros(now.as_micros().saturating_sub(by))
}

/// The first few names of many.
fn some<T: fmt::Display>(names: &[T]) -> String {
    const NAMED: usize = 5;
    let named: Vec<String> = names.iter().take(NAMED).map(ToString::to_string).collect();
    let more = names.len().saturating_sub(NAMED);
    if more == 0 { named.join(", ") } else { format!("{} and {more} more", named.join(", ")) }
}
