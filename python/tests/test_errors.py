"""What a caller is told when something is wrong."""

from __future__ import annotations

import socket
import uuid

import httpx
import pytest
from conftest import Connect
from server import Server, until

from pyoco_client import InvalidArgument, PyocoError, PyocoHttpClient, StatusError


def refusal(call: object) -> StatusError:
    with pytest.raises(StatusError) as refused:
        assert callable(call)
        call()
    return refused.value


def test_a_missing_run_is_told_with_the_numbers_of_the_contract(client: PyocoHttpClient) -> None:
    run_id = str(uuid.uuid4())
    error = refusal(lambda: client.get_run(run_id))
    assert (error.status, error.detail) == (404, "run not found")
    assert (error.err_id, error.msg_id) == ("ERR-PYOCO-0005", "MSG-PYOCO-0005")
    assert str(error) == f"HTTP 404 GET /runs/{run_id}: ERR-PYOCO-0005: run not found"


def test_it_is_caught_by_programs_that_know_only_httpx(client: PyocoHttpClient) -> None:
    with pytest.raises(httpx.HTTPStatusError) as refused:
        client.get_run(str(uuid.uuid4()))
    assert refused.value.response.status_code == 404
    assert isinstance(refused.value, PyocoError)


def test_inputs_that_are_wrong_are_named_one_by_one(client: PyocoHttpClient) -> None:
    error = refusal(lambda: client.submit_run("", tag="a.b"))
    assert error.status == 422 and isinstance(error.detail, list)
    assert any(problem["loc"][:2] == ["body", "flow_name"] for problem in error.detail)
    assert "body.flow_name: " in error.message


def test_a_broken_flow_is_told_with_its_line(client: PyocoHttpClient) -> None:
    yaml = "version: 2\nflow:\n  graph: a >> >> a\ntasks:\n  a: {command: ['true']}\n"
    error = refusal(lambda: client.submit_run_yaml(yaml, flow_name="f", tag="default"))
    assert error.status == 422 and error.workflow_problems[0]["line"] == 3
    denied = refusal(lambda: client.put_graph(f"g-{uuid.uuid4()}", yaml))
    assert denied.code == "INVALID_GRAPH" and denied.workflow_problems[0]["line"] == 3


def test_a_refused_command_has_a_code_and_a_message(client: PyocoHttpClient) -> None:
    error = refusal(lambda: client.start_execution(str(uuid.uuid4())))
    assert (error.status, error.code) == (404, "EXECUTION_NOT_FOUND")
    wrong = refusal(lambda: client.create_execution("g", tag="a.b"))
    assert wrong.code == "INVALID_INPUT" and wrong.field_problems[0]["path"] == "tag"
    assert "INVALID_INPUT: " in str(wrong)


def test_without_a_key_and_with_a_wrong_one_nobody_gets_in(guarded: Server, connect: Connect) -> None:
    assert connect(guarded.url).get_health()["status"] == "ok"
    error = refusal(lambda: connect(guarded.url).list_runs())
    assert (error.status, error.err_id) == (401, "ERR-PYOCO-0014")
    wrong = refusal(lambda: connect(guarded.url, api_key="pyoco_x.y").list_runs())
    assert (wrong.status, wrong.err_id) == (403, "ERR-PYOCO-0015")


def test_a_key_opens_the_runs_of_its_tenant_and_no_others(guarded: Server, connect: Connect) -> None:
    ours = connect(guarded.url, api_key=guarded.api_key("--tenant", "a"))
    theirs = connect(guarded.url, api_key=guarded.api_key("--tenant", "b"))
    run_id = ours.submit_run("greet", {"name": "Ada"})["run_id"]
    assert ours.wait_for_end(run_id, timeout_sec=60)["tenant_id"] == "a"
    assert refusal(lambda: theirs.get_run(run_id)).status == 404


def test_a_reader_may_look_and_not_submit(guarded: Server, connect: Connect) -> None:
    key = guarded.api_key("--tenant", "a", "--role", "read")
    reader = connect(guarded.url, api_key=f"Bearer {key}", api_key_header="Authorization")
    assert isinstance(reader.list_runs(), list)
    assert refusal(lambda: reader.submit_run("greet")).status == 403


def test_only_an_admin_sees_who_did_what(guarded: Server, connect: Connect) -> None:
    admin = connect(guarded.url, api_key=guarded.api_key("--tenant", "a", "--role", "admin"))
    run_id = admin.submit_run("greet", {"name": "Ada"})["run_id"]
    until(lambda: bool(admin.list_audit(target=run_id)["items"]), "the entry of the submission")
    entries = admin.list_audit(action="runs.submit", target=run_id)["items"]
    assert [(entry["action"], entry["outcome"]) for entry in entries] == [("runs.submit", "ok")]


def test_a_server_that_is_not_there_is_named(connect: Connect) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(httpx.ConnectError, match=rf"GET /runs/x: .* \(127\.0\.0\.1:{port}\)"):
        connect(f"http://127.0.0.1:{port}").get_run("x")


def test_what_cannot_be_sent_is_refused_before_it_is_sent(client: PyocoHttpClient, connect: Connect) -> None:
    for odd in ("", ".", ".."):
        with pytest.raises(InvalidArgument):
            client.get_run(odd)
    with pytest.raises(ValueError, match="neither http"):
        connect("127.0.0.1:8000")


def test_any_character_may_stand_in_a_name(client: PyocoHttpClient) -> None:
    assert refusal(lambda: client.get_run("a/b?c#d%2F é")).status == 404
    assert refusal(lambda: client.get_graph("a?b")).code == "GRAPH_NOT_FOUND"
