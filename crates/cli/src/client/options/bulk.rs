//! `cancel` and `retry`: one run, or every execution that fits.

use clap::Args;
use pyoco_core::time::Timestamp;

use super::command::Sending;
use crate::past;

#[derive(Debug, Args)]
pub(in crate::client) struct Cancel {
    /// The run
    #[arg(long, required_unless_present_any = ["conditions", "all"])]
    pub(in crate::client) run_id: Option<String>,
    /// Stay until the run has ended
    #[arg(long, conflicts_with_all = ["conditions", "all"])]
    pub(in crate::client) wait: bool,
    /// How long to stay
    #[arg(long, value_name = "SECONDS", default_value_t = 30, allow_negative_numbers = true)]
    pub(in crate::client) timeout_sec: u32,
    #[command(flatten)]
    pub(in crate::client) many: Many,
    /// Why; kept in the events
    #[arg(long, value_name = "TEXT", conflicts_with = "run_id", help_heading = MANY)]
    pub(in crate::client) reason: Option<String>,
    /// Sent as X-Idempotency-Key [default: a new one, shown on standard error]
    #[arg(long, value_name = "KEY", conflicts_with = "run_id", help_heading = MANY)]
    pub(in crate::client) idempotency_key: Option<String>,
    /// Sent as X-Correlation-Id, and kept in the events
    #[arg(long, value_name = "ID", conflicts_with = "run_id", help_heading = MANY)]
    pub(in crate::client) correlation_id: Option<String>,
}

#[derive(Debug, Args)]
pub(in crate::client) struct Retry {
    /// The run
    #[arg(long, required_unless_present_any = ["conditions", "all"])]
    pub(in crate::client) run_id: Option<String>,
    #[command(flatten)]
    pub(in crate::client) many: Many,
    #[command(flatten)]
    pub(in crate::client) sending: Sending,
}

const MANY: &str = "Many at once";

/// Which executions, and how carefully.
#[derive(Debug, Args)]
#[command(next_help_heading = MANY)]
pub(in crate::client) struct Many {
    /// Those that fit: status, flow, tag, label, created-after, created-before, updated-after or
    /// updated-before; may be repeated, and all have to hold
    #[arg(long = "where", value_name = "NAME=VALUE", value_parser = condition, conflicts_with = "run_id")]
    pub(in crate::client) conditions: Vec<Condition>,
    /// Every one to which it may apply
    #[arg(long, conflicts_with_all = ["run_id", "conditions"])]
    pub(in crate::client) all: bool,
    /// Only say how many there are
    #[arg(long, conflicts_with = "run_id")]
    pub(in crate::client) dry_run: bool,
    /// Do not ask before
    #[arg(long, conflicts_with = "run_id")]
    pub(in crate::client) yes: bool,
    /// Say what became of each, as JSON
    #[arg(long, conflicts_with = "run_id")]
    pub(in crate::client) json: bool,
}

/// What has to hold of an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::client) enum Condition {
    Status(String),
    Flow(String),
    Tag(String),
    Label(String),
    CreatedAfter(Timestamp),
    CreatedBefore(Timestamp),
    UpdatedAfter(Timestamp),
    UpdatedBefore(Timestamp),
}

fn condition(text: &str) -> Result<Condition, String> {
    let (name, value) = text.split_once('=').ok_or("it must be NAME=VALUE, e.g. status=RUNNING")?;
    if value.is_empty() {
        return Err(format!("{name} has no value"));
    }
    Ok(match name {
        "status" => Condition::Status(value.to_ascii_uppercase()),
        "flow" => Condition::Flow(value.to_owned()),
        "tag" => Condition::Tag(value.to_owned()),
        "label" => Condition::Label(value.to_owned()),
        "created-after" => Condition::CreatedAfter(past::parse(value)?),
        "created-before" => Condition::CreatedBefore(past::parse(value)?),
        "updated-after" => Condition::UpdatedAfter(past::parse(value)?),
        "updated-before" => Condition::UpdatedBefore(past::parse(value)?),
        _ => {
            let names =
                "status, flow, tag, label, created-after, created-before, updated-after, updated-before";
            return Err(format!("choose from {names}"));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_has_a_name_and_a_value() {
        assert_eq!(condition("status=running"), Ok(Condition::Status("RUNNING".to_owned())));
        assert_eq!(condition("label=a=b"), Ok(Condition::Label("a=b".to_owned())));
        let at = "2026-01-31T00:00:00Z";
        assert_eq!(
            condition(&format!("created-before={at}")),
            Ok(Condition::CreatedBefore(past::parse(at).unwrap()))
        );
        for wrong in ["", "status", "status=", "=x", "Status=RUNNING", "since=1h", "created-after=soon"] {
            assert!(condition(wrong).is_err(), "{wrong}");
        }
    }
}
