"""Runs: submitted, read, listed, watched, cancelled, waited for."""

from __future__ import annotations

import asyncio
import pathlib
import uuid
from collections.abc import Callable

import pytest
from conftest import Connect
from server import CuttingProxy, Server, until

from pyoco_client import AsyncPyocoHttpClient, PyocoHttpClient, StatusError, WaitTimeout

YAML = (pathlib.Path(__file__).with_name("flows") / "greet" / "flow.yaml").read_text()


def test_a_run_is_submitted_waited_for_and_read_with_its_records(client: PyocoHttpClient) -> None:
    submitted = client.submit_run("greet", {"name": "Ada"}, tags=["hello"])
    assert submitted["status"] == "PENDING"
    run = client.wait_for_end(submitted["run_id"], timeout_sec=60)
    assert (run["status"], run["tags"], run["tasks"]) == (
        "COMPLETED",
        ["hello"],
        {"greet": "SUCCEEDED", "shout": "SUCCEEDED"},
    )
    assert "task_records" not in run
    records = client.get_run_with_records(submitted["run_id"])["task_records"]
    assert records["shout"]["output"] == "HELLO, ADA"
    tasks = client.get_tasks(submitted["run_id"])
    assert tasks["task_records"] == records and tasks["status"] == "COMPLETED"


def test_a_run_of_a_submitted_yaml_fails_with_the_error_of_its_task(client: PyocoHttpClient) -> None:
    yaml = "version: 2\nflow: {graph: fail}\ntasks:\n  fail: {command: [sh, -c, 'exit 3']}\n"
    submitted = client.submit_run_yaml(yaml, flow_name="broken", tag="default")
    run = client.wait_for_end(submitted["run_id"], timeout_sec=60)
    assert run["status"] == "FAILED" and run["tasks"] == {"fail": "FAILED"}
    assert run["workflow_yaml_bytes"] == len(yaml)
    page = client.list_runs_vnext(workflow_yaml_sha256=run["workflow_yaml_sha256"])
    assert submitted["run_id"] in [one["run_id"] for one in page["items"]]


def test_what_is_sent_twice_under_one_key_is_one_run(client: PyocoHttpClient) -> None:
    key = str(uuid.uuid4())
    first = client.submit_run("greet", {"name": "Ada"}, idempotency_key=key)
    assert client.submit_run("greet", {"name": "Ada"}, idempotency_key=key) == first
    with pytest.raises(StatusError) as refused:
        client.submit_run("greet", {"name": "Bea"}, idempotency_key=key)
    assert refused.value.status in (409, 422)


def test_lists_are_filtered_and_go_on_page_by_page(client: PyocoHttpClient) -> None:
    tag = f"t{uuid.uuid4().hex[:8]}"
    ids = {client.submit_run("greet", {"name": "Ada"}, tag=tag)["run_id"] for _ in range(5)}
    runs = client.list_runs(tag=tag, flow="greet", status="PENDING", limit=200)
    assert {run["run_id"] for run in runs} == ids
    full = client.list_runs(tag=tag, full=True, limit=1)
    assert full[0].get("params") == {"name": "Ada"}
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = client.list_runs_vnext(tag=tag, limit=2, cursor=cursor)
        assert len(page["items"]) <= 2
        found += [run["run_id"] for run in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert sorted(found) == sorted(ids)


def test_a_cancelled_run_is_waited_for_until_it_has_stopped(client: PyocoHttpClient, gates: pathlib.Path) -> None:
    run_id = client.submit_run("gated", {"gates": str(gates)})["run_id"]
    until(lambda: client.get_run(run_id)["status"] == "RUNNING", "the start of the run")
    run = client.cancel_run(run_id, wait=True, timeout_sec=60)
    assert run["status"] == "CANCELLED" and run["cancel_requested_at"] is not None
    assert client.cancel_run(run_id)["status"] == "CANCELLED"


def test_a_run_that_does_not_end_in_time_is_a_timeout_and_goes_on(
    client: PyocoHttpClient, gates: pathlib.Path
) -> None:
    run_id = client.submit_run("gated", {"gates": str(gates)})["run_id"]
    with pytest.raises(TimeoutError, match=f"wait timeout for run_id={run_id}") as late:
        client.wait_for_end(run_id, timeout_sec=0.3)
    assert isinstance(late.value, WaitTimeout) and late.value.run_id == run_id
    assert client.get_run(run_id)["status"] in ("PENDING", "RUNNING")
    client.cancel_run(run_id, wait=True, timeout_sec=60)


def test_a_watch_shows_every_change_and_ends_with_its_time(client: PyocoHttpClient, gates: pathlib.Path) -> None:
    (gates / "first").touch()
    run_id = client.submit_run("gated", {"gates": str(gates)})["run_id"]
    for event in client.watch_run(run_id, include_records=True, timeout_sec=60):
        assert event["data"]["run_id"] == run_id
        if event["event"] != "snapshot":
            continue
        snapshot = event["data"]["snapshot"]
        assert "task_records" in snapshot
        for task, after in (("first", "second"), ("second", "third")):
            if snapshot["tasks"].get(task) == "SUCCEEDED":
                (gates / after).touch()
        if snapshot["status"] == "COMPLETED":
            break
    else:
        raise AssertionError("the watch ended before the run")
    kinds = [event["event"] for event in client.watch_run(run_id, timeout_sec=1)]
    assert kinds[0] == "snapshot"


def test_a_watch_goes_on_after_each_broken_connection_and_repeats_nothing(
    connect: Connect, cutting: Callable[[int], CuttingProxy], gates: pathlib.Path
) -> None:
    proxy = cutting(1)
    client = connect(proxy.url)
    direct = connect(proxy.server_url)
    run_id = direct.submit_run("gated", {"gates": str(gates)})["run_id"]
    versions = []
    for event in client.watch_run(run_id, timeout_sec=120):
        if event["event"] != "snapshot":
            continue
        snapshot = event["data"]["snapshot"]
        versions.append(snapshot["version"])
        for task in ("first", "second", "third"):
            if snapshot["tasks"].get(task) == "RUNNING":
                (gates / task).touch()
        if snapshot["status"] == "COMPLETED":
            break
    assert versions == sorted(set(versions)) and len(versions) >= 3
    assert len(proxy.heads) >= 3
    assert "last-event-id" not in proxy.heads[0].lower()
    assert all("last-event-id: " in head.lower() for head in proxy.heads[1:])


def test_a_watch_of_a_run_that_is_not_there_is_refused_and_not_tried_again(
    connect: Connect, cutting: Callable[[int], CuttingProxy]
) -> None:
    proxy = cutting(1)
    with pytest.raises(StatusError) as refused:
        list(connect(proxy.url).watch_run(str(uuid.uuid4()), timeout_sec=60))
    assert refused.value.status == 404 and len(proxy.heads) == 1


def test_many_runs_are_awaited_side_by_side(server: Server) -> None:
    async def greet(client: AsyncPyocoHttpClient, name: str) -> str:
        run = await client.submit_run("greet", {"name": name})
        lines = [line["message"] async for line in client.follow_run_log(run["run_id"], stream="stdout")]
        assert (await client.wait_for_end(run["run_id"], timeout_sec=60))["status"] == "COMPLETED"
        return lines[0]

    async def all_of_them() -> list[str]:
        async with AsyncPyocoHttpClient(server.url) as client:
            return list(await asyncio.gather(*(greet(client, name) for name in ("Ada", "Bea", "Cem"))))

    assert asyncio.run(all_of_them()) == ["greeting Ada", "greeting Bea", "greeting Cem"]
