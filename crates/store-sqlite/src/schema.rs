//! Which files there are, their tables, and how an older file becomes a newer one. No statement of the daily work is here.

use rusqlite::Connection;

use crate::connection;

/// One kind of file of ours.
#[derive(Debug)]
pub(crate) struct Schema {
    /// What it is called in its folder.
    pub(crate) file: &'static str,
    /// Says in the file's header that it is ours.
    pub(crate) application_id: i32,
    /// The pages that its writer keeps, in KiB.
    pub(crate) cache: i64,
    /// The steps from an empty file to the newest schema. Only ever add at the end: a released step never changes.
    steps: &'static [&'static str],
}

/// The truth and what is derived from it ("PyOc").
pub(crate) const MAIN: Schema = Schema {
    file: "pyoco.db",
    application_id: 0x5079_4f63,
    // Those that the indexes grow at, and the runs of the last while. With SQLite's own two megabytes it reads pages again that
    // it has just written.
    cache: 16 * 1024,
    steps: &[
        include_str!("migrations/0001_tables.sql"),
        include_str!("migrations/0002_executions.sql"),
        include_str!("migrations/0003_jobs.sql"),
        include_str!("migrations/0004_keys.sql"),
        include_str!("migrations/0005_audit.sql"),
        include_str!("migrations/0006_retention.sql"),
        include_str!("migrations/0007_figures.sql"),
        include_str!("migrations/0008_wheels.sql"),
        include_str!("migrations/0009_leases.sql"),
        include_str!("migrations/0010_unsettled.sql"),
        include_str!("migrations/0011_lines.sql"),
    ],
};

/// What tasks wrote ("PyOl"). In a file of its own, so that a flood of it is in nobody's way.
pub(crate) const LOGS: Schema = Schema {
    file: "pyoco-logs.db",
    application_id: 0x5079_4f6c,
    // Lines are only ever added at the end of their execution.
    cache: 2 * 1024,
    steps: &[include_str!("migrations/logs_0001_lines.sql"), include_str!("migrations/logs_0002_ends.sql")],
};

impl Schema {
    /// The schema that this program writes: the number of steps.
    pub(crate) fn newest(&self) -> i32 {
        i32::try_from(self.steps.len()).unwrap_or(i32::MAX)
    }

    /// Takes the steps that the file has not seen, each in a transaction of its own together with its number, so that a
    /// crash leaves the file at one schema or the next, never between.
    pub(crate) fn migrate(&self, connection: &Connection) -> rusqlite::Result<()> {
        let done = connection::user_version(connection)?;
        for (number, step) in (1_i32..).zip(self.steps) {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_the_first_schema_becomes_one_of_the_newest_and_keeps_its_rows() {
        let first = Schema { steps: &MAIN.steps[..1], ..MAIN };
        let connection = Connection::open_in_memory().unwrap();
        first.migrate(&connection).unwrap();
        assert_eq!(connection::user_version(&connection).unwrap(), 1);
        let row = "INSERT INTO runs (execution, version, tag, status, flow, created_at, updated_at, wants_job, hidden, summary, \
                   tenant) VALUES (?1, 1, ?2, 'FAILED', 'f', 1, ?3, ?5, ?5, json_object('tags', json(?4)), ?6)";
        for (execution, tag, at, tags, hidden, tenant) in [
            ("e", Some("cpu"), 1, r#"["cpu"]"#, false, None),
            ("more", Some("cpu"), 2, r#"["cpu", "nightly", "cpu"]"#, false, Some("team")),
            ("none", Some("cpu"), 3, "[]", false, None),
            ("odd", None, 4, r#"["cpu"]"#, false, None),
            ("shy", Some("gpu"), 5, r#"["gpu"]"#, true, Some("team")),
        ] {
            connection.execute(row, (execution, tag, at, tags, hidden, tenant)).unwrap();
        }
        MAIN.migrate(&connection).unwrap();
        assert_eq!(connection::user_version(&connection).unwrap(), MAIN.newest());
        let texts = |sql: &str| {
            let mut statement = connection.prepare(sql).unwrap();
            let rows = statement.query_map((), |row| row.get::<_, String>(0)).unwrap();
            rows.collect::<rusqlite::Result<Vec<_>>>().unwrap()
        };
        let by_flow =
            "SELECT execution FROM runs INDEXED BY runs_by_flow WHERE flow = 'f' AND status = 'FAILED'";
        assert_eq!(texts(by_flow), ["e", "more", "none", "odd", "shy"]);
        // Only those whose labels are not their tag stand in the table of labels.
        let tagged = "SELECT execution FROM runs INDEXED BY runs_by_tag WHERE tag = 'cpu' AND labelled = 0";
        assert_eq!(texts(tagged), ["e"]);
        let labels =
            "SELECT label || ' ' || execution || ' ' || status || ' ' || updated_at FROM labels ORDER BY 1";
        assert_eq!(texts(labels), ["cpu more FAILED 2", "cpu odd FAILED 4", "nightly more FAILED 2"]);
        // As jobs all of them stand there, but for the one that was hidden.
        let places = "SELECT execution || ' ' || created_at FROM job_places ORDER BY created_at, execution";
        assert_eq!(texts(places), ["e 1", "more 1", "none 1", "odd 1"]);
        let labels = "SELECT label || ' ' || execution || ' ' || ifnull(tenant, '-') FROM job_labels";
        assert_eq!(texts(labels), ["cpu e -", "cpu more team", "cpu odd -", "nightly more team"]);
        let counts = "SELECT scope || ' ' || label || ' ' || jobs FROM label_counts";
        assert_eq!(texts(counts), [" cpu 3", " nightly 1", "team cpu 1", "team nightly 1"]);
        assert_eq!(texts("SELECT day || ' ' || status || ' ' || runs FROM day_counts"), ["0 FAILED 5"]);
        assert_eq!(texts("SELECT tag || ' ' || runs FROM queue_counts"), ["gpu 1"]);
        assert_eq!(texts("SELECT cast(letters AS TEXT) FROM letter_count"), ["0"]);
        // Again it finds nothing to do.
        MAIN.migrate(&connection).unwrap();
    }

    #[test]
    fn a_file_of_the_first_lines_becomes_one_of_the_newest_and_begins_anew() {
        let first = Schema { steps: &LOGS.steps[..1], ..LOGS };
        let connection = Connection::open_in_memory().unwrap();
        first.migrate(&connection).unwrap();
        connection.execute("INSERT INTO executions (execution, lines) VALUES ('e', 1)", ()).unwrap();
        LOGS.migrate(&connection).unwrap();
        assert_eq!(connection::user_version(&connection).unwrap(), LOGS.newest());
        let left: i64 =
            connection.query_row("SELECT count(*) FROM executions", (), |row| row.get(0)).unwrap();
        assert_eq!(left, 0);
    }
}
