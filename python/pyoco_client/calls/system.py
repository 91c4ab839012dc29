"""The server itself, its workers, and who did what."""

from __future__ import annotations

import httpx

from ..request import Request, get, given, path
from ..types import AuditPage, Health, WorkerPatched, WorkerRecord


def get_health() -> Request[Health]:
    """Asks the server whether it is there. It needs no key, and the store is not asked."""
    return get("health")


def get_metrics() -> Request[str]:
    """The figures of the system, as text for Prometheus."""
    return Request("GET", path("metrics"), read=_text)


def get_workers(
    *,
    scope: str | None = None,
    state: str | None = None,
    include_hidden: bool | None = None,
    limit: int | None = None,
) -> Request[list[WorkerRecord]]:
    """Lists workers, the last seen first: those that are there, or with `scope="all"` all."""
    query = given({"scope": scope, "state": state, "include_hidden": include_hidden, "limit": limit})
    return get("workers", query=query)


def patch_worker_hidden(worker_id: str, *, hidden: bool) -> Request[WorkerPatched]:
    """Hides a worker from lists, or shows it again."""
    return Request("PATCH", path("workers", worker_id), json={"hidden": bool(hidden)})


def list_audit(
    *,
    action: str | None = None,
    target: str | None = None,
    since: str | None = None,
    until: str | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Request[AuditPage]:
    """Lists who did what, newest first; times are RFC 3339. A page may be short, or empty, and still have a next one."""
    values = {"action": action, "target": target, "since": since, "until": until, "limit": limit, "cursor": cursor}
    return get("audit", query=given(values))


def _text(response: httpx.Response) -> str:
    return response.text
