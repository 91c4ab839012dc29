-- Which jobs wait and in which order is known in memory alone, so a job is one row in one place: with its execution, whose end removes it.
CREATE TABLE waiting_jobs (
    execution    TEXT    NOT NULL,
    id           INTEGER NOT NULL,
    tag          TEXT    NOT NULL,
    body         BLOB    NOT NULL,
    available_at INTEGER NOT NULL DEFAULT 0,
    delivered    INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (execution, id)
) STRICT, WITHOUT ROWID;

INSERT INTO waiting_jobs (execution, id, tag, body, available_at, delivered)
    SELECT execution, id, tag, body, available_at, delivered FROM jobs;

DROP TABLE jobs;
ALTER TABLE waiting_jobs RENAME TO jobs;
