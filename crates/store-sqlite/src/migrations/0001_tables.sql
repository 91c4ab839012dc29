-- The first schema. Times are microseconds since 1970. Look with sqlite3 as you like; write only through the product.

-- The log: the only table that is not derived. Records lie in the order in which they were written, so that those of one
-- commit share pages whichever executions they are of; the index finds those of one execution.
CREATE TABLE records (
    id        INTEGER PRIMARY KEY,
    execution TEXT    NOT NULL,
    version   INTEGER NOT NULL CHECK (version > 0),
    bytes     BLOB    NOT NULL,
    UNIQUE (execution, version)
) STRICT;

-- One row for each execution, as lists show it. `summary` is JSON; the other columns are what it is looked up by.
CREATE TABLE runs (
    execution       TEXT    NOT NULL PRIMARY KEY,
    version         INTEGER NOT NULL,
    tenant          TEXT,
    status          TEXT    NOT NULL,
    flow            TEXT    NOT NULL,
    tag             TEXT,
    workflow_sha256 TEXT,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    next_timer      INTEGER,
    wants_job       INTEGER NOT NULL CHECK (wants_job IN (0, 1)),
    hidden          INTEGER NOT NULL CHECK (hidden IN (0, 1)),
    summary         TEXT    NOT NULL
) STRICT;

-- Each list is read backwards along one of these, so a page costs the same however many rows there are. Lists by flow, tag
-- or submitted text are often asked for one status too, and that may be a rare one of many runs: with the status in front of
-- the time, such a list looks at nothing that it does not show; without a status, the stretches of all statuses are merged.
-- A change of a run costs a step in each index that has it, so those for tenants and texts leave out who has none.
CREATE INDEX runs_by_change   ON runs (updated_at, execution);
CREATE INDEX runs_by_status   ON runs (status, updated_at, execution);
CREATE INDEX runs_by_flow     ON runs (flow, status, updated_at, execution);
CREATE INDEX runs_by_tag      ON runs (tag, status, updated_at, execution);
CREATE INDEX runs_by_workflow ON runs (workflow_sha256, status, updated_at, execution) WHERE workflow_sha256 IS NOT NULL;
CREATE INDEX runs_by_tenant        ON runs (tenant, updated_at, execution) WHERE tenant IS NOT NULL;
CREATE INDEX runs_by_tenant_status ON runs (tenant, status, updated_at, execution) WHERE tenant IS NOT NULL;
CREATE INDEX runs_by_tenant_flow   ON runs (tenant, flow, status, updated_at, execution) WHERE tenant IS NOT NULL;
CREATE INDEX runs_by_tenant_tag    ON runs (tenant, tag, status, updated_at, execution) WHERE tenant IS NOT NULL;
CREATE INDEX runs_by_tenant_workflow ON runs (tenant, workflow_sha256, status, updated_at, execution)
    WHERE tenant IS NOT NULL AND workflow_sha256 IS NOT NULL;

-- What the sweeper asks.
CREATE INDEX runs_with_timer ON runs (next_timer, execution) WHERE next_timer IS NOT NULL;
CREATE INDEX runs_wanting_job ON runs (tag, updated_at, execution) WHERE wants_job = 1;

-- How many runs of a tenant ('' for none) have a status, kept by the triggers below, so that nobody has to count.
CREATE TABLE run_counts (
    tenant TEXT    NOT NULL,
    status TEXT    NOT NULL,
    runs   INTEGER NOT NULL,
    PRIMARY KEY (tenant, status)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER runs_counted_in AFTER INSERT ON runs BEGIN
    INSERT INTO run_counts (tenant, status, runs) VALUES (coalesce(NEW.tenant, ''), NEW.status, 1)
        ON CONFLICT (tenant, status) DO UPDATE SET runs = runs + 1;
END;

CREATE TRIGGER runs_counted_over AFTER UPDATE OF tenant, status ON runs
    WHEN OLD.status <> NEW.status OR OLD.tenant IS NOT NEW.tenant BEGIN
    UPDATE run_counts SET runs = runs - 1 WHERE tenant = coalesce(OLD.tenant, '') AND status = OLD.status;
    INSERT INTO run_counts (tenant, status, runs) VALUES (coalesce(NEW.tenant, ''), NEW.status, 1)
        ON CONFLICT (tenant, status) DO UPDATE SET runs = runs + 1;
END;

CREATE TRIGGER runs_counted_out AFTER DELETE ON runs BEGIN
    UPDATE run_counts SET runs = runs - 1 WHERE tenant = coalesce(OLD.tenant, '') AND status = OLD.status;
END;

-- The work queue. `id` is never used twice. `available_at` is when a job may be taken: 0 at once, the end of the lease while
-- it is in hand, the end of the delay when it was given back. `leased_until` is set only while it is in hand.
CREATE TABLE jobs (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    execution    TEXT    NOT NULL,
    tag          TEXT    NOT NULL,
    body         BLOB    NOT NULL,
    available_at INTEGER NOT NULL DEFAULT 0,
    leased_until INTEGER,
    leased_by    TEXT,
    delivered    INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX jobs_in_order     ON jobs (tag, id, available_at);
CREATE INDEX jobs_by_time      ON jobs (tag, available_at);
CREATE INDEX jobs_of_execution ON jobs (execution);

-- Values beside the log, by the SHA-256 (hexadecimal) of their bytes.
CREATE TABLE blobs (
    digest TEXT NOT NULL PRIMARY KEY,
    bytes  BLOB NOT NULL
) STRICT;

-- Workers as they last reported. `body` is JSON.
CREATE TABLE workers (
    worker  TEXT    NOT NULL PRIMARY KEY,
    seen_at INTEGER NOT NULL,
    hidden  INTEGER NOT NULL CHECK (hidden IN (0, 1)),
    body    BLOB    NOT NULL
) STRICT;

CREATE INDEX workers_by_seen ON workers (seen_at, worker);

-- Jobs that could not be run, in the order in which they came. `body` is JSON.
CREATE TABLE dead_letters (
    id   INTEGER PRIMARY KEY AUTOINCREMENT,
    key  TEXT    NOT NULL UNIQUE,
    tag  TEXT    NOT NULL,
    at   INTEGER NOT NULL,
    body BLOB    NOT NULL
) STRICT;
