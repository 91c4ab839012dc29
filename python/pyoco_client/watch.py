"""Watching a run: one stream of events for a bounded time, also when its connection does not last."""

from __future__ import annotations

import json
import math
import time
from typing import Any

from .errors import BadAnswer, StatusError, is_passing
from .request import Request, given, path
from .resume import Source
from .sse import Frame
from .types import WatchEvent

# How long the server keeps a watch open that does not say.
_DEFAULT_SECONDS = 60
# The shortest watch that the server accepts; with less time left there is no reconnect.
_SHORTEST = 1.0
# The server ends a watch by its own clock; it may be this late.
_LATE = 2.0
ENDED = frozenset({"COMPLETED", "FAILED", "CANCELLED"})
"""A run of one of these states has ended and will not change any more."""


class Watch(Source[WatchEvent]):
    """Snapshots of a run, and heartbeats in between."""

    def __init__(
        self, run_id: str, include_records: bool, since: float | None, timeout_sec: int | None
    ) -> None:
        self._path = path("runs", run_id, "watch")
        self._query = given({"include": "records" if include_records else None, "since": since})
        self._seconds = timeout_sec
        self._deadline = time.monotonic() + (_DEFAULT_SECONDS if timeout_sec is None else timeout_sec)
        self._is_begun = False
        self._last_id: str | None = None
        self._has_ended = False

    def request(self) -> Request[Any]:
        left = max(1, math.ceil(self._deadline - time.monotonic()))
        seconds = left if self._is_begun else self._seconds
        self._is_begun = True
        headers = {} if self._last_id is None else {"Last-Event-ID": self._last_id}
        query = self._query + given({"timeout_sec": seconds})
        return Request("GET", self._path, query=query, headers=headers)

    def understand(self, frame: Frame) -> WatchEvent | None:
        if time.monotonic() > self._deadline + _LATE:
            self.is_over = True
            return None
        if frame.id:
            self._last_id = frame.id
        if frame.name not in ("snapshot", "heartbeat"):
            return None
        try:
            data = json.loads(frame.data)
        except json.JSONDecodeError as error:
            raise BadAnswer(f"GET {self._path}: an event of kind {frame.name} is no JSON: {error}") from error
        snapshot = data.get("snapshot")
        if snapshot is not None:
            self._has_ended = snapshot.get("status") in ENDED
        return {"event": frame.name, "data": data}

    def may_connect(self, pause: float, quiet: float, trouble: Exception | None, tries: int) -> bool:
        if trouble is None and (self._has_ended or self._last_id is None):
            # Without ids a new connection would only repeat what was seen.
            return False
        if isinstance(trouble, StatusError) and trouble.status == 404:
            # It was there, and is gone.
            return False
        if trouble is not None and not is_passing(trouble):
            raise trouble
        if time.monotonic() + pause + _SHORTEST <= self._deadline:
            return True
        if trouble is not None and tries:
            raise trouble
        # A connection that broke at the very end has shown everything it could.
        return False
