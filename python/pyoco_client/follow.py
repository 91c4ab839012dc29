"""Following the events of an execution, and the lines of a log: each one once, in order, also when the connection does not last."""

from __future__ import annotations

import json
from typing import Any

from .errors import BadAnswer
from .request import Request, given, path
from .resume import Patient
from .sse import Frame
from .types import ExecutionEvent, LogEntry


class Events(Patient[ExecutionEvent]):
    """The events of an execution behind a number."""

    def __init__(self, execution_id: str, after: int, patience: float) -> None:
        super().__init__(patience)
        self._path = path("executions", execution_id, "events", "stream")
        self._last = after

    def request(self) -> Request[Any]:
        return Request("GET", self._path, headers={"Last-Event-ID": str(self._last)} if self._last else {})

    def understand(self, frame: Frame) -> ExecutionEvent | None:
        if frame.name == "end":
            self.is_over = True
            return None
        event: ExecutionEvent = _read(frame)
        number = event["seq"]
        if number <= self._last:
            return None
        if number != self._last + 1:
            raise BadAnswer(f"GET {self._path}: event {number} follows event {self._last}")
        self._last = number
        return event


class Lines(Patient[LogEntry]):
    """The lines of a log, of a job or of a run."""

    def __init__(
        self, kind: str, id: str, task: str | None, stream: str | None, since_token: str | None, patience: float
    ) -> None:
        super().__init__(patience)
        self._path = path(kind, id, "logs", "stream")
        self._query = given({"task": task, "stream": stream, "sinceToken": since_token})
        self._is_filtered = bool(task or stream)
        self._last: int | None = None

    def request(self) -> Request[Any]:
        # A number wins over the token with which it all began.
        headers = {} if self._last is None else {"Last-Event-ID": str(self._last)}
        return Request("GET", self._path, query=self._query, headers=headers)

    def understand(self, frame: Frame) -> LogEntry | None:
        if frame.name == "status":
            self.is_over = True
        if frame.name != "logEntry":
            return None
        line: LogEntry = _read(frame)
        number, last = line["seq"], self._last
        if last is not None and number <= last:
            return None
        if not self._may_follow(number):
            raise BadAnswer(f"GET {self._path}: line {number} follows line {last or 0}")
        self._last = number
        return line

    def _may_follow(self, number: int) -> bool:
        """Whether this line may come next. With filters, or behind a token, only the server knows which one does."""
        if self._is_filtered or (self._last is None and self._query):
            return True
        return number == (self._last or 0) + 1


def _read(frame: Frame) -> Any:
    try:
        return json.loads(frame.data)
    except json.JSONDecodeError as error:
        raise BadAnswer(f"an event of kind '{frame.name}' is no JSON: {error}") from error
