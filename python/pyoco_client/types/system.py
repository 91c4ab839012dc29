"""The server itself, its workers, and who did what."""

from __future__ import annotations

from typing import Any, Literal, TypedDict


class Health(TypedDict):
    """The server is there."""

    status: str


class _WorkerRecord(TypedDict):
    worker_id: str
    state: str


class WorkerRecord(_WorkerRecord, total=False):
    """A worker: `RUNNING`, `IDLE`, `STOPPED_GRACEFUL` or `DISCONNECTED`. Times are unix seconds."""

    instance_id: str | None
    hidden: bool
    tags: list[str]
    last_seen_at: float | None
    last_heartbeat_at: float | None
    heartbeat_at: float | None
    current_run_id: str | None
    current_run_ids: list[str]
    concurrency: int
    last_run_id: str | None
    last_run_status: str | None
    last_run_started_at: float | None
    last_run_finished_at: float | None
    stopped_at: float | None
    stop_reason: str | None
    updated_at: float | None
    wheel_sync: Any


class WorkerPatched(TypedDict):
    """A worker was hidden, or shown again."""

    worker_id: str
    hidden: bool
    updated_at: float


class AuditActor(TypedDict):
    """Somebody with a key."""

    keyId: str
    role: str


class _AuditEntry(TypedDict):
    id: str
    at: str
    action: str
    outcome: Literal["ok", "refused", "failed", "unknown"]


class AuditEntry(_AuditEntry, total=False):
    """One thing that somebody did, or tried to do."""

    actor: AuditActor | None
    tenant: str | None
    source: str | None
    correlationId: str | None
    target: str | None
    status: int | None
    details: dict[str, Any]


class _AuditPage(TypedDict):
    items: list[AuditEntry]


class AuditPage(_AuditPage, total=False):
    """A page of the audit trail, newest first. It may be empty and still go on."""

    nextCursor: str | None
