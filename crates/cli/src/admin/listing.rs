//! The list of keys: JSON as the original writes it, or a table for people.

use std::io::{self, IsTerminal as _};

use pyoco_core::time::Timestamp;
use pyoco_server::{Clock as _, SystemClock};
use serde_json::Value;

use super::arguments::List;
use crate::errors::Failure;
use crate::output::{self, cell};
use crate::table;

const HEADERS: [&str; 7] = ["key_id", "tenant_id", "role", "name", "state", "created_at", "expires_at"];

pub(super) fn show(keys: &Value, list: &List) -> Result<(), Failure> {
    if list.json || !io::stdout().is_terminal() {
        return output::json(keys);
    }
    let (rows, hidden) = rows(keys, list.all, SystemClock.now());
    output::line(&table::lines(HEADERS, &rows).join("\n"))?;
    if hidden > 0 {
        output::aside(&format!("{hidden} revoked or expired; --all shows them"));
    }
    Ok(())
}

/// The rows of a table, and how many keys have none.
fn rows(keys: &Value, all: bool, now: Timestamp) -> (Vec<[String; HEADERS.len()]>, usize) {
    let keys = keys.as_array().map_or(&[][..], Vec::as_slice);
    let is_shown = |key: &&Value| all || state(key, now) == "good";
    let row = |key: &Value| {
        HEADERS.map(|header| match header {
            "state" => state(key, now).to_owned(),
            "created_at" | "expires_at" => time(key, header).map_or_else(|| "-".to_owned(), second),
            _ => cell(key.get(header)),
        })
    };
    let rows: Vec<_> = keys.iter().filter(is_shown).map(row).collect();
    let hidden = keys.len() - rows.len();
    (rows, hidden)
}

fn state(key: &Value, now: Timestamp) -> &'static str {
    if key.get("revoked_at").is_some_and(|at| !at.is_null()) {
        "revoked"
    } else if time(key, "expires_at").is_some_and(|end| end <= now) {
        "expired"
    } else {
        "good"
    }
}

pub(super) fn time(key: &Value, member: &str) -> Option<Timestamp> {
    key.get(member).and_then(Value::as_f64).and_then(Timestamp::from_unix_seconds)
}

/// A time to the second.
pub(super) fn second(time: Timestamp) -> String {
    let text = time.to_string();
    let seconds = text.split_once('.').map_or(text.as_str(), |(seconds, _)| seconds);
    format!("{seconds}Z")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_table_shows_what_is_good_and_all_when_asked() {
        let key = |id: &str, revoked_at: Value, expires_at: Value| {
            json!({"key_id": id, "tenant_id": "a", "created_at": 1_700_000_000.5, "revoked_at": revoked_at,
                   "role": "read", "expires_at": expires_at, "name": "x\u{1b}[2J"})
        };
        let keys = json!([
            key("one", Value::Null, json!(1_700_000_100.0)),
            key("two", json!(1_700_000_050.0), Value::Null),
            key("three", Value::Null, json!(1_700_000_010.0)),
        ]);
        let now = Timestamp::from_unix_seconds(1_700_000_060.0).unwrap();
        let (good, hidden) = rows(&keys, false, now);
        assert_eq!(hidden, 2);
        let wanted =
            ["one", "a", "read", "x\\u{1b}[2J", "good", "2023-11-14T22:13:20Z", "2023-11-14T22:15:00Z"];
        assert_eq!(good, [wanted.map(str::to_owned)]);
        let (all, hidden) = rows(&keys, true, now);
        let states: Vec<&str> = all.iter().map(|row| row[4].as_str()).collect();
        assert_eq!((states, hidden), (vec!["good", "revoked", "expired"], 0));
    }
}
