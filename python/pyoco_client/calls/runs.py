"""Runs: submit, read, list, watch, cancel, and wait for them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import httpx

from ..errors import PyocoError, WaitTimeout, is_passing
from ..request import Pause, Query, Request, Steps, get, given, json_answer, path, said, under_key
from ..types import RunPage, RunSnapshot, RunSummary, RunTasks, Submitted
from ..watch import ENDED, Watch

_POLL = 0.25
# How long a server may be away while a run is waited for.
_PATIENCE = 60.0
_CANCEL_SECONDS = 30


def submit_run(
    flow_name: str,
    params: Mapping[str, Any] | None = None,
    *,
    tag: str | None = None,
    tags: list[str] | None = None,
    idempotency_key: str | None = None,
) -> Request[Submitted]:
    """Submits a run of a flow that the workers know.

    Under an `idempotency_key` there is one run, however often it is sent; under a key of another request it is refused.
    """
    body = said({"flow_name": flow_name, "params": dict(params or {}), "tag": tag, "tags": tags})
    return Request("POST", path("runs"), headers=under_key(idempotency_key), json=body)


def submit_run_yaml(
    workflow_yaml: str,
    *,
    flow_name: str,
    tag: str,
    idempotency_key: str | None = None,
) -> Request[Submitted]:
    """Submits a run of the flow that `workflow_yaml` describes."""
    return Request(
        "POST",
        path("runs", "yaml"),
        headers=under_key(idempotency_key),
        form={"flow_name": flow_name, "tag": tag},
        files={"workflow": ("flow.yaml", workflow_yaml.encode(), "application/x-yaml")},
    )


def get_run(run_id: str) -> Request[RunSnapshot]:
    """Reads a run."""
    return get("runs", run_id)


def get_run_with_records(run_id: str) -> Request[RunSnapshot]:
    """Reads a run with the records of its tasks."""
    return get("runs", run_id, query=[("include", "records")])


def get_tasks(run_id: str) -> Request[RunTasks]:
    """Reads the tasks of a run and their records."""
    return get("runs", run_id, "tasks")


def list_runs(
    *,
    status: str | None = None,
    flow: str | None = None,
    tag: str | None = None,
    full: bool = False,
    limit: int | None = None,
) -> Request[list[RunSummary]]:
    """Lists runs, newest change first; whole snapshots with `full`."""
    return Request("GET", path("runs"), query=_filter(status, flow, tag, full, limit), read=_items)


def list_runs_vnext(
    *,
    status: str | None = None,
    flow: str | None = None,
    tag: str | None = None,
    full: bool = False,
    limit: int | None = None,
    updated_after: float | None = None,
    cursor: str | None = None,
    workflow_yaml_sha256: str | None = None,
) -> Request[RunPage]:
    """Lists runs page by page, or only what changed. Send `next_cursor` as `cursor` to go on."""
    query = _filter(status, flow, tag, full, limit)
    query += given({"updated_after": updated_after, "workflow_yaml_sha256": workflow_yaml_sha256})
    # An empty cursor asks for the form with a `next_cursor`; without any, the first page would have none.
    query.append(("cursor", cursor or ""))
    return Request("GET", path("runs"), query=query, read=_page)


def watch_run(
    run_id: str,
    *,
    include_records: bool = False,
    since: float | None = None,
    timeout_sec: int | None = None,
) -> Watch:
    """Watches a run for 60 s, or `timeout_sec`: its snapshot now and after every change, heartbeats in between.

    A connection that breaks is replaced, and the new one goes on after the last event. The watch does not end with the run.
    """
    return Watch(run_id, include_records, since, timeout_sec)


def cancel_run(
    run_id: str,
    *,
    wait: bool = False,
    timeout_sec: int | None = None,
) -> Steps[RunSnapshot]:
    """Asks for the end of a run, and with `wait` stays until it has ended, at most 30 s or `timeout_sec`.

    A run that does not end in time raises a `WaitTimeout`, which is a `TimeoutError`. Asking again is harmless.
    """
    run: RunSnapshot = yield Request("POST", path("runs", run_id, "cancel"))
    if not wait or run["status"] in ENDED:
        return run
    seconds = max(1, _CANCEL_SECONDS if timeout_sec is None else timeout_sec)
    return (yield from _until_ended(run_id, seconds, "cancel wait timeout"))


def wait_for_end(run_id: str, *, timeout_sec: float | None = None) -> Steps[RunSnapshot]:
    """Waits until a run has ended, for as long as it takes or at most `timeout_sec`.

    A server that is away is waited for, but for no longer than a minute.
    """
    return (yield from _until_ended(run_id, timeout_sec, "wait timeout"))


def _until_ended(run_id: str, seconds: float | None, complaint: str) -> Steps[RunSnapshot]:
    deadline = None if seconds is None else time.monotonic() + seconds
    heard = time.monotonic()
    while True:
        try:
            run: RunSnapshot = yield get_run(run_id)
        except (PyocoError, httpx.TransportError) as error:
            if not is_passing(error) or time.monotonic() > heard + _PATIENCE:
                raise
        else:
            heard = time.monotonic()
            if run["status"] in ENDED:
                return run
        if deadline is not None and time.monotonic() >= deadline:
            raise WaitTimeout(f"{complaint} for run_id={run_id}", run_id)
        yield Pause(_POLL)


def _filter(status: str | None, flow: str | None, tag: str | None, full: bool, limit: int | None) -> Query:
    include = "full" if full else None
    return given({"status": status, "flow": flow, "tag": tag, "include": include, "limit": limit})


def _items(response: httpx.Response) -> list[RunSummary]:
    body: Any = json_answer(response)
    items: list[RunSummary] = body.get("items", []) if isinstance(body, dict) else body
    return items


def _page(response: httpx.Response) -> RunPage:
    body: Any = json_answer(response)
    page: RunPage = {"items": body, "next_cursor": None} if isinstance(body, list) else body
    return page
