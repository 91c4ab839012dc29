"""What both clients know about the server: its address, the key, how long to wait. Not here: connections."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeVar

import httpx

from .errors import InvalidArgument

F = TypeVar("F", bound=Callable[..., Any])

_CONNECT_SECONDS = 5.0
# The server says something every few seconds; silence for so long is a broken connection.
_SILENCE_SECONDS = 15.0


class Settings:
    """How a server is reached."""

    def __init__(self, base_url: str, api_key: str | None, api_key_header: str, timeout: float) -> None:
        if not base_url.startswith(("http://", "https://")):
            raise InvalidArgument(f"the server URL '{base_url}' begins with neither http:// nor https://")
        self.base_url = base_url.rstrip("/")
        self.headers = {"User-Agent": f"pyoco-client-python/{package_version()}"}
        if api_key:
            self.headers[api_key_header] = api_key
        self.timeout = httpx.Timeout(timeout, connect=min(timeout, _CONNECT_SECONDS))
        self.stream_timeout = httpx.Timeout(_SILENCE_SECONDS, connect=min(timeout, _CONNECT_SECONDS))


def package_version() -> str:
    """The version of this package; `0` where it is used without being installed."""
    try:
        return version("pyoco-server-rs")
    except PackageNotFoundError:
        return "0"


def as_method(call: Callable[..., object]) -> Callable[[F], F]:
    """Lets a method of a client look like the call that it sends: its name, its text, its parameters."""

    def dress(method: F) -> F:
        functools.update_wrapper(method, call)
        own = inspect.signature(call)
        itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
        # What a call returns is how it is sent, not what the caller gets.
        setattr(method, "__signature__", inspect.Signature([itself, *own.parameters.values()]))
        return method

    return dress
