//! Which tables there are, and how an older file becomes a newer one. No statement of the daily work is here.

use rusqlite::Connection;

use crate::connection;

/// Says in the file's header that it is ours ("PyOc").
pub(crate) const APPLICATION_ID: i32 = 0x5079_4f63;

/// The steps from an empty file to the newest schema. Only ever add at the end: a released step never changes.
const STEPS: &[&str] = &[include_str!("migrations/0001_tables.sql")];

/// The schema that this program writes: the number of steps.
pub(crate) fn newest() -> i32 {
    i32::try_from(STEPS.len()).unwrap_or(i32::MAX)
}

/// Takes the steps that the file has not seen, each in a transaction of its own together with its number, so that a
/// crash leaves the file at one schema or the next, never between.
pub(crate) fn migrate(connection: &Connection) -> rusqlite::Result<()> {
    let done = connection::user_version(connection)?;
    for (number, step) in (1_i32..).zip(STEPS) {
        if number <= done {
            continue;
        }
        connection.execute_batch("BEGIN IMMEDIATE")?;
        let taken = connection
            .execute_batch(step)
            .and_then(|()| connection.pragma_update(None, "user_version", number))
            .and_then(|()| connection.execute_batch("COMMIT"));
        if let Err(error) = taken {
            // What failed is the better answer than a rollback that failed too; closing the connection undoes it as well.
            let _ = connection.execute_batch("ROLLBACK");
            return Err(error);
        }
    }
    Ok(())
}
