"""Wheels: look at what is there and at its history, upload one, fetch one, delete one."""

from __future__ import annotations

import hashlib

import httpx

from ..errors import BadAnswer
from ..request import Request, get, given, path
from ..types import WheelArtifact, WheelDeleted, WheelHistoryEvent


def list_wheels() -> Request[list[WheelArtifact]]:
    """Lists the wheels, in the order of their names."""
    return get("wheels")


def list_wheel_history(
    *,
    limit: int | None = None,
    wheel_name: str | None = None,
    action: str | None = None,
) -> Request[list[WheelHistoryEvent]]:
    """Lists uploads and deletions (`action`: `upload` or `delete`), newest first."""
    return get("wheels", "history", query=given({"limit": limit, "wheel_name": wheel_name, "action": action}))


def upload_wheel(
    *,
    filename: str,
    data: bytes,
    replace: bool = True,
    tags: list[str] | None = None,
) -> Request[WheelArtifact]:
    """Uploads a wheel for the workers with one of `tags`, or for all. A version that is there is never replaced."""
    form = {"replace": "true" if replace else "false"}
    names = [name for name in (str(tag).strip() for tag in tags or []) if name]
    if names:
        form["tags"] = ",".join(names)
    return Request(
        "POST",
        path("wheels"),
        form=form,
        files={"wheel": (filename, data, "application/octet-stream")},
    )


def download_wheel(wheel_name: str) -> Request[bytes]:
    """Fetches a wheel. A damaged one raises a `BadAnswer`."""
    return Request("GET", path("wheels", wheel_name), read=_sound)


def delete_wheel(wheel_name: str) -> Request[WheelDeleted]:
    """Deletes a wheel. Runs that have begun with it keep it."""
    return Request("DELETE", path("wheels", wheel_name))


def _sound(response: httpx.Response) -> bytes:
    wanted = response.headers.get("etag", "").strip('"').lower()
    found = hashlib.sha256(response.content).hexdigest()
    if found != wanted:
        raise BadAnswer(f"the wheel is damaged: it hashes to {found}, and the server says '{wanted}'")
    return response.content
