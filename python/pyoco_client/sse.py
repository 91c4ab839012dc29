"""Server-sent events out of bytes, however the network cut them.

Lines end with LF, CR LF or CR; an event ends with an empty line. An event that was not finished when the bytes ended never happened.
Not here: connections, and what an event means.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .errors import BadAnswer

_ENDING = re.compile(rb"\r\n|\n|\r")
_MARK = "\ufeff"
MOST_BYTES = 64 << 20
"""The longest event that is read."""


@dataclass(frozen=True)
class Frame:
    """One event of a stream."""

    name: str
    data: str
    id: str | None
    """What a new connection goes on after. An event without one has the last."""


class Decoder:
    """Takes bytes, gives events."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._begun = bytearray()
        self._after_return = False
        self._at_start = True
        self._name = ""
        self._data: list[str] = []
        self._size = 0
        self._id: str | None = None

    def push(self, piece: bytes) -> list[Frame]:
        """The events that these bytes complete."""
        if not piece:
            return []
        after_return, self._after_return = self._after_return, piece.endswith(b"\r")
        if after_return:
            # The LF belongs to the CR that ended the bytes before.
            piece = piece.removeprefix(b"\n")
        frames = []
        *lines, rest = _ENDING.split(piece)
        for line in lines:
            frame = self._line(bytes(self._begun) + line)
            self._begun.clear()
            if frame is not None:
                frames.append(frame)
        self._begun += rest
        if len(self._begun) + self._size > self._most_bytes:
            raise BadAnswer("an event is longer than allowed")
        return frames

    def _line(self, line: bytes) -> Frame | None:
        text = line.decode("utf-8", errors="replace")
        if self._at_start:
            self._at_start = False
            text = text.removeprefix(_MARK)
        if not text:
            return self._end()
        field, _, value = text.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            self._name = value
        elif field == "data":
            self._data.append(value)
            self._size += len(line) + 1
        elif field == "id" and "\0" not in value:
            self._id = value
        # Comments have an empty field name; others are for later versions of the format.
        return None

    def _end(self) -> Frame | None:
        name, data = self._name, self._data
        self._name, self._data, self._size = "", [], 0
        return Frame(name, "\n".join(data), self._id) if data else None
