"""Calls every method of PyocoHttpClient that our endpoints serve, and prints its name when all it promises held.

Usage: client_api.py URL WORKER FOLDER
"""

import base64
import json
import os
import re
import sys
import time
import uuid

import httpx
from pyoco_server.http_client import PyocoHttpClient

URL, WORKER, FOLDER = sys.argv[1:]
DAY = time.localtime().tm_yday
TERMINAL = {"COMPLETED", "FAILED", "CANCELLED"}
TEXT, NUMBER, FLAG = str, float, bool


def optional(kind):
    return (kind, type(None))


SNAPSHOT = {
    "run_id": TEXT,
    "flow_name": TEXT,
    "tag": TEXT,
    "tags": list,
    "tenant_id": optional(TEXT),
    "api_key_id": optional(TEXT),
    "status": TEXT,
    "params": dict,
    "tasks": dict,
    "start_time": optional(NUMBER),
    "end_time": optional(NUMBER),
    "heartbeat_at": NUMBER,
    "updated_at": NUMBER,
    "error": optional(TEXT),
}
TAKEN = {
    "worker_id": TEXT,
    "workflow_yaml_sha256": optional(TEXT),
    "workflow_yaml_bytes": optional(int),
    "cancel_requested_at": optional(NUMBER),
    "cancel_requested_by": optional(TEXT),
}
ENRICHED = {
    "worker_alive": FLAG,
    "worker_state": TEXT,
    "worker_heartbeat_at": optional(NUMBER),
    "worker_hidden": FLAG,
    "worker_tags": list,
}
RECORD = {
    "state": TEXT,
    "started_at": optional(NUMBER),
    "ended_at": optional(NUMBER),
    "duration_ms": optional(NUMBER),
    "error": optional(TEXT),
    "traceback": optional(TEXT),
    "inputs": dict,
    "artifacts": dict,
}
SUMMARY = {
    "run_id",
    "flow_name",
    "tag",
    "tags",
    "tenant_id",
    "api_key_id",
    "status",
    "updated_at",
    "heartbeat_at",
    "worker_id",
    "error",
}
WORKER_FIELDS = {
    "worker_id": TEXT,
    "instance_id": TEXT,
    "state": TEXT,
    "hidden": FLAG,
    "tags": list,
    "last_seen_at": NUMBER,
    "last_heartbeat_at": NUMBER,
    "heartbeat_at": NUMBER,
    "current_run_id": optional(TEXT),
    "last_run_id": optional(TEXT),
    "last_run_status": optional(TEXT),
    "last_run_started_at": optional(NUMBER),
    "last_run_finished_at": optional(NUMBER),
    "stopped_at": optional(NUMBER),
    "stop_reason": optional(TEXT),
    "updated_at": NUMBER,
    "wheel_sync": dict,
}


PARAMS = {"x": 40, "y": 1, "text": "é\u2028\U0001f600", "deep": [{"a": None}, 1.5]}


def has(value, fields):
    for name, kind in fields.items():
        assert name in value, (name, value)
        assert isinstance(value[name], kind), (name, value[name])


def same(found, wanted):
    assert found == wanted, (found, wanted)


def refused(status, call, *arguments, **options):
    try:
        call(*arguments, **options)
    except httpx.HTTPStatusError as error:
        same(error.response.status_code, status)
        same(error.response.headers["content-type"], "application/json")
        return error.response.json()["detail"]
    raise AssertionError(f"{call.__name__} was not refused")


