-- What the figures ask for, counted when it changes, so that nobody counts when somebody asks.

-- How many runs of a tag want a worker and have none. A tag for which none waits has no row. Which waits longest
-- stands in `runs_wanting_job`.
CREATE TABLE queue_counts (
    tag  TEXT    NOT NULL PRIMARY KEY,
    runs INTEGER NOT NULL CHECK (runs >= 0)
) STRICT, WITHOUT ROWID;

INSERT INTO queue_counts (tag, runs)
    SELECT tag, count(*) FROM runs WHERE wants_job = 1 AND tag IS NOT NULL GROUP BY tag;

CREATE TRIGGER runs_queued_in AFTER INSERT ON runs WHEN NEW.wants_job = 1 AND NEW.tag IS NOT NULL BEGIN
    INSERT INTO queue_counts (tag, runs) VALUES (NEW.tag, 1) ON CONFLICT (tag) DO UPDATE SET runs = runs + 1;
END;

CREATE TRIGGER runs_queued_over AFTER UPDATE OF wants_job, tag ON runs
    WHEN OLD.wants_job <> NEW.wants_job OR (NEW.wants_job = 1 AND OLD.tag IS NOT NEW.tag) BEGIN
    UPDATE queue_counts SET runs = runs - 1 WHERE OLD.wants_job = 1 AND tag = OLD.tag;
    DELETE FROM queue_counts WHERE OLD.wants_job = 1 AND tag = OLD.tag AND runs = 0;
    INSERT INTO queue_counts (tag, runs) SELECT NEW.tag, 1 WHERE NEW.wants_job = 1 AND NEW.tag IS NOT NULL
        ON CONFLICT (tag) DO UPDATE SET runs = runs + 1;
END;

CREATE TRIGGER runs_queued_out AFTER DELETE ON runs WHEN OLD.wants_job = 1 BEGIN
    UPDATE queue_counts SET runs = runs - 1 WHERE tag = OLD.tag;
    DELETE FROM queue_counts WHERE tag = OLD.tag AND runs = 0;
END;

-- How many runs that changed last on a day (of UTC, counted from 1970) have a status.
CREATE TABLE day_counts (
    day    INTEGER NOT NULL,
    status TEXT    NOT NULL,
    runs   INTEGER NOT NULL,
    PRIMARY KEY (day, status)
) STRICT, WITHOUT ROWID;

INSERT INTO day_counts (day, status, runs)
    SELECT updated_at / 86400000000 AS day, status, count(*) FROM runs GROUP BY day, status;

CREATE TRIGGER runs_day_in AFTER INSERT ON runs BEGIN
    INSERT INTO day_counts (day, status, runs) VALUES (NEW.updated_at / 86400000000, NEW.status, 1)
        ON CONFLICT (day, status) DO UPDATE SET runs = runs + 1;
END;

CREATE TRIGGER runs_day_over AFTER UPDATE OF updated_at, status ON runs
    WHEN OLD.status <> NEW.status OR OLD.updated_at / 86400000000 <> NEW.updated_at / 86400000000 BEGIN
    UPDATE day_counts SET runs = runs - 1 WHERE day = OLD.updated_at / 86400000000 AND status = OLD.status;
    INSERT INTO day_counts (day, status, runs) VALUES (NEW.updated_at / 86400000000, NEW.status, 1)
        ON CONFLICT (day, status) DO UPDATE SET runs = runs + 1;
END;

CREATE TRIGGER runs_day_out AFTER DELETE ON runs BEGIN
    UPDATE day_counts SET runs = runs - 1 WHERE day = OLD.updated_at / 86400000000 AND status = OLD.status;
END;

-- How many dead letters there are: one row.
CREATE TABLE letter_count (
    letters INTEGER NOT NULL CHECK (letters >= 0)
) STRICT;

INSERT INTO letter_count (letters) SELECT count(*) FROM dead_letters;

CREATE TRIGGER dead_letters_counted_in AFTER INSERT ON dead_letters BEGIN
    UPDATE letter_count SET letters = letters + 1;
END;

CREATE TRIGGER dead_letters_counted_out AFTER DELETE ON dead_letters BEGIN
    UPDATE letter_count SET letters = letters - 1;
END;
