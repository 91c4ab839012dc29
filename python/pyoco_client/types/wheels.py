"""Wheels: files of Python code that workers install, and their history. Times are unix seconds."""

from __future__ import annotations

from typing import TypedDict


class UsedWheel(TypedDict):
    """One wheel that a run runs with."""

    name: str
    version: str
    sha256: str


class _WheelArtifact(TypedDict):
    name: str
    size_bytes: int


class WheelArtifact(_WheelArtifact, total=False):
    """A wheel that is there. Without `tags` it is for all workers."""

    bucket: str
    nuid: str
    modified: float
    mtime: str | None
    digest: str | None
    sha256_b64: str | None
    sha256_hex: str
    tags: list[str]


class WheelDeleted(TypedDict):
    """The answer to a deletion."""

    name: str
    deleted: bool


class WheelHistoryActor(TypedDict, total=False):
    """Who changed what is there; nobody in particular where no keys are asked for."""

    tenant_id: str | None
    api_key_id: str | None


class WheelHistorySource(TypedDict, total=False):
    """From where it was changed. Only the address is certain: headers may say anything."""

    remote_addr: str | None
    x_forwarded_for: str | None
    x_real_ip: str | None
    user_agent: str | None
    host: str | None
    scheme: str | None


class _WheelHistoryEvent(TypedDict):
    event_id: str
    occurred_at: float
    action: str
    wheel_name: str


class WheelHistoryEvent(_WheelHistoryEvent, total=False):
    """One change of what is there: an `upload` or a `delete`."""

    tags: list[str]
    size_bytes: int | None
    sha256_hex: str | None
    replace: bool | None
    actor: WheelHistoryActor
    source: WheelHistorySource
