"""Executions as a whole: create, start, cancel, archive, retry; read, list, follow what happens; what waits for somebody.

Commands take an `idempotency_key`: sent again under the same one, a command is carried out once and answered the same. Without one, a key
is made up. A `correlation_id` is kept in the events.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from ..follow import Events
from ..request import Request, command, get, given, said
from ..types import Accepted, BulkFilter, BulkReport, EventPage, Execution, ExecutionPage, WaitPage


def create_execution(
    graph_id: str,
    input: Mapping[str, Any] | None = None,
    *,
    tag: str | None = None,
    tags: list[str] | None = None,
    graph_version: int | None = None,
    idempotency_key: str | None = None,
    correlation_id: str | None = None,
) -> Request[Accepted]:
    """Makes an execution of a registered graph exist. It does not run before it is started."""
    body = said(
        {"graphId": graph_id, "input": dict(input or {}), "tag": tag, "tags": tags, "graphVersion": graph_version}
    )
    return command("executions", body=body, key=idempotency_key, thread=correlation_id)


def start_execution(
    execution_id: str, *, idempotency_key: str | None = None, correlation_id: str | None = None
) -> Request[Accepted]:
    """Lets an execution run."""
    return command("executions", execution_id, "start", body={}, key=idempotency_key, thread=correlation_id)


def cancel_execution(
    execution_id: str,
    *,
    reason: str | None = None,
    idempotency_key: str | None = None,
    correlation_id: str | None = None,
) -> Request[Accepted]:
    """Asks for the end of an execution."""
    body = said({"reason": reason})
    return command("executions", execution_id, "cancel", body=body, key=idempotency_key, thread=correlation_id)


def archive_execution(
    execution_id: str,
    *,
    reason: str | None = None,
    idempotency_key: str | None = None,
    correlation_id: str | None = None,
) -> Request[Accepted]:
    """Puts an execution away that has ended."""
    body = said({"reason": reason})
    return command("executions", execution_id, "archive", body=body, key=idempotency_key, thread=correlation_id)


def retry_execution(
    execution_id: str,
    *,
    input: Mapping[str, Any] | None = None,
    from_node: str | None = None,
    idempotency_key: str | None = None,
    correlation_id: str | None = None,
) -> Request[Accepted]:
    """Repeats an execution that has ended. The answer names the new one, which keeps what succeeded and runs the rest."""
    body = said({"input": None if input is None else dict(input), "fromNode": from_node})
    return command("executions", execution_id, "retry", body=body, key=idempotency_key, thread=correlation_id)


def bulk(
    action: Literal["cancel", "retry"],
    filter: BulkFilter | None = None,
    *,
    all: bool = False,
    dry_run: bool = False,
    limit: int | None = None,
    cursor: str | None = None,
    reason: str | None = None,
    idempotency_key: str | None = None,
    correlation_id: str | None = None,
) -> Request[BulkReport]:
    """Cancels or retries a page of the executions that a filter finds, or of `all`.

    Until `nextCursor` is nothing, send the same request with it as its `cursor`, under the same key.
    """
    body = said(
        {
            "action": action,
            "filter": filter,
            "all": all or None,
            "dryRun": dry_run or None,
            "limit": limit,
            "cursor": cursor,
            "reason": reason,
        }
    )
    return command("executions", "bulk", body=body, key=idempotency_key, thread=correlation_id)


def get_execution(execution_id: str, *, at: int | None = None) -> Request[Execution]:
    """Reads an execution: as it is, or as it was when the event `at` had happened."""
    return get("executions", execution_id, query=given({"at": at}))


def list_executions(
    *,
    status: str | None = None,
    graph_id: str | None = None,
    tag: str | None = None,
    created_after: str | None = None,
    created_before: str | None = None,
    updated_after: str | None = None,
    updated_before: str | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Request[ExecutionPage]:
    """Lists executions, newest change first; times are RFC 3339."""
    values = {
        "status": status,
        "graphId": graph_id,
        "tag": tag,
        "createdAfter": created_after,
        "createdBefore": created_before,
        "updatedAfter": updated_after,
        "updatedBefore": updated_before,
        "limit": limit,
        "cursor": cursor,
    }
    return get("executions", query=given(values))


def get_events(execution_id: str, *, after: int = 0, limit: int | None = None) -> Request[EventPage]:
    """Reads what happened to an execution behind the event `after`, oldest first."""
    return get("executions", execution_id, "events", query=given({"after": after, "limit": limit}))


def follow_events(execution_id: str, *, after: int = 0, patience_sec: float = 60.0) -> Events:
    """Follows the events of an execution until it has ended: those that happened, then each as it happens.

    Each comes once and in order, also over broken connections. For `patience_sec` nothing at all may be heard.
    """
    return Events(execution_id, after, patience_sec)


def list_waits(
    *,
    tag: str | None = None,
    older_than_sec: float | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Request[WaitPage]:
    """Lists the nodes that wait for somebody, newest first."""
    return get("waits", query=given({"tag": tag, "olderThanSec": older_than_sec, "limit": limit, "cursor": cursor}))
