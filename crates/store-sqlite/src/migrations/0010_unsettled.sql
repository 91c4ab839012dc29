-- The newest row of each run that an append has written, until many of them are put into `runs` together: there each of them has a dozen
-- indexes and counters, here none. `unsettled.rs` says when.
CREATE TABLE unsettled (
    execution           TEXT    NOT NULL PRIMARY KEY,
    version             INTEGER NOT NULL,
    tenant              TEXT,
    status              TEXT    NOT NULL,
    flow                TEXT    NOT NULL,
    tag                 TEXT,
    workflow_sha256     TEXT,
    created_at          INTEGER NOT NULL,
    updated_at          INTEGER NOT NULL,
    next_timer          INTEGER,
    wants_job           INTEGER NOT NULL,
    hidden              INTEGER NOT NULL,
    summary             TEXT    NOT NULL,
    labelled            INTEGER NOT NULL,
    waits               TEXT,
    started_at          INTEGER,
    ended_at            INTEGER,
    cancel_requested_at INTEGER,
    kept                INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
