"""Executions: graphs, commands, nodes driven from outside, waits, events, retry."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest
from conftest import Connect
from server import CuttingProxy

from pyoco_client import PyocoHttpClient, StatusError

FORK = """\
version: 2
flow: {graph: "prepare >> (left & right) >> merge"}
tasks: {prepare: {}, left: {}, right: {}, merge: {}}
"""
APPROVAL = {
    "version": 2,
    "flow": {"graph": "ask"},
    "tasks": {"ask": {"wait": {"key": "approval", "prompt": {"text": "May it go on?"}}}},
}


@pytest.fixture
def fork(client: PyocoHttpClient) -> str:
    """A graph that is driven from outside: one node, two side by side, one that joins them."""
    graph_id = f"fork-{uuid.uuid4()}"
    graph = client.put_graph(graph_id, FORK)
    assert graph["version"] == 1 and {node["runner"] for node in graph["nodes"] if node.get("runner")} == {"external"}
    return graph_id


def started(client: PyocoHttpClient, graph_id: str) -> str:
    execution_id = client.create_execution(graph_id, {"n": 1}, tags=["mine"])["executionId"]
    client.start_execution(execution_id)
    return execution_id


def statuses(client: PyocoHttpClient, execution_id: str) -> dict[str, str]:
    nodes = client.get_execution(execution_id)["nodes"]
    return {node["nodeId"]: node["status"] for node in nodes if node["nodeType"] == "Task"}


def work(client: PyocoHttpClient, execution_id: str, *node_ids: str) -> None:
    for node_id in node_ids:
        client.start_node(execution_id, node_id, worker_id="test")
        client.succeed_node(execution_id, node_id, output={"of": node_id})


def test_a_fork_runs_its_branches_and_the_join_waits_for_both(client: PyocoHttpClient, fork: str) -> None:
    execution_id = started(client, fork)
    work(client, execution_id, "prepare", "left")
    assert statuses(client, execution_id)["merge"] == "PENDING"
    client.start_node(execution_id, "right", attempt=1)
    client.report_progress(execution_id, "right", progress=40, message="soon", metrics={"rows": 4})
    node = next(node for node in client.get_execution(execution_id)["nodes"] if node["nodeId"] == "right")
    assert (node["progress"], node["message"]) == (40, "soon")
    client.succeed_node(execution_id, "right", output=[1, 2])
    work(client, execution_id, "merge")
    execution = client.get_execution(execution_id)
    assert execution["status"] == "COMPLETED" and execution["input"] == {"n": 1}
    assert set(statuses(client, execution_id).values()) == {"SUCCEEDED"}
    listed = client.list_executions(graph_id=fork, status="COMPLETED", tag="mine", limit=5)
    assert [one["executionId"] for one in listed["items"]] == [execution_id]
    client.archive_execution(execution_id, reason="seen")
    assert "archivedAt" in client.get_execution(execution_id)


def test_a_command_under_the_same_key_is_carried_out_once(client: PyocoHttpClient, fork: str) -> None:
    first = client.create_execution(fork, idempotency_key="k-1" + fork, correlation_id="thread")
    assert (first["command"], first["correlationId"]) == ("CreateExecution", "thread")
    assert client.create_execution(fork, idempotency_key="k-1" + fork, correlation_id="thread") == first
    with pytest.raises(StatusError) as other:
        client.create_execution(fork, {"other": True}, idempotency_key="k-1" + fork)
    assert (other.value.status, other.value.code) == (409, "IDEMPOTENCY_KEY_REUSED")


def test_a_failed_execution_is_retried_and_keeps_what_succeeded(client: PyocoHttpClient, fork: str) -> None:
    execution_id = started(client, fork)
    work(client, execution_id, "prepare", "left")
    client.start_node(execution_id, "right")
    client.fail_node(execution_id, "right", error={"code": "E_TEST", "message": "broken"})
    execution = client.get_execution(execution_id)
    assert (execution["status"], execution["failedNodeId"]) == ("FAILED", "right")
    retried = client.retry_execution(execution_id)["executionId"]
    assert client.get_execution(execution_id)["retriedBy"] == retried
    assert statuses(client, retried) == {
        "prepare": "SUCCEEDED",
        "left": "SUCCEEDED",
        "right": "READY",
        "merge": "PENDING",
    }
    work(client, retried, "right", "merge")
    assert client.get_execution(retried)["status"] == "COMPLETED"


def test_what_waits_is_listed_and_goes_on_when_it_is_answered(client: PyocoHttpClient) -> None:
    graph_id = f"approval-{uuid.uuid4()}"
    client.put_graph(graph_id, APPROVAL)
    execution_id = client.create_execution(graph_id, tags=[graph_id])["executionId"]
    client.start_execution(execution_id)
    [wait] = client.list_waits(tag=graph_id)["items"]
    assert (wait["nodeId"], wait["waitKey"], wait["prompt"]) == ("ask", "approval", {"text": "May it go on?"})
    with pytest.raises(StatusError) as wrong:
        client.resume_node(execution_id, "ask", resume_key="another")
    assert wrong.value.code == "COMMAND_REJECTED"
    client.resume_node(execution_id, "ask", resume_key="approval", output={"yes": True})
    execution = client.get_execution(execution_id)
    assert execution["status"] == "COMPLETED" and execution["nodes"][0]["output"] == {"yes": True}


def test_a_running_node_is_told_to_wait_and_another_is_canceled(client: PyocoHttpClient, fork: str) -> None:
    execution_id = started(client, fork)
    work(client, execution_id, "prepare")
    client.start_node(execution_id, "left")
    client.put_node_waiting(execution_id, "left", wait_key="k", prompt={"why": "test"})
    client.cancel_node(execution_id, "right", reason="not needed")
    assert (statuses(client, execution_id)["left"], statuses(client, execution_id)["right"]) == ("WAITING", "CANCELED")
    client.cancel_execution(execution_id, reason="enough")
    execution = client.get_execution(execution_id)
    assert (execution["status"], execution["cancelReason"]) == ("CANCELED", "enough")


def test_events_are_read_in_pages_and_the_past_as_it_was(client: PyocoHttpClient, fork: str) -> None:
    execution_id = started(client, fork)
    work(client, execution_id, "prepare", "left", "right", "merge")
    page = client.get_events(execution_id, limit=3)
    events = page["events"]
    while page["next"] is not None:
        page = client.get_events(execution_id, after=page["next"], limit=3)
        events += page["events"]
    assert [event["seq"] for event in events] == list(range(1, page["lastSeq"] + 1))
    assert (events[0]["type"], events[-1]["type"]) == ("EXECUTION_CREATED", "EXECUTION_COMPLETED")
    assert client.get_execution(execution_id, at=1)["status"] == "ACTIVE"


def test_events_are_followed_over_broken_connections_each_once(
    connect: Connect, cutting: Callable[[int], CuttingProxy], fork: str
) -> None:
    proxy = cutting(2)
    client, cut = connect(proxy.server_url), connect(proxy.url)
    execution_id = started(client, fork)
    done = {"EXECUTION_STARTED": ["prepare"], "NODE_SUCCEEDED": ["left", "right", "merge"]}
    followed = []
    for event in cut.follow_events(execution_id):
        followed.append(event)
        # Nothing happens before it was followed so far: it comes live, not from the past.
        for node_id in done.pop(event["type"], []):
            work(client, execution_id, node_id)
    assert followed == client.get_events(execution_id, limit=1000)["events"]
    assert len(proxy.heads) >= len(followed) // 2
    assert [event["seq"] for event in client.follow_events(execution_id, after=followed[-3]["seq"])] == [
        event["seq"] for event in followed[-2:]
    ]


def test_many_are_canceled_at_once(client: PyocoHttpClient, fork: str) -> None:
    ids = {started(client, fork) for _ in range(3)}
    would = client.bulk("cancel", {"flow": fork}, dry_run=True)
    assert set(would["done"]) == ids and would["dryRun"]
    cursor, done = None, []
    key = str(uuid.uuid4())
    while True:
        report = client.bulk("cancel", {"flow": fork}, limit=2, cursor=cursor, reason="all", idempotency_key=key)
        done += report["done"]
        cursor = report["nextCursor"]
        if cursor is None:
            break
    assert set(done) == ids
    assert {client.get_execution(one)["status"] for one in ids} == {"CANCELED"}


def test_graphs_have_versions_and_are_changed_only_as_expected(client: PyocoHttpClient, fork: str) -> None:
    other = FORK.replace("(left & right)", "left")
    with pytest.raises(StatusError) as stale:
        client.put_graph(fork, other, expected=7)
    assert (stale.value.status, stale.value.code) == (412, "PRECONDITION_FAILED")
    assert client.put_graph(fork, other, expected=1)["version"] == 2
    assert client.get_graph(fork, version=1)["source"] == FORK
    assert client.get_graph(fork)["version"] == 2
    names, cursor = [], None
    while True:
        page = client.list_graphs(limit=3, cursor=cursor)
        names += [graph["graphId"] for graph in page["items"]]
        cursor = page["nextCursor"]
        if cursor is None:
            break
    assert fork in names and names == sorted(names)
    client.delete_graph(fork, expected=2)
    with pytest.raises(StatusError) as gone:
        client.create_execution(fork)
    assert gone.value.code == "GRAPH_NOT_FOUND"
