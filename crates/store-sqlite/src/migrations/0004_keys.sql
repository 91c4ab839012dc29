-- API keys. No secret stands here, only what one is checked against. `record` is JSON. Each writing of a record is a new row in place
-- of the old one, so that it has a revision that no other writing ever has.
CREATE TABLE api_keys (
    revision INTEGER PRIMARY KEY AUTOINCREMENT,
    id       TEXT NOT NULL UNIQUE,
    record   BLOB NOT NULL
) STRICT;
