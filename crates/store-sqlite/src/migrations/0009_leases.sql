-- Who has a job in hand is known in memory alone. A job stands in one index: of those that may be taken at once, or of those that are
-- delayed.
UPDATE jobs SET available_at = 0 WHERE leased_until IS NOT NULL;

DROP INDEX jobs_in_order;
DROP INDEX jobs_by_time;
ALTER TABLE jobs DROP COLUMN leased_until;
ALTER TABLE jobs DROP COLUMN leased_by;

CREATE INDEX jobs_ready   ON jobs (tag, id) WHERE available_at = 0;
CREATE INDEX jobs_delayed ON jobs (tag, available_at) WHERE available_at > 0;
