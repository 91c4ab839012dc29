-- What tasks wrote. Times are microseconds since 1970. Names stand here once, so that a line is little more than its text.

-- The executions that wrote something, and how many lines: the number of the last one.
CREATE TABLE executions (
    id        INTEGER NOT NULL PRIMARY KEY,
    execution TEXT    NOT NULL UNIQUE,
    lines     INTEGER NOT NULL CHECK (lines > 0)
) STRICT;

-- Who writes: a try of a node, to a stream (1 stdout, 2 stderr, 3 engine).
CREATE TABLE sources (
    id        INTEGER NOT NULL PRIMARY KEY,
    execution INTEGER NOT NULL,
    node      TEXT    NOT NULL,
    attempt   INTEGER NOT NULL,
    stream    INTEGER NOT NULL CHECK (stream IN (1, 2, 3)),
    UNIQUE (execution, node, attempt, stream)
) STRICT;

-- The lines of one execution lie beside each other, in order.
CREATE TABLE lines (
    execution INTEGER NOT NULL,
    number    INTEGER NOT NULL CHECK (number > 0),
    source    INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    text      TEXT    NOT NULL,
    PRIMARY KEY (execution, number)
) STRICT, WITHOUT ROWID;
