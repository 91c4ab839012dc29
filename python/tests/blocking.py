"""The client for asyncio behind the methods of the other one, so that each test runs with both."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any

from pyoco_client import AsyncPyocoHttpClient


class Blocking:
    """Awaits every call in an event loop of its own."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._client = AsyncPyocoHttpClient(*arguments, **named)

    def close(self) -> None:
        self._loop.run_until_complete(self._client.close())
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._client, name)

        def call(*arguments: Any, **named: Any) -> Any:
            answer = method(*arguments, **named)
            if isinstance(answer, AsyncGenerator):
                return self._items(answer)
            return self._loop.run_until_complete(answer)

        return call

    def _items(self, items: AsyncGenerator[Any, None]) -> Iterator[Any]:
        try:
            while True:
                yield self._loop.run_until_complete(anext(items))
        except StopAsyncIteration:
            return
        finally:
            self._loop.run_until_complete(items.aclose())
