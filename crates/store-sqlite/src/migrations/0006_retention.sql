-- What is needed to remove executions that ended long ago.

-- Why a run stays: 1 no process of ours created it, 2 it is archived, 3 both; 0 it may go.
ALTER TABLE runs ADD COLUMN kept INTEGER NOT NULL DEFAULT 0 CHECK (kept IN (0, 1, 2, 3));

CREATE INDEX runs_to_remove ON runs (kept, ended_at, execution) WHERE ended_at IS NOT NULL AND kept < 2;

-- What is left of executions that were removed. `digest` is the fingerprint of the submission, if that can be repeated.
CREATE TABLE tombstones (
    execution TEXT    NOT NULL PRIMARY KEY,
    at        INTEGER NOT NULL,
    digest    TEXT
) STRICT, WITHOUT ROWID;

CREATE INDEX tombstones_in_order ON tombstones (at, execution);

-- Which executions use a blob. It goes with the last of them.
CREATE TABLE blob_uses (
    execution TEXT NOT NULL,
    digest    TEXT NOT NULL,
    PRIMARY KEY (execution, digest)
) STRICT, WITHOUT ROWID;

CREATE INDEX blob_uses_by_digest ON blob_uses (digest);

-- Of older ones nobody knows who uses them: they stay.
INSERT INTO blob_uses (execution, digest) SELECT '', digest FROM blobs;
