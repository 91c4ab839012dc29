//! What the environment asks for.

use std::fs::File;
use std::io::Write as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use pyoco_ports::{ErrorKind, StoreError};

use crate::Outcome;

/// Something that is to happen once, at the so manieth time.
#[derive(Debug)]
struct Rule {
    point: String,
    outcome: Outcome,
    nth: u64,
    came: AtomicU64,
}

impl Rule {
    /// `point:outcome[:nth]`.
    fn read(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let point = parts.next()?.to_owned();
        let wanted = parts.next()?;
        let outcomes = [Outcome::Crash, Outcome::Error, Outcome::Ambiguous];
        let outcome = outcomes.into_iter().find(|outcome| outcome.name() == wanted)?;
        let nth = parts.next().map_or(Some(1), |nth| nth.parse().ok())?;
        Some(Self { point, outcome, nth, came: AtomicU64::new(0) })
    }

    fn comes_true(&self, point: &str) -> bool {
        self.point == point && self.came.fetch_add(1, Ordering::SeqCst) + 1 == self.nth
    }
}

/// A variable of the environment; read here and not in the configuration, because no build that is shipped has it.
#[allow(clippy::disallowed_methods, reason = "only builds for tests have this")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

fn rules() -> &'static [Rule] {
    static RULES: OnceLock<Vec<Rule>> = OnceLock::new();
    RULES.get_or_init(|| {
        let text = variable("PYOCO_FAULTS").unwrap_or_default();
        text.split(',').filter_map(Rule::read).collect()
    })
}

/// A place where a test may make `operation` fail.
pub fn at(point: &'static str, operation: &'static str) -> Result<(), StoreError> {
    let Some(rule) = rules().iter().find(|rule| rule.comes_true(point)) else { return Ok(()) };
    note(rule);
    match rule.outcome {
        Outcome::Crash => std::process::abort(),
        Outcome::Error => Err(StoreError::new(ErrorKind::Unavailable, operation, point)),
        Outcome::Ambiguous => Err(StoreError::new(ErrorKind::Timeout, operation, point)),
    }
}

/// Says that it came true, to whoever asked for it.
fn note(rule: &Rule) {
    let Some(path) = variable("PYOCO_FAULTS_SEEN") else { return };
    if let Ok(mut file) = File::options().create(true).append(true).open(path) {
        // Whoever asked finds nothing then, and says so.
        let _ = writeln!(file, "{}:{}", rule.point, rule.outcome.name());
    }
}

/// Whether the product is to make a mistake.
pub fn is_planted(mistake: &'static str) -> bool {
    static PLANTED: OnceLock<Option<String>> = OnceLock::new();
    PLANTED.get_or_init(|| variable("PYOCO_PLANT")).as_deref() == Some(mistake)
}

/// By how many microseconds the clock is wrong.
pub fn clock_offset() -> i64 {
    static FILE: OnceLock<Option<String>> = OnceLock::new();
    let file = FILE.get_or_init(|| variable("PYOCO_FAULT_CLOCK"));
    let text = file.as_ref().and_then(|file| std::fs::read_to_string(file).ok());
    text.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_comes_true_once_at_its_turn() {
        let rule = Rule::read("step.after_append:ambiguous:3").unwrap();
        assert_eq!((rule.outcome, rule.nth), (Outcome::Ambiguous, 3));
        let turns: Vec<bool> = (0..5).map(|_| rule.comes_true("step.after_append")).collect();
        assert_eq!(turns, [false, false, true, false, false]);
        assert!(!rule.comes_true("step.before_append"));
        assert!(Rule::read("step.after_append").is_none() && Rule::read("a:dance").is_none());
    }
}
