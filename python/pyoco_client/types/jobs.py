"""Jobs, their logs and their labels. Times are RFC 3339."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

JobStatus = Literal["pending", "running", "completed", "failed", "canceled"]
"""Where a job stands. One that is asked to stop still runs."""


class _Job(TypedDict):
    id: str
    status: JobStatus
    createdAt: str


class Job(_Job, total=False):
    """A job. It is an execution and a run of the same id, too."""

    startedAt: str | None
    completedAt: str | None
    tags: list[str]
    flow: str
    parameters: dict[str, Any]
    cancelRequestedAt: str
    error: str


class _JobPage(TypedDict):
    jobs: list[Job]


class JobPage(_JobPage, total=False):
    """A page of jobs, newest first. It may be short, or empty, and still go on with `nextToken`."""

    nextToken: str


class TagCount(TypedDict):
    """A label that is in use, and how many jobs have it."""

    tag: str
    count: int


class _TagPage(TypedDict):
    tags: list[TagCount]


class TagPage(_TagPage, total=False):
    """A page of labels, in the order of their bytes."""

    nextToken: str


class _LogEntry(TypedDict):
    seq: int
    timestamp: str
    message: str
    stream: str


class LogEntry(_LogEntry, total=False):
    """One line of a log: of `stdout`, `stderr` or `engine`. It keeps its number for ever."""

    task: str | None
    attempt: int


class _LogPage(TypedDict):
    entries: list[LogEntry]
    nextToken: str


class LogPage(_LogPage, total=False):
    """A page of a log, oldest line first. While `throughSeq` is less than `lastSeq` there is more."""

    throughSeq: int
    lastSeq: int
