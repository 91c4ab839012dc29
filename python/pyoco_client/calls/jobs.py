"""Jobs: submit, read, list, delete; their labels; their logs, in pages and as they are written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..follow import Lines
from ..request import Request, get, given, no_answer, path, said, under_key
from ..types import Job, JobPage, LogPage, TagPage


def submit_job(
    parameters: Mapping[str, Any] | None = None,
    *,
    flow: str | None = None,
    tag: str | None = None,
    tags: list[str] | None = None,
    idempotency_key: str | None = None,
) -> Request[Job]:
    """Submits a job: of the server's own flow unless one is named, for the workers of `tag`, with `tags` as its labels.

    Under an `idempotency_key` there is one job, however often it is sent; under a key of another request it is refused.
    """
    body = said({"parameters": dict(parameters or {}), "flow": flow, "tag": tag, "tags": tags})
    return Request("POST", path("jobs"), headers=under_key(idempotency_key), json=body)


def get_job(job_id: str) -> Request[Job]:
    """Reads a job."""
    return get("jobs", job_id)


def list_jobs(
    *,
    tags: list[str] | None = None,
    any_tags: list[str] | None = None,
    statuses: list[str] | None = None,
    flow: str | None = None,
    created_after: str | None = None,
    created_before: str | None = None,
    limit: int | None = None,
    next_token: str | None = None,
) -> Request[JobPage]:
    """Lists jobs, newest first: with each of `tags`, with at least one of `any_tags`, in one of `statuses`; times are RFC 3339."""
    values = {
        "tag": tags,
        "tagAny": any_tags,
        "status": statuses,
        "flow": flow,
        "createdAfter": created_after,
        "createdBefore": created_before,
        "limit": limit,
        "nextToken": next_token,
    }
    return get("jobs", query=given(values))


def delete_job(job_id: str) -> Request[None]:
    """Cancels a job that goes on; hides one that has ended. That there is none is no error."""
    return Request("DELETE", path("jobs", job_id), read=no_answer)


def job_tags(job_id: str) -> Request[list[str]]:
    """The labels of a job."""
    return get("jobs", job_id, "tags")


def add_tag(job_id: str, tag: str) -> Request[list[str]]:
    """Gives a job a label, and gives the labels it then has. Adding one twice is no error."""
    return Request("POST", path("jobs", job_id, "tags"), json={"tag": tag})


def remove_tag(job_id: str, tag: str) -> Request[None]:
    """Takes a label from a job. That it has none is no error."""
    return Request("DELETE", path("jobs", job_id, "tags", tag), read=no_answer)


def list_tags(
    *, prefix: str | None = None, limit: int | None = None, next_token: str | None = None
) -> Request[TagPage]:
    """Lists labels with how many jobs have them, in the order of their bytes."""
    return get("tags", query=given({"prefix": prefix, "limit": limit, "nextToken": next_token}))


def get_job_log(
    job_id: str,
    *,
    task: str | None = None,
    stream: str | None = None,
    since_token: str | None = None,
    limit: int | None = None,
) -> Request[LogPage]:
    """Reads a page of the log of a job, oldest line first: of a task, or of one of `stdout`, `stderr` and `engine`.

    Its `nextToken` is where to go on, now or later, as `since_token`.
    """
    values = {"task": task, "stream": stream, "sinceToken": since_token, "limit": limit}
    return get("jobs", job_id, "logs", query=given(values))


def get_run_log(
    run_id: str,
    *,
    task: str | None = None,
    stream: str | None = None,
    since_token: str | None = None,
    limit: int | None = None,
) -> Request[LogPage]:
    """The same of a run. A job is a run, and both show the same lines; but a job that was deleted has none to show."""
    values = {"task": task, "stream": stream, "sinceToken": since_token, "limit": limit}
    return get("runs", run_id, "logs", query=given(values))


def follow_job_log(
    job_id: str,
    *,
    task: str | None = None,
    stream: str | None = None,
    since_token: str | None = None,
    patience_sec: float = 60.0,
) -> Lines:
    """Follows the log of a job until it has ended: the lines that were written, then each as it is written.

    Each comes once and in order, also over broken connections. For `patience_sec` nothing at all may be heard.
    """
    return Lines("jobs", job_id, task, stream, since_token, patience_sec)


def follow_run_log(
    run_id: str,
    *,
    task: str | None = None,
    stream: str | None = None,
    since_token: str | None = None,
    patience_sec: float = 60.0,
) -> Lines:
    """The same of a run."""
    return Lines("runs", run_id, task, stream, since_token, patience_sec)
