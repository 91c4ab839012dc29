-- Lists by flow, tag or submitted text are often asked for one status too, and that may be a rare one of many runs. With the
-- status in front of the time, such a list looks at nothing that it does not show. Without a status, the stretches of all
-- statuses are merged.
DROP INDEX runs_by_flow;
DROP INDEX runs_by_tag;
DROP INDEX runs_by_workflow;
DROP INDEX runs_by_tenant_flow;
DROP INDEX runs_by_tenant_tag;
DROP INDEX runs_by_tenant_workflow;

CREATE INDEX runs_by_flow            ON runs (flow, status, updated_at, execution);
CREATE INDEX runs_by_tag             ON runs (tag, status, updated_at, execution);
CREATE INDEX runs_by_workflow        ON runs (workflow_sha256, status, updated_at, execution);
CREATE INDEX runs_by_tenant_flow     ON runs (tenant, flow, status, updated_at, execution);
CREATE INDEX runs_by_tenant_tag      ON runs (tenant, tag, status, updated_at, execution);
CREATE INDEX runs_by_tenant_workflow ON runs (tenant, workflow_sha256, status, updated_at, execution);
