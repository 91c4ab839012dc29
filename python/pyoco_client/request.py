"""A request that has not been sent, with the way in which its answer is read. Not here: sending it."""

from __future__ import annotations

import json as text_of
import uuid
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, Union
from urllib.parse import quote

import httpx

from .errors import BadAnswer, InvalidArgument

T = TypeVar("T")

Query = list[tuple[str, Union[str, int, float, bool, None]]]
File = tuple[str, bytes, str]
"""The name of a file, what is in it, and of which kind that is."""


def json_answer(response: httpx.Response) -> Any:
    """Reads an answer of any JSON."""
    try:
        return response.json()
    except (text_of.JSONDecodeError, UnicodeDecodeError) as error:
        request = response.request
        raise BadAnswer(f"{request.method} {request.url.path}: the answer is no JSON: {error}") from error


def no_answer(_response: httpx.Response) -> None:
    """For answers that say nothing beyond their status."""


@dataclass(frozen=True)
class Request(Generic[T]):
    """What is sent, and how a successful answer is read."""

    method: str
    path: str
    query: Query = field(default_factory=list)
    headers: Mapping[str, str] = field(default_factory=dict)
    json: Any = None
    content: bytes | None = None
    form: Mapping[str, str] | None = None
    files: Mapping[str, File] | None = None
    read: Callable[[httpx.Response], T] = json_answer

    def build(self, http: httpx.Client | httpx.AsyncClient, timeout: httpx.Timeout) -> httpx.Request:
        """The same for httpx, to be sent to the server of `http`."""
        return http.build_request(
            self.method,
            self.path,
            params=self.query,
            headers=dict(self.headers),
            json=self.json,
            content=self.content,
            data=self.form,
            files=self.files,
            timeout=timeout,
        )


@dataclass(frozen=True)
class Pause:
    """A step that only takes time."""

    seconds: float


Steps = Generator[Union[Request[Any], Pause], Any, T]
"""A call of several requests: it gives out one step after the other, is sent what came of each, and returns the answer."""


def path(*segments: str) -> str:
    """The path made of `segments`, each of which may hold any character."""
    for segment in segments:
        if segment in ("", ".", ".."):
            raise InvalidArgument(f"'{segment}' is no id")
    return "".join("/" + quote(segment, safe="") for segment in segments)


def get(*segments: str, query: Query | None = None) -> Request[Any]:
    """A question that is answered with JSON."""
    return Request("GET", path(*segments), query=query or [])


def given(values: Mapping[str, object]) -> Query:
    """The parameters that were given: neither none nor an empty text. A list is given item by item."""
    query: Query = []
    for name, value in values.items():
        items: Iterable[object] = value if isinstance(value, (list, tuple)) else [value]
        query.extend((name, _text(item)) for item in items if item is not None and item != "")
    return query


def said(values: Mapping[str, object]) -> dict[str, object]:
    """The members of a body that are not none."""
    return {name: value for name, value in values.items() if value is not None}


def under_key(key: str | None) -> dict[str, str]:
    """The header of a request that may be repeated."""
    return {} if key is None else {"X-Idempotency-Key": key}


def command(*segments: str, body: Mapping[str, object], key: str | None, thread: str | None) -> Request[Any]:
    """A command to an execution. Without a key it is one that was never sent before."""
    headers = under_key(key or str(uuid.uuid4()))
    if thread is not None:
        headers["X-Correlation-Id"] = thread
    return Request("POST", path(*segments), headers=headers, json=dict(body))


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
