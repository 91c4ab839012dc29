"""The nodes of an execution, driven from outside. A node in a loop is named by its path, e.g. `retry/2/fetch`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..request import Request, command, said
from ..types import Accepted, ErrorInfo


def start_node(
    execution_id: str,
    node_id: str,
    *,
    attempt: int | None = None,
    worker_id: str | None = None,
    idempotency_key: str | None = None,
    correlation_id: str | None = None,
) -> Request[Accepted]:
    """Begins an attempt of a node: the next one, unless it is said which."""
    body = {"attempt": attempt, "workerId": worker_id}
    return _command(execution_id, node_id, "start", body, idempotency_key, correlation_id)


def report_progress(
    execution_id: str,
    node_id: str,
    *,
    progress: float | None = None,
    message: str | None = None,
    metrics: Mapping[str, Any] | None = None,
    idempotency_key: str | None = None,
    correlation_id: str | None = None,
) -> Request[Accepted]:
    """Says how far an attempt is, in percent, for people and for machines."""
    body = {"progress": progress, "message": message, "metrics": metrics}
    return _command(execution_id, node_id, "progress", body, idempotency_key, correlation_id)


def put_node_waiting(
    execution_id: str,
    node_id: str,
    *,
    wait_key: str | None = None,
    prompt: Mapping[str, Any] | None = None,
    idempotency_key: str | None = None,
    correlation_id: str | None = None,
) -> Request[Accepted]:
    """Lets a running node wait for somebody. The answer has to name the `wait_key`."""
    body = {"waitKey": wait_key, "prompt": prompt}
    return _command(execution_id, node_id, "wait", body, idempotency_key, correlation_id)


def resume_node(
    execution_id: str,
    node_id: str,
    *,
    resume_key: str | None = None,
    output: Any = None,
    idempotency_key: str | None = None,
    correlation_id: str | None = None,
) -> Request[Accepted]:
    """Answers a node that waits. The output of a wait node is the answer."""
    body = {"resumeKey": resume_key, "output": output}
    return _command(execution_id, node_id, "resume", body, idempotency_key, correlation_id)


def succeed_node(
    execution_id: str,
    node_id: str,
    *,
    output: Any = None,
    attempt: int | None = None,
    idempotency_key: str | None = None,
    correlation_id: str | None = None,
) -> Request[Accepted]:
    """Says that a node ended well, and what it produced."""
    body = {"output": output, "attempt": attempt}
    return _command(execution_id, node_id, "success", body, idempotency_key, correlation_id)


def fail_node(
    execution_id: str,
    node_id: str,
    *,
    error: ErrorInfo | None = None,
    attempt: int | None = None,
    idempotency_key: str | None = None,
    correlation_id: str | None = None,
) -> Request[Accepted]:
    """Says that an attempt failed."""
    body = {"error": error, "attempt": attempt}
    return _command(execution_id, node_id, "fail", body, idempotency_key, correlation_id)


def cancel_node(
    execution_id: str,
    node_id: str,
    *,
    reason: str | None = None,
    idempotency_key: str | None = None,
    correlation_id: str | None = None,
) -> Request[Accepted]:
    """Cancels one node; the rest goes on without it."""
    return _command(execution_id, node_id, "cancel", {"reason": reason}, idempotency_key, correlation_id)


def _command(
    execution_id: str, node_id: str, verb: str, body: Mapping[str, Any], key: str | None, thread: str | None
) -> Request[Accepted]:
    return command("executions", execution_id, "nodes", node_id, verb, body=said(body), key=key, thread=thread)
