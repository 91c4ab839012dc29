-- Logs that know where they end. No program that wrote the tables of the first schema was ever released, so they are made anew.

DROP TABLE lines;
DROP TABLE sources;
DROP TABLE executions;

-- The executions that have a log, and how far each goes: the number of its last line, the bytes of its text, whether it reached
-- its limit, and whether its execution has ended.
CREATE TABLE executions (
    id        INTEGER NOT NULL PRIMARY KEY,
    execution TEXT    NOT NULL UNIQUE,
    lines     INTEGER NOT NULL CHECK (lines >= 0),
    bytes     INTEGER NOT NULL CHECK (bytes >= 0),
    cut       INTEGER NOT NULL CHECK (cut IN (0, 1)),
    closed    INTEGER NOT NULL CHECK (closed IN (0, 1))
) STRICT;

-- Who writes: a try of a node ('' for the execution itself), to a stream (1 stdout, 2 stderr, 3 engine).
CREATE TABLE sources (
    id        INTEGER NOT NULL PRIMARY KEY,
    execution INTEGER NOT NULL,
    node      TEXT    NOT NULL,
    attempt   INTEGER NOT NULL,
    stream    INTEGER NOT NULL CHECK (stream IN (1, 2, 3)),
    UNIQUE (execution, node, attempt, stream)
) STRICT;

-- The lines of one execution lie beside each other, in order. `ends` is how many bytes the text of the log has up to and with
-- this line. It stands before the text, so that it is found without reading a long one.
CREATE TABLE lines (
    execution INTEGER NOT NULL,
    number    INTEGER NOT NULL CHECK (number > 0),
    source    INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    ends      INTEGER NOT NULL CHECK (ends > 0),
    text      TEXT    NOT NULL,
    PRIMARY KEY (execution, number)
) STRICT, WITHOUT ROWID;
