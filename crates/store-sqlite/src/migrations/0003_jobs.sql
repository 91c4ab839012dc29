-- Jobs by their time of creation and their labels, and how many jobs each label has.

ALTER TABLE runs ADD COLUMN started_at INTEGER;
ALTER TABLE runs ADD COLUMN ended_at INTEGER;
ALTER TABLE runs ADD COLUMN cancel_requested_at INTEGER;

-- Of what has ended nothing but labels changes, so its last change is about its end. When it began only its log knows.
UPDATE runs SET ended_at = updated_at WHERE status IN ('COMPLETED', 'FAILED', 'CANCELLED');

-- One row for each run that is not hidden. A table and no index of `runs`, because SQLite writes an index again whenever a
-- statement names one of its columns: this one changes only when a run comes, goes, or is hidden.
CREATE TABLE job_places (
    created_at INTEGER NOT NULL,
    execution  TEXT    NOT NULL,
    tenant     TEXT,
    PRIMARY KEY (created_at, execution)
) STRICT, WITHOUT ROWID;

CREATE INDEX job_places_by_tenant ON job_places (tenant, created_at, execution) WHERE tenant IS NOT NULL;

-- One row for each label (of the first 64) of a run that is not hidden, its tag like any other. It changes only with the labels, not with the status.
CREATE TABLE job_labels (
    label      TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    execution  TEXT    NOT NULL,
    tenant     TEXT,
    PRIMARY KEY (label, created_at, execution)
) STRICT, WITHOUT ROWID;

CREATE INDEX job_labels_by_tenant ON job_labels (tenant, label, created_at, execution) WHERE tenant IS NOT NULL;

-- How many rows of `job_labels` a label has, of everybody ('') and of each tenant. A label that nobody has any more has no row.
CREATE TABLE label_counts (
    scope TEXT    NOT NULL,
    label TEXT    NOT NULL,
    jobs  INTEGER NOT NULL CHECK (jobs >= 0),
    PRIMARY KEY (scope, label)
) STRICT, WITHOUT ROWID;

-- In the order in which the tables are kept, so that each is filled from its beginning to its end.
INSERT INTO job_places (created_at, execution, tenant)
    SELECT created_at, execution, tenant FROM runs WHERE hidden = 0 ORDER BY created_at, execution;
INSERT INTO job_labels (label, created_at, execution, tenant)
    SELECT DISTINCT value, created_at, execution, tenant FROM runs, json_each(summary, '$.tags')
    WHERE hidden = 0 AND key < 64 ORDER BY value, created_at, execution;
INSERT INTO label_counts (scope, label, jobs) SELECT '', label, count(*) FROM job_labels GROUP BY label;
INSERT INTO label_counts (scope, label, jobs)
    SELECT tenant, label, count(*) FROM job_labels WHERE tenant IS NOT NULL GROUP BY tenant, label;

CREATE TRIGGER job_labels_counted_in AFTER INSERT ON job_labels BEGIN
    INSERT INTO label_counts (scope, label, jobs) VALUES ('', NEW.label, 1)
        ON CONFLICT (scope, label) DO UPDATE SET jobs = jobs + 1;
END;

CREATE TRIGGER job_labels_counted_in_tenant AFTER INSERT ON job_labels WHEN NEW.tenant IS NOT NULL BEGIN
    INSERT INTO label_counts (scope, label, jobs) VALUES (NEW.tenant, NEW.label, 1)
        ON CONFLICT (scope, label) DO UPDATE SET jobs = jobs + 1;
END;

CREATE TRIGGER job_labels_counted_out AFTER DELETE ON job_labels BEGIN
    UPDATE label_counts SET jobs = jobs - 1 WHERE scope IN ('', OLD.tenant) AND label = OLD.label;
    DELETE FROM label_counts WHERE scope IN ('', OLD.tenant) AND label = OLD.label AND jobs = 0;
END;

-- A run whose only label is its tag is the ordinary one: its JSON is not looked at.
CREATE TRIGGER runs_job_in AFTER INSERT ON runs WHEN NEW.hidden = 0 AND NEW.labelled = 0 BEGIN
    INSERT INTO job_places (created_at, execution, tenant) VALUES (NEW.created_at, NEW.execution, NEW.tenant);
    INSERT INTO job_labels (label, created_at, execution, tenant)
        VALUES (NEW.tag, NEW.created_at, NEW.execution, NEW.tenant);
END;

CREATE TRIGGER runs_labelled_job_in AFTER INSERT ON runs WHEN NEW.hidden = 0 AND NEW.labelled = 1 BEGIN
    INSERT INTO job_places (created_at, execution, tenant) VALUES (NEW.created_at, NEW.execution, NEW.tenant);
    INSERT INTO job_labels (label, created_at, execution, tenant)
        SELECT DISTINCT value, NEW.created_at, NEW.execution, NEW.tenant FROM json_each(NEW.summary, '$.tags')
        WHERE key < 64;
END;

CREATE TRIGGER runs_job_over AFTER UPDATE OF hidden, created_at, tenant, tag, labelled, summary ON runs
    WHEN OLD.hidden <> NEW.hidden OR OLD.created_at <> NEW.created_at OR OLD.tenant IS NOT NEW.tenant
        OR OLD.labelled <> NEW.labelled
        OR iif(NEW.labelled, json_extract(OLD.summary, '$.tags') <> json_extract(NEW.summary, '$.tags'), OLD.tag <> NEW.tag)
    BEGIN
    DELETE FROM job_places WHERE created_at = OLD.created_at AND execution = OLD.execution;
    DELETE FROM job_labels WHERE label IN (SELECT value FROM json_each(OLD.summary, '$.tags'))
        AND created_at = OLD.created_at AND execution = OLD.execution;
    INSERT INTO job_places (created_at, execution, tenant)
        SELECT NEW.created_at, NEW.execution, NEW.tenant WHERE NEW.hidden = 0;
    INSERT INTO job_labels (label, created_at, execution, tenant)
        SELECT DISTINCT value, NEW.created_at, NEW.execution, NEW.tenant FROM json_each(NEW.summary, '$.tags')
        WHERE NEW.hidden = 0 AND key < 64;
END;

CREATE TRIGGER runs_job_out AFTER DELETE ON runs BEGIN
    DELETE FROM job_places WHERE created_at = OLD.created_at AND execution = OLD.execution;
    DELETE FROM job_labels WHERE label IN (SELECT value FROM json_each(OLD.summary, '$.tags'))
        AND created_at = OLD.created_at AND execution = OLD.execution;
END;
