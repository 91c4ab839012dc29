-- Wheels: what is known of each. Their bytes stand in files of their own, named after their hash; two names may share one.
CREATE TABLE wheels (
    name       TEXT    NOT NULL PRIMARY KEY,
    nuid       TEXT    NOT NULL,
    size_bytes INTEGER NOT NULL CHECK (size_bytes >= 0),
    sha256     TEXT    NOT NULL,
    modified   INTEGER NOT NULL,
    -- A list of texts, in JSON.
    tags       TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

-- Who changed them.
CREATE TABLE wheel_history (
    event       TEXT NOT NULL PRIMARY KEY,
    -- In seconds since 1970.
    occurred_at REAL NOT NULL,
    action      TEXT NOT NULL,
    wheel       TEXT NOT NULL,
    -- The whole event, in JSON.
    body        TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX wheel_history_in_order ON wheel_history (occurred_at, event);
