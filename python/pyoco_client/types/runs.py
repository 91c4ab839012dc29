"""Runs. Times are unix seconds."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from .wheels import UsedWheel

RunStatus = Literal["PENDING", "RUNNING", "CANCELLING", "COMPLETED", "FAILED", "CANCELLED"]
"""Where a run stands. The last three are for ever."""


class Submitted(TypedDict):
    """The answer to a submission: it is kept, and will be run."""

    run_id: str
    status: RunStatus


class _TaskRecord(TypedDict):
    state: str


class TaskRecord(_TaskRecord, total=False):
    """The record of a task; `state` is `PENDING`, `RUNNING`, `SUCCEEDED`, `FAILED` or `CANCELLED`."""

    started_at: float | None
    ended_at: float | None
    duration_ms: float | None
    error: str | None
    traceback: str | None
    inputs: Any
    output: Any
    artifacts: Any
    attempts: list[Any]


class _Run(TypedDict):
    run_id: str
    status: RunStatus


class RunSnapshot(_Run, total=False):
    """A run in full. `task_records` come where they were asked for."""

    flow_name: str
    tag: str | None
    tags: list[str]
    tenant_id: str | None
    api_key_id: str | None
    workflow_yaml_sha256: str | None
    workflow_yaml_bytes: int | None
    params: Any
    tasks: dict[str, str]
    task_records: dict[str, TaskRecord]
    task_records_truncated: bool
    start_time: float | None
    end_time: float | None
    heartbeat_at: float | None
    updated_at: float | None
    error: str | None
    cancel_requested_at: float | None
    cancel_requested_by: str | None
    worker_id: str
    worker_alive: bool
    worker_state: str
    worker_heartbeat_at: float
    worker_hidden: bool
    worker_tags: list[str]
    waiting: list[Any]
    warnings: list[str]
    wheels: list[UsedWheel]
    version: int


class RunSummary(_Run, total=False):
    """A run in a list."""

    flow_name: str
    tag: str | None
    tags: list[str]
    tenant_id: str | None
    api_key_id: str | None
    updated_at: float | None
    heartbeat_at: float | None
    worker_id: str
    error: str | None


class _RunPage(TypedDict):
    items: list[RunSummary]


class RunPage(_RunPage, total=False):
    """A page of a list; with `next_cursor` it goes on."""

    next_cursor: str | None


class RunTasks(_Run, total=False):
    """The tasks of a run and their records."""

    flow_name: str
    tasks: dict[str, str]
    task_records: dict[str, TaskRecord]
    task_records_truncated: bool


class _WatchData(TypedDict):
    run_id: str
    ts: float


class WatchData(_WatchData, total=False):
    """What an event of a watch says; a heartbeat has no snapshot."""

    snapshot: RunSnapshot


class WatchEvent(TypedDict):
    """One event of a watch: `snapshot` or `heartbeat`."""

    event: str
    data: WatchData
