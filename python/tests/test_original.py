"""The class of the same name in pyoco-server 0.5.1: what was written for it finds the same methods, parameters and answers here."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import inspect
from collections.abc import Callable
from typing import Any

import pytest
from server import Server

from pyoco_client import AsyncPyocoHttpClient, PyocoHttpClient


def original() -> Any:
    """The original's class. Its module is loaded alone: the package around it needs a whole server's dependencies."""
    place = importlib.metadata.distribution("pyoco-server").locate_file("pyoco_server/http_client.py")
    spec = importlib.util.spec_from_file_location("original_http_client", str(place))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.PyocoHttpClient


def methods(kind: type) -> dict[str, Callable[..., Any]]:
    return {name: member for name, member in inspect.getmembers(kind, callable) if not name.startswith("_")}


def shape(method: Callable[..., Any]) -> list[tuple[str, object, object]]:
    parameters = list(inspect.signature(method).parameters.values())[1:]
    return [(one.name, one.kind, one.default) for one in parameters]


@pytest.mark.parametrize("name", ["__init__", *methods(original())])
def test_each_method_of_the_original_takes_the_same(name: str) -> None:
    wanted, found = shape(getattr(original(), name)), shape(getattr(PyocoHttpClient, name))
    assert [one for one in found if one in wanted] == wanted
    more = [one for one in found if one not in wanted]
    assert all(kind is inspect.Parameter.KEYWORD_ONLY and default is not inspect.Parameter.empty for _, kind, default in more)


def test_the_original_has_been_looked_at() -> None:
    assert len(methods(original())) >= 16


def test_both_of_our_clients_have_the_same_methods() -> None:
    ours, others = methods(PyocoHttpClient), methods(AsyncPyocoHttpClient)
    assert list(ours) == list(others)
    assert {name: shape(method) for name, method in ours.items()} == {
        name: shape(method) for name, method in others.items()
    }
    assert all(method.__doc__ for method in ours.values())


def test_both_clients_are_told_the_same(server: Server) -> None:
    theirs, ours = original()(server.url), PyocoHttpClient(server.url)
    run_id = theirs.submit_run("greet", {"name": "Ada"}, tags=["both"])["run_id"]
    assert ours.wait_for_end(run_id, timeout_sec=60)["status"] == "COMPLETED"
    asked: list[Callable[[Any], Any]] = [
        lambda client: client.get_run(run_id)["tasks"],
        lambda client: client.get_run_with_records(run_id)["task_records"],
        lambda client: client.get_tasks(run_id),
        lambda client: client.list_runs(flow="greet", limit=1),
        lambda client: client.list_runs(full=True, limit=1),
        lambda client: client.list_runs_vnext(limit=1, cursor="", updated_after=1.0)["items"],
        lambda client: client.cancel_run(run_id, wait=True, timeout_sec=5)["status"],
        lambda client: [next(client.watch_run(run_id, timeout_sec=1))[key] for key in ("event",)],
        lambda client: list(next(client.watch_run(run_id, timeout_sec=1))["data"]),
        lambda client: [worker["worker_id"] for worker in client.get_workers()],
        lambda client: client.list_wheels(),
        lambda client: client.list_wheel_history(limit=1),
        lambda client: type(client.get_metrics()),
    ]
    for ask in asked:
        assert ask(ours) == ask(theirs)
    theirs.close()
    ours.close()
