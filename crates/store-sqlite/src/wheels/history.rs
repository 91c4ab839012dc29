//! Who changed the shelf: a row for each event. Old ones go when a new one comes.

use std::time::Duration;

use pyoco_core::time::Timestamp;
use pyoco_ports::{WheelAction, WheelEvent, WheelHistoryFilter};
use rusqlite::Connection;

use crate::error;

pub(super) const NOTE: &str = "note a change of wheels";

const WRITE: &str = "INSERT INTO wheel_history (event, occurred_at, action, wheel, body) \
     VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (event) DO NOTHING";

const FORGET: &str = "DELETE FROM wheel_history WHERE occurred_at < ?1";

const NEWEST: &str = "SELECT body FROM wheel_history \
     WHERE occurred_at >= ?1 AND (?2 IS NULL OR wheel = ?2) AND (?3 IS NULL OR action = ?3) \
     ORDER BY occurred_at DESC, event DESC LIMIT ?4";

/// Writes an event down and forgets those that were too old when it happened. A time of zero is for ever.
pub(super) fn note(
    connection: &Connection,
    event: &WheelEvent,
    body: &str,
    ttl: Duration,
) -> rusqlite::Result<()> {
    let values = (&event.event_id, event.occurred_at, word(event.action), &event.wheel_name, body);
    connection.prepare_cached(WRITE)?.execute(values)?;
    if let Some(oldest) = oldest(event.occurred_at, ttl) {
        connection.prepare_cached(FORGET)?.execute([oldest])?;
    }
    Ok(())
}

pub(super) fn newest(
    connection: &Connection,
    filter: &WheelHistoryFilter,
    now: Timestamp,
    ttl: Duration,
) -> rusqlite::Result<Vec<WheelEvent>> {
    let oldest = oldest(now.as_unix_seconds(), ttl).unwrap_or(f64::MIN);
    let limit = i64::try_from(filter.limit).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(NEWEST)?;
    let values = (oldest, &filter.wheel_name, filter.action.map(word), limit);
    let rows = statement.query_map(values, |row| row.get::<_, String>(0))?;
    rows.map(|body| serde_json::from_str(&body?).map_err(|why| error::unreadable(0, why))).collect()
}

/// What happened before this is forgotten, in seconds since 1970.
fn oldest(now: f64, ttl: Duration) -> Option<f64> {
    (!ttl.is_zero()).then_some(now - ttl.as_secs_f64())
}

const fn word(action: WheelAction) -> &'static str {
    match action {
        WheelAction::Upload => "upload",
        WheelAction::Delete => "delete",
    }
}

#[cfg(test)]
mod tests {
    use pyoco_ports::{WheelActor, WheelSource};

    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    fn note_at(connection: &Connection, seconds: u32, ttl: Duration) {
        let event = WheelEvent {
            event_id: seconds.to_string(),
            occurred_at: f64::from(seconds),
            action: WheelAction::Upload,
            wheel_name: "tool-1-py3-none-any.whl".to_owned(),
            tags: Vec::new(),
            size_bytes: None,
            sha256_hex: None,
            replace: None,
            actor: WheelActor::default(),
            source: WheelSource::default(),
        };
        note(connection, &event, &serde_json::to_string(&event).unwrap(), ttl).unwrap();
    }

    fn rows(connection: &Connection) -> Vec<String> {
        let mut statement =
            connection.prepare("SELECT event FROM wheel_history ORDER BY occurred_at").unwrap();
        let rows = statement.query_map((), |row| row.get(0)).unwrap();
        rows.collect::<rusqlite::Result<_>>().unwrap()
    }

    #[test]
    fn old_events_go_when_a_new_one_comes_and_stay_for_ever_without_a_time() {
        let connection = crate::list::tests::empty();
        for seconds in [1_000, 50_000, 87_000] {
            note_at(&connection, seconds, DAY);
        }
        assert_eq!(rows(&connection), ["1000", "50000", "87000"]);
        note_at(&connection, 88_000, DAY);
        assert_eq!(rows(&connection), ["50000", "87000", "88000"]);
        // One that comes late takes nothing with it that is younger.
        note_at(&connection, 2_000, DAY);
        assert_eq!(rows(&connection), ["2000", "50000", "87000", "88000"]);
        note_at(&connection, 4_000_000_000, Duration::ZERO);
        assert_eq!(rows(&connection).len(), 5);
        let filter = WheelHistoryFilter { wheel_name: None, action: None, limit: 9 };
        let seen =
            |ttl| newest(&connection, &filter, Timestamp::from_micros(100_000_000_000), ttl).unwrap().len();
        assert_eq!((seen(DAY), seen(Duration::ZERO)), (4, 5));
    }

    #[test]
    fn events_are_found_along_an_index_and_sorted_by_nobody() {
        let connection = crate::list::tests::empty();
        for sql in [NEWEST, FORGET] {
            let plan = crate::list::tests::plan(&connection, sql);
            assert!(
                plan.contains("wheel_history_in_order") && !plan.contains("TEMP B-TREE"),
                "{sql}: {plan}"
            );
        }
    }
}
