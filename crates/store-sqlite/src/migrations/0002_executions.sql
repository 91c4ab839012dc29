-- Labels, waits and graphs.

-- Whether the labels of a run are anything but its tag alone. A run whose labels are its tag is found by its tag; only those
-- of the others stand in `labels`, so that an ordinary run costs no more than before.
ALTER TABLE runs ADD COLUMN labelled INTEGER NOT NULL DEFAULT 0 CHECK (labelled IN (0, 1));

-- The nodes that wait for somebody, as JSON: [[node, since], ...]. NULL: none of them ever did.
ALTER TABLE runs ADD COLUMN waits TEXT;

UPDATE runs SET labelled = 1 WHERE json_extract(summary, '$.tags') IS NOT json_array(tag);

-- With `labelled` in front of the status, the two ways to a label look at nothing that they do not show.
DROP INDEX runs_by_tag;
DROP INDEX runs_by_tenant_tag;
CREATE INDEX runs_by_tag        ON runs (tag, labelled, status, updated_at, execution);
CREATE INDEX runs_by_tenant_tag ON runs (tenant, tag, labelled, status, updated_at, execution) WHERE tenant IS NOT NULL;

-- One row for each label of a labelled run (of its first 64: whoever sends more must not keep everybody else waiting), kept by the triggers below. What a list is read along stands here too.
CREATE TABLE labels (
    execution  TEXT    NOT NULL,
    label      TEXT    NOT NULL,
    tenant     TEXT,
    status     TEXT    NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (execution, label)
) STRICT, WITHOUT ROWID;

CREATE INDEX labels_in_order  ON labels (label, status, updated_at, execution);
CREATE INDEX labels_by_tenant ON labels (tenant, label, status, updated_at, execution) WHERE tenant IS NOT NULL;

INSERT INTO labels (execution, label, tenant, status, updated_at)
    SELECT DISTINCT execution, value, tenant, status, updated_at FROM runs, json_each(summary, '$.tags') WHERE labelled = 1 AND key < 64;

CREATE TRIGGER runs_labelled_in AFTER INSERT ON runs WHEN NEW.labelled = 1 BEGIN
    INSERT INTO labels (execution, label, tenant, status, updated_at)
        SELECT DISTINCT NEW.execution, value, NEW.tenant, NEW.status, NEW.updated_at FROM json_each(NEW.summary, '$.tags')
        WHERE key < 64;
END;

CREATE TRIGGER runs_labelled_over AFTER UPDATE OF labelled ON runs WHEN OLD.labelled = 1 OR NEW.labelled = 1 BEGIN
    DELETE FROM labels WHERE execution = OLD.execution;
    INSERT INTO labels (execution, label, tenant, status, updated_at)
        SELECT DISTINCT NEW.execution, value, NEW.tenant, NEW.status, NEW.updated_at FROM json_each(NEW.summary, '$.tags')
        WHERE NEW.labelled = 1 AND key < 64;
END;

CREATE TRIGGER runs_labelled_out AFTER DELETE ON runs WHEN OLD.labelled = 1 BEGIN
    DELETE FROM labels WHERE execution = OLD.execution;
END;

-- One row for each node that waits for somebody, kept by the triggers below.
CREATE TABLE waits (
    execution TEXT    NOT NULL,
    node      TEXT    NOT NULL,
    tenant    TEXT,
    since     INTEGER NOT NULL,
    PRIMARY KEY (execution, node)
) STRICT, WITHOUT ROWID;

CREATE INDEX waits_in_order  ON waits (since, execution, node);
CREATE INDEX waits_by_tenant ON waits (tenant, since, execution, node) WHERE tenant IS NOT NULL;

CREATE TRIGGER runs_waiting_in AFTER INSERT ON runs WHEN NEW.waits IS NOT NULL BEGIN
    INSERT INTO waits (execution, node, tenant, since)
        SELECT NEW.execution, value ->> 0, NEW.tenant, value ->> 1 FROM json_each(NEW.waits);
END;

CREATE TRIGGER runs_waiting_over AFTER UPDATE OF waits ON runs
    WHEN OLD.waits IS NOT NEW.waits OR (NEW.waits IS NOT NULL AND OLD.tenant IS NOT NEW.tenant) BEGIN
    DELETE FROM waits WHERE execution = OLD.execution;
    INSERT INTO waits (execution, node, tenant, since)
        SELECT NEW.execution, value ->> 0, NEW.tenant, value ->> 1 FROM json_each(NEW.waits);
END;

CREATE TRIGGER runs_waiting_out AFTER DELETE ON runs WHEN OLD.waits IS NOT NULL BEGIN
    DELETE FROM waits WHERE execution = OLD.execution;
END;

-- Every version of every registered graph. `tenant` is '' for none. Without a text the version deletes the graph.
CREATE TABLE graphs (
    tenant  TEXT    NOT NULL,
    id      TEXT    NOT NULL,
    version INTEGER NOT NULL CHECK (version > 0),
    at      INTEGER NOT NULL,
    by      TEXT,
    format  TEXT,
    text    TEXT,
    PRIMARY KEY (tenant, id, version),
    CHECK ((format IS NULL) = (text IS NULL))
) STRICT;
