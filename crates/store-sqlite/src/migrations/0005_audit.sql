-- The audit trail: who changed what. `id` is the order in which entries were written and is never given twice; `entry` makes a repeat
-- recognisable. `body` is the whole entry as JSON.
CREATE TABLE audit (
    id     INTEGER PRIMARY KEY AUTOINCREMENT,
    entry  TEXT NOT NULL UNIQUE,
    at     INTEGER NOT NULL,
    action TEXT NOT NULL,
    tenant TEXT,
    target TEXT,
    body   BLOB NOT NULL
) STRICT;
CREATE INDEX audit_by_target ON audit (target, id) WHERE target IS NOT NULL;
CREATE INDEX audit_by_at ON audit (at, id);
