"""A stream of events over connections that do not last: what was given out is not given out again, and nothing is left out.

Everything about it but the waiting: which request comes next, what the bytes mean, whether to connect again. Not here: connections (the
clients have them), and what the events are (each kind of stream is a `Source`).
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

import httpx

from .errors import BadAnswer, PyocoError, is_passing
from .request import Request
from .sse import Decoder, Frame

T = TypeVar("T")

_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 2.0


class Source(ABC, Generic[T]):
    """What is followed. It knows how far it was given out."""

    is_over = False
    """Nothing more will come."""

    @abstractmethod
    def request(self) -> Request[Any]:
        """The request for what comes behind the last event that was understood."""

    @abstractmethod
    def understand(self, frame: Frame) -> T | None:
        """What an event says; nothing when it was given out before, or is of a kind that this version does not know."""

    @abstractmethod
    def may_connect(self, pause: float, quiet: float, trouble: Exception | None, tries: int) -> bool:
        """Whether to connect again after a pause, when nothing was heard for `quiet` seconds and a connection was tried so often
        since. Otherwise it is over, or it raises what is wrong."""


class Follow(Generic[T]):
    """A source on its way through connections."""

    def __init__(self, source: Source[T]) -> None:
        self._source = source
        self._decoder = Decoder()
        self._heard = time.monotonic()
        self._was_open = False
        self._tries = 0
        self._pause = _FIRST_PAUSE

    @property
    def is_over(self) -> bool:
        """Nothing more is given out."""
        return self._source.is_over

    def request(self) -> Request[Any]:
        """What to ask on the next connection."""
        return self._source.request()

    def opened(self, response: httpx.Response) -> None:
        """The server has answered, and with success."""
        self._decoder = Decoder()
        self._was_open = True
        self._tries = 0
        if response.status_code == httpx.codes.NO_CONTENT:
            # Everything was told already.
            self._source.is_over = True
            return
        kind = response.headers.get("content-type", "")
        if not kind.startswith("text/event-stream"):
            raise BadAnswer(f"GET {response.request.url.path}: the answer is no event stream but '{kind}'")

    def take(self, piece: bytes) -> list[T]:
        """What these bytes say."""
        self._heard = time.monotonic()
        items = []
        for frame in self._decoder.push(piece):
            item = None if self.is_over else self._source.understand(frame)
            if item is not None:
                self._pause = _FIRST_PAUSE
                items.append(item)
        return items

    def lost(self, trouble: Exception | None) -> float:
        """The connection is gone, in good order or not. How long to pause before the next, unless it is over."""
        if trouble is not None and not self._was_open:
            raise trouble
        pause, self._pause = self._pause, min(self._pause * 2, _LONGEST_PAUSE)
        quiet = time.monotonic() - self._heard
        if not self._source.may_connect(pause, quiet, trouble, self._tries):
            self._source.is_over = True
        self._tries += 1
        return pause


class Patient(Source[T]):
    """A source that says itself when it is at its end. A server that is away is waited for."""

    def __init__(self, patience: float) -> None:
        self._patience = patience

    def may_connect(self, pause: float, quiet: float, trouble: Exception | None, tries: int) -> bool:
        if trouble is not None and not is_passing(trouble):
            raise trouble
        if quiet + pause < self._patience:
            return True
        raise trouble or BadAnswer("the stream ends before its execution")


TROUBLE = (httpx.TransportError, PyocoError)
"""What a connection may be lost with."""
