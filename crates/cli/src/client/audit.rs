//! `audit`: who did what.

use pyoco_client::{AuditFilter, Client};
use serde_json::Value;

use super::options::Audit;
use super::rows::{self, Pages};
use crate::errors::Failure;

/// As many as the gateway gives at once.
const MOST: i64 = 1_000;

pub(super) async fn list(client: &Client, options: Audit) -> Result<(), Failure> {
    let most = if options.all { None } else { Some(options.limit) };
    let filter = AuditFilter {
        action: options.action,
        target: options.target,
        since: options.since.map(|since| since.to_string()),
        until: options.until.map(|until| until.to_string()),
        limit: None,
        cursor: None,
    };
    let headers = ["at", "action", "outcome", "status", "actor", "tenant", "source", "target", "details"];
    let mut pages = Pages::by_cursor(options.output.form(), headers, most, options.cursor);
    while let Some((limit, cursor)) = pages.next(MOST) {
        let filter = AuditFilter { limit: Some(limit), cursor, ..filter.clone() };
        let page = client.list_audit(&filter).await?.into_json();
        pages.show(page, |entry| {
            headers.map(|name| match name {
                "actor" => actor(entry),
                "details" => details(entry),
                _ => rows::member(entry, name),
            })
        })?;
    }
    pages.end()
}

/// The key, with what it opens.
fn actor(entry: &Value) -> String {
    match entry.get("actor").filter(|actor| actor.is_object()) {
        Some(actor) => format!("{} ({})", rows::member(actor, "keyId"), rows::member(actor, "role")),
        None => "-".to_owned(),
    }
}

/// `name=value`, one after another.
fn details(entry: &Value) -> String {
    let Some(Value::Object(details)) = entry.get("details") else { return "-".to_owned() };
    let said: Vec<String> =
        details.iter().map(|(name, value)| format!("{name}={}", crate::output::cell(Some(value)))).collect();
    if said.is_empty() { "-".to_owned() } else { said.join(" ") }
}
