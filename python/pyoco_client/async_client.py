"""The client for asyncio: the same calls, awaited. What they are is described in `calls`; here is only how that is sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar

import httpx

from .calls import executions, graphs, jobs, nodes, runs, system, wheels
from .connection import Settings, as_method
from .errors import StatusError, named
from .request import Pause, Request, Steps
from .resume import TROUBLE, Follow, Source

P = ParamSpec("P")
T = TypeVar("T")


def _one(call: Callable[P, Request[T]]) -> Callable[Concatenate[AsyncPyocoHttpClient, P], Coroutine[Any, Any, T]]:
    """A call of one request."""

    @as_method(call)
    async def method(self: AsyncPyocoHttpClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._send(call(*args, **kwargs))

    return method


def _several(call: Callable[P, Steps[T]]) -> Callable[Concatenate[AsyncPyocoHttpClient, P], Coroutine[Any, Any, T]]:
    """A call of several requests."""

    @as_method(call)
    async def method(self: AsyncPyocoHttpClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._walk(call(*args, **kwargs))

    return method


def _stream(call: Callable[P, Source[T]]) -> Callable[Concatenate[AsyncPyocoHttpClient, P], AsyncGenerator[T, None]]:
    """A call that is answered with a stream. Nothing is sent before the first item is asked for."""

    @as_method(call)
    def method(self: AsyncPyocoHttpClient, /, *args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[T, None]:
        return self._follow(call(*args, **kwargs))

    return method


class AsyncPyocoHttpClient:
    """Talks to one server, in one event loop.

    >>> async with AsyncPyocoHttpClient("http://127.0.0.1:8000") as client:  # doctest: +SKIP
    ...     run = await client.submit_run("hello", {"name": "Ada"})
    ...     async for line in client.follow_run_log(run["run_id"]):
    ...         print(line["message"])
    """

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | None = None,
        api_key_header: str = "X-API-Key",
        timeout: float = 30.0,
    ) -> None:
        """Nothing is sent yet. `timeout` bounds each wait for the server, in seconds; it does not bound a stream."""
        self._settings = Settings(base_url, api_key, api_key_header, timeout)
        self._http = httpx.AsyncClient(
            base_url=self._settings.base_url, headers=self._settings.headers, timeout=self._settings.timeout
        )

    async def close(self) -> None:
        """Closes the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> AsyncPyocoHttpClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    submit_run = _one(runs.submit_run)
    submit_run_yaml = _one(runs.submit_run_yaml)
    get_run = _one(runs.get_run)
    get_run_with_records = _one(runs.get_run_with_records)
    get_tasks = _one(runs.get_tasks)
    list_runs = _one(runs.list_runs)
    list_runs_vnext = _one(runs.list_runs_vnext)
    watch_run = _stream(runs.watch_run)
    cancel_run = _several(runs.cancel_run)
    wait_for_end = _several(runs.wait_for_end)
    get_run_log = _one(jobs.get_run_log)
    follow_run_log = _stream(jobs.follow_run_log)

    get_health = _one(system.get_health)
    get_metrics = _one(system.get_metrics)
    get_workers = _one(system.get_workers)
    patch_worker_hidden = _one(system.patch_worker_hidden)
    list_audit = _one(system.list_audit)

    list_wheels = _one(wheels.list_wheels)
    list_wheel_history = _one(wheels.list_wheel_history)
    upload_wheel = _one(wheels.upload_wheel)
    download_wheel = _one(wheels.download_wheel)
    delete_wheel = _one(wheels.delete_wheel)

    create_execution = _one(executions.create_execution)
    start_execution = _one(executions.start_execution)
    cancel_execution = _one(executions.cancel_execution)
    archive_execution = _one(executions.archive_execution)
    retry_execution = _one(executions.retry_execution)
    bulk = _one(executions.bulk)
    get_execution = _one(executions.get_execution)
    list_executions = _one(executions.list_executions)
    get_events = _one(executions.get_events)
    follow_events = _stream(executions.follow_events)
    list_waits = _one(executions.list_waits)

    start_node = _one(nodes.start_node)
    report_progress = _one(nodes.report_progress)
    put_node_waiting = _one(nodes.put_node_waiting)
    resume_node = _one(nodes.resume_node)
    succeed_node = _one(nodes.succeed_node)
    fail_node = _one(nodes.fail_node)
    cancel_node = _one(nodes.cancel_node)

    put_graph = _one(graphs.put_graph)
    get_graph = _one(graphs.get_graph)
    list_graphs = _one(graphs.list_graphs)
    delete_graph = _one(graphs.delete_graph)

    submit_job = _one(jobs.submit_job)
    get_job = _one(jobs.get_job)
    list_jobs = _one(jobs.list_jobs)
    delete_job = _one(jobs.delete_job)
    job_tags = _one(jobs.job_tags)
    add_tag = _one(jobs.add_tag)
    remove_tag = _one(jobs.remove_tag)
    list_tags = _one(jobs.list_tags)
    get_job_log = _one(jobs.get_job_log)
    follow_job_log = _stream(jobs.follow_job_log)

    async def _send(self, request: Request[T]) -> T:
        built = request.build(self._http, self._settings.timeout)
        try:
            response = await self._http.send(built)
        except httpx.TransportError as error:
            raise named(error, built) from error
        if not response.is_success:
            raise StatusError(response)
        return request.read(response)

    async def _walk(self, steps: Steps[T]) -> T:
        try:
            step = next(steps)
            while True:
                try:
                    came: Any = await self._step(step)
                except TROUBLE as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(came)
        except StopIteration as end:
            answer: T = end.value
            return answer

    async def _step(self, step: Request[Any] | Pause) -> Any:
        return await (asyncio.sleep(step.seconds) if isinstance(step, Pause) else self._send(step))

    async def _follow(self, source: Source[T]) -> AsyncGenerator[T, None]:
        follow = Follow(source)
        while not follow.is_over:
            trouble: Exception | None = None
            try:
                async with aclosing(self._connection(follow)) as items:
                    async for item in items:
                        yield item
            except TROUBLE as error:
                trouble = error
            if not follow.is_over:
                await asyncio.sleep(follow.lost(trouble))

    async def _connection(self, follow: Follow[T]) -> AsyncGenerator[T, None]:
        request = follow.request().build(self._http, self._settings.stream_timeout)
        try:
            response = await self._http.send(request, stream=True)
            try:
                if not response.is_success:
                    await response.aread()
                    raise StatusError(response)
                follow.opened(response)
                async for piece in response.aiter_bytes():
                    for item in follow.take(piece):
                        yield item
                    if follow.is_over:
                        return
            finally:
                await response.aclose()
        except httpx.TransportError as error:
            raise named(error, request) from error
