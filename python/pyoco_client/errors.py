"""What can go wrong between a caller and the server, told apart so that a program can act on it.

An answer that is no success is a `StatusError`, which is an `httpx.HTTPStatusError` too. A server that cannot be reached, or does not
answer in time, raises the exceptions of httpx (`httpx.TransportError`) with a message that names the call.
"""

from __future__ import annotations

import json
from typing import Any, cast

import httpx

from .types import FieldProblem, InputProblem, WorkflowProblem

# Answers that may be another one a little later.
_PASSING = frozenset({408, 429, 500, 502, 503, 504})


class PyocoError(Exception):
    """Everything that this package raises by itself."""


class InvalidArgument(PyocoError, ValueError):
    """What the caller asked for cannot be sent at all. Nothing was sent."""


class BadAnswer(PyocoError, ValueError):
    """The answer makes no sense."""


class WaitTimeout(PyocoError, TimeoutError):
    """A run was waited for and did not end in time. It goes on."""

    def __init__(self, message: str, run_id: str) -> None:
        super().__init__(message)
        self.run_id = run_id


class StatusError(PyocoError, httpx.HTTPStatusError):
    """The server answered with something other than success.

    `/runs`, `/workers` and `/wheels` explain themselves with `detail`, `err_id` and `msg_id`; `/executions`, `/graphs`, `/waits`, `/jobs`
    and `/tags` with `code`, `message` and `details`.
    """

    status: int
    """The HTTP status."""
    detail: str | list[InputProblem] | None
    """What is wrong: a text, or a list of inputs that are wrong."""
    err_id: str | None
    """The contract's error number, e.g. `ERR-PYOCO-0005`."""
    msg_id: str | None
    """The contract's message number, e.g. `MSG-PYOCO-0005`."""
    code: str | None
    """The stable word for what is wrong, e.g. `COMMAND_REJECTED`."""
    message: str
    """What is wrong, for people."""
    details: dict[str, Any]
    """What else is known."""

    def __init__(self, response: httpx.Response) -> None:
        body = _object(response)
        denial = body.get("error")
        denial = denial if isinstance(denial, dict) else {}
        self.status = response.status_code
        self.detail = body.get("detail")
        self.err_id = body.get("err_id")
        self.msg_id = body.get("msg_id")
        self.code = denial.get("code")
        self.details = denial.get("details") or {}
        self._errors: list[Any] = body.get("errors") or self.details.get("errors") or []
        self.message = denial.get("message") or _in_words(self.detail) or response.text.strip()
        request = response.request
        said = ": ".join(part for part in (self.code or self.err_id, self.message) if part)
        text = f"HTTP {self.status} {request.method} {request.url.raw_path.decode()}"
        super().__init__(f"{text}: {said}" if said else text, request=request, response=response)

    @property
    def workflow_problems(self) -> list[WorkflowProblem]:
        """What is wrong with a flow.yaml or a graph that was sent, and where."""
        return [cast(WorkflowProblem, error) for error in self._errors if "reason" in error]

    @property
    def field_problems(self) -> list[FieldProblem]:
        """Which fields of what was sent are wrong, where the surface says so field by field."""
        return [cast(FieldProblem, error) for error in self._errors if "path" in error]


def is_passing(error: Exception) -> bool:
    """Whether the same call may succeed a little later."""
    if isinstance(error, StatusError):
        return error.status in _PASSING
    return isinstance(error, httpx.TransportError) and not isinstance(error, httpx.UnsupportedProtocol)


def named(error: httpx.TransportError, request: httpx.Request) -> httpx.TransportError:
    """The same error, with a message that says which call it was and where it went."""
    host = request.url.netloc.decode()
    what = str(error) or type(error).__name__
    return type(error)(f"{request.method} {request.url.raw_path.decode()}: {what} ({host})", request=request)


def _object(response: httpx.Response) -> dict[str, Any]:
    try:
        body = response.json()
    except (json.JSONDecodeError, UnicodeDecodeError):
        return {}
    return body if isinstance(body, dict) else {}


def _in_words(detail: str | list[InputProblem] | None) -> str:
    if isinstance(detail, list):
        return "; ".join(f"{'.'.join(str(step) for step in one['loc'])}: {one['msg']}" for one in detail)
    return detail or ""