def until(what, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = what()
        if found:
            return found
    raise AssertionError("it does not come about")


def ended(client, run):
    for event in client.watch_run(run, timeout_sec=50):
        if event["data"].get("snapshot", {}).get("status") in TERMINAL:
            break
    return client.get_run_with_records(run)


def submit_run(client):
    answer = client.submit_run("sum", PARAMS, tag="blue", tags=["one", ""])
    same(set(answer), {"run_id", "status"})
    same(str(uuid.UUID(answer["run_id"], version=4)), answer["run_id"])
    same(answer["status"], "PENDING")
    detail = refused(422, client.submit_run, "sum", {}, tag="a b")
    same([(item["type"], item["loc"]) for item in detail], [("string_pattern_mismatch", ["body", "tag"])])
    detail = refused(422, client.submit_run, "", [1], tag="", tags="x")
    same(
        [(item["type"], item["loc"], item["input"]) for item in detail],
        [
            ("string_too_short", ["body", "flow_name"], ""),
            ("dict_type", ["body", "params"], [1]),
            ("string_pattern_mismatch", ["body", "tag"], ""),
            ("list_type", ["body", "tags"], "x"),
        ],
    )
    detail = refused(422, client.submit_run, "sum", tags=["a", 5])
    same([(item["type"], item["loc"], item["input"]) for item in detail], [("string_type", ["body", "tags", 1], 5)])
    detail = refused(422, client.submit_run, None)
    same([(item["type"], item["loc"], item["input"]) for item in detail], [("string_type", ["body", "flow_name"], None)])
    return answer["run_id"]


YAML = """
version: 1
flow:
  graph: add >> double
  defaults: {x: 1, y: 1}
tasks:
  add: {callable: "sum_tasks:add"}
  double: {callable: "sum_tasks:double"}
"""


def submit_run_yaml(client):
    answer = client.submit_run_yaml(YAML, flow_name="sent", tag="default")
    same(set(answer), {"run_id", "status"})
    snapshot = ended(client, answer["run_id"])
    same((snapshot["status"], snapshot["task_records"]["double"]["output"]), ("COMPLETED", 4))
    same(snapshot["workflow_yaml_bytes"], len(YAML.encode()))
    assert re.fullmatch("[0-9a-f]{64}", snapshot["workflow_yaml_sha256"])
    same(refused(422, client.submit_run_yaml, "flow: 5", flow_name="f", tag="t"), "invalid workflow yaml")
    same(refused(422, client.submit_run_yaml, YAML, flow_name="f", tag="t.u"), "invalid tag")
    same(refused(422, client.submit_run_yaml, YAML, flow_name=" ", tag="t"), "missing flow_name")
    same(refused(422, client.submit_run_yaml, YAML, flow_name="", tag="t")[0]["loc"], ["body", "flow_name"])
    same(refused(413, client.submit_run_yaml, "#" * 262145, flow_name="f", tag="t"), "workflow too large")
    return answer["run_id"], snapshot["workflow_yaml_sha256"]


def get_run(client, run):
    ended(client, run)
    snapshot = client.get_run(run)
    has(snapshot, {**SNAPSHOT, **TAKEN, **ENRICHED})
    assert "task_records" not in snapshot
    same((snapshot["status"], snapshot["tag"], snapshot["tags"]), ("COMPLETED", "blue", ["one", ""]))
    same(snapshot["params"], PARAMS)
    same(snapshot["tasks"], {"add": "SUCCEEDED", "double": "SUCCEEDED"})
    same((snapshot["worker_id"], snapshot["worker_alive"]), (WORKER, True))
    same(refused(404, client.get_run, str(uuid.uuid4())), "run not found")


def get_run_with_records(client, run):
    snapshot = client.get_run_with_records(run)
    has(snapshot, SNAPSHOT)
    for record in snapshot["task_records"].values():
        has(record, RECORD)
        assert "output" in record
    same(snapshot["task_records"]["double"]["output"], 82)
    same(refused(404, client.get_run_with_records, "nobody"), "run not found")


def get_tasks(client, run):
    tasks = client.get_tasks(run)
    same(set(tasks), {"run_id", "flow_name", "status", "tasks", "task_records", "task_records_truncated"})
    same((tasks["run_id"], tasks["flow_name"], tasks["status"]), (run, "sum", "COMPLETED"))
    same(tasks["task_records_truncated"], False)
    same(tasks["task_records"], client.get_run_with_records(run)["task_records"])
    same(refused(404, client.get_tasks, "nobody"), "run not found")


def list_runs(client, run, sent):
    runs = client.list_runs()
    assert isinstance(runs, list)
    same({item["run_id"] for item in runs}, {run, sent})
    for item in runs:
        same(set(item), SUMMARY)
    order = [(item["updated_at"], item["run_id"]) for item in runs]
    same(order, sorted(order, reverse=True))
    same([item["run_id"] for item in client.list_runs(flow="sent", status="COMPLETED", tag="default")], [sent])
    same(client.list_runs(status="RUNNING"), [])
    same(len(client.list_runs(limit=1)), 1)
    for item in client.list_runs(full=True):
        has(item, {**SNAPSHOT, **TAKEN, "task_records": dict})
    for limit in (0, 201, "x"):
        same(refused(422, client.list_runs, limit=limit)[0]["loc"], ["query", "limit"])


def list_runs_vnext(client, run, sent, sha256):
    first = client.list_runs_vnext(updated_after=0.0, limit=1)
    same(set(first), {"items", "next_cursor"})
    assert re.fullmatch("[A-Za-z0-9_-]+", first["next_cursor"])
    second = client.list_runs_vnext(limit=1, cursor=first["next_cursor"])
    same(second["next_cursor"], None)
    same({item["run_id"] for item in first["items"] + second["items"]}, {run, sent})
    newest = first["items"][0]["updated_at"]
    same(client.list_runs_vnext(updated_after=newest), {"items": [], "next_cursor": None})
    same([item["run_id"] for item in client.list_runs_vnext(workflow_yaml_sha256=sha256)["items"]], [sent])
    assert "task_records" in client.list_runs_vnext(updated_after=0.0, full=True)["items"][0]
    same(refused(422, client.list_runs_vnext, cursor="????"), "invalid list query")
    same(refused(422, client.list_runs_vnext, updated_after="x")[0]["type"], "float_parsing")
    # A cursor of the original: the same JSON, as Python writes it.
    last = first["items"][-1]
    text = json.dumps({"u": last["updated_at"], "r": last["run_id"]}, separators=(",", ":"))
    cursor = base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
    same(client.list_runs_vnext(limit=1, cursor=cursor), second)


def held(client, name):
    started, release = (os.path.join(FOLDER, f"{name}.{what}") for what in ("started", "release"))
    run = client.submit_run("hold", {"started": started, "release": release})["run_id"]
    until(lambda: os.path.exists(started))
    return run, release


def watch_run(client):
    run, release = held(client, "watch")
    before = time.time()
    statuses, last = [], None
    for event in client.watch_run(run, include_records=True, timeout_sec=50):
        same(set(event), {"event", "data"})
        data = event["data"]
        same(data["run_id"], run)
        assert isinstance(data["ts"], float) and abs(data["ts"] - time.time()) < 60
        if event["event"] == "heartbeat":
            same(set(data), {"run_id", "ts"})
            continue
        same((event["event"], set(data)), ("snapshot", {"run_id", "snapshot", "ts"}))
        last = data["snapshot"]
        has(last, {**SNAPSHOT, "task_records": dict})
        statuses.append(last["status"])
        open(release, "w").close()
        if last["status"] in TERMINAL:
            break
    same((statuses[0], statuses[-1]), ("RUNNING", "COMPLETED"))
    same(last["task_records"]["after"]["output"], "done")
    assert last["updated_at"] >= before - 60
    same(list(client.watch_run(run, since=last["updated_at"] + 1, timeout_sec=1)), [])
    same(len(list(client.watch_run(run, since=last["updated_at"], timeout_sec=1))), 1)
    for seconds in (0, 601):
        watch = client.watch_run(run, timeout_sec=seconds)
        try:
            next(watch)
        except httpx.HTTPStatusError as error:
            same(error.response.status_code, 422)
        else:
            raise AssertionError(seconds)


def cancel_run(client):
    waiting = client.submit_run("sum", tag="nobodys")["run_id"]
    snapshot = client.cancel_run(waiting)
    has(snapshot, {**SNAPSHOT, "cancel_requested_at": NUMBER})
    assert "task_records" not in snapshot
    same(snapshot["status"], "CANCELLED")
    run, _ = held(client, "cancel")
    same(client.cancel_run(run, wait=True, timeout_sec=30)["status"], "CANCELLED")
    same(client.get_run(run)["tasks"]["after"], "CANCELLED")
    same(refused(404, client.cancel_run, "nobody"), "run not found")


def get_workers(client):
    (worker,) = client.get_workers()
    has(worker, WORKER_FIELDS)
    same((worker["worker_id"], worker["tags"], worker["hidden"]), (WORKER, ["default", "blue"], False))
    same(len(client.get_workers(scope="all", include_hidden=True, limit=500)), 1)
    same(client.get_workers(scope=" All ", state="stopped_graceful"), [])
    same(refused(422, client.get_workers, scope="some"), "invalid workers request")
    same(refused(422, client.get_workers, state="LAZY"), "invalid workers request")
    for limit in (0, 501):
        same(refused(422, client.get_workers, limit=limit)[0]["loc"], ["query", "limit"])


def patch_worker_hidden(client):
    answer = client.patch_worker_hidden(WORKER, hidden=True)
    same(set(answer), {"worker_id", "hidden", "updated_at"})
    same((answer["worker_id"], answer["hidden"]), (WORKER, True))
    assert isinstance(answer["updated_at"], float)
    same(client.get_workers(), [])
    same([worker["hidden"] for worker in client.get_workers(include_hidden=True)], [True])
    # What the worker reports later does not bring it back.
    seen = client.get_workers(include_hidden=True)[0]["last_seen_at"]
    ended(client, client.submit_run("sum")["run_id"])
    until(lambda: client.get_workers(include_hidden=True)[0]["last_seen_at"] > seen)
    same(client.get_workers(), [])
    same(client.patch_worker_hidden(WORKER, hidden=False)["hidden"], False)
    same(len(client.get_workers()), 1)
    same(refused(404, client.patch_worker_hidden, "nobody", hidden=True), "worker not found")


def get_metrics(client):
    text = client.get_metrics()
    assert text.endswith("\n")
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    same(values['pyoco_runs_total{status="COMPLETED"}'], "4")
    if DAY == time.localtime().tm_yday:
        same(values['pyoco_runs_today_total{status="CANCELLED"}'], "2")
    same(values["pyoco_workers_alive_total"], "1")
    same(values["pyoco_dlq_messages_total"], "0")


def main():
    client = PyocoHttpClient(URL + "/", api_key="ignored-without-auth")
    until(client.get_workers)
    run = submit_run(client)
    print("submit_run")
    sent, sha256 = submit_run_yaml(client)
    print("submit_run_yaml")
    for method, arguments in (
        (get_run, (run,)),
        (get_run_with_records, (run,)),
        (get_tasks, (run,)),
        (list_runs, (run, sent)),
        (list_runs_vnext, (run, sent, sha256)),
        (watch_run, ()),
        (cancel_run, ()),
        (get_workers, ()),
        (patch_worker_hidden, ()),
        (get_metrics, ()),
    ):
        method(client, *arguments)
        print(method.__name__)
    client.close()


main()
