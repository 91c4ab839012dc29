"""Jobs, their labels and their logs."""

from __future__ import annotations

import pathlib
import uuid
from collections.abc import Callable

import httpx
import pytest
from conftest import Connect
from server import CuttingProxy, until

from pyoco_client import PyocoHttpClient, StatusError

LINES = 30
SAID = [f"line {number}" for number in range(LINES)]


def chatter(client: PyocoHttpClient) -> str:
    """A job that has written many lines: its whole log is there."""
    job_id = client.submit_job({"lines": LINES}, flow="chatter")["id"]
    assert "completed" in list(client.follow_job_log(job_id))[-1]["message"]
    return job_id


def test_a_job_is_submitted_found_by_its_labels_and_hidden(client: PyocoHttpClient) -> None:
    label = f"Q3 / ü {uuid.uuid4()}"
    key = str(uuid.uuid4())
    job = client.submit_job({"name": "Ada"}, flow="greet", tags=[label], idempotency_key=key)
    assert client.submit_job({"name": "Ada"}, flow="greet", tags=[label], idempotency_key=key)["id"] == job["id"]
    until(lambda: client.get_job(job["id"])["status"] == "completed", "the end of the job")
    found = client.list_jobs(tags=[label], statuses=["completed", "failed"], flow="greet")["jobs"]
    assert [one["id"] for one in found] == [job["id"]]
    assert [one["id"] for one in client.list_jobs(any_tags=[label, "another"])["jobs"]] == [job["id"]]
    assert client.list_jobs(tags=[label, "another"])["jobs"] == []
    assert client.add_tag(job["id"], "more/less") == client.job_tags(job["id"])
    assert set(client.job_tags(job["id"])) == {label, "more/less"}
    client.remove_tag(job["id"], "more/less")
    assert client.job_tags(job["id"]) == [label]
    assert client.list_tags(prefix=label)["tags"] == [{"tag": label, "count": 1}]
    client.delete_job(job["id"])
    client.delete_job(job["id"])
    assert client.list_jobs(any_tags=[label, "another"])["jobs"] == []
    with pytest.raises(StatusError) as gone:
        client.get_job(job["id"])
    assert (gone.value.status, gone.value.code) == (404, "JOB_NOT_FOUND")


def test_lists_go_on_page_by_page(client: PyocoHttpClient) -> None:
    label = f"l-{uuid.uuid4()}"
    ids = [client.submit_job({"name": "Ada"}, flow="greet", tags=[label])["id"] for _ in range(5)]
    found: list[str] = []
    token: str | None = None
    while True:
        page = client.list_jobs(tags=[label], limit=2, next_token=token)
        found += [job["id"] for job in page["jobs"]]
        token = page.get("nextToken")
        if token is None:
            break
    assert found == ids[::-1]


def test_a_job_that_goes_on_is_cancelled_by_deleting_it(client: PyocoHttpClient, gates: pathlib.Path) -> None:
    job_id = client.submit_job({"gates": str(gates)}, flow="gated")["id"]
    until(lambda: client.get_job(job_id)["status"] == "running", "the start of the job")
    client.delete_job(job_id)
    assert client.wait_for_end(job_id, timeout_sec=60)["status"] == "CANCELLED"


def test_a_log_is_read_in_pages_to_its_end(client: PyocoHttpClient) -> None:
    job_id = chatter(client)
    lines, token = [], None
    while True:
        page = client.get_job_log(job_id, task="talk", stream="stdout", since_token=token, limit=7)
        lines += [line["message"] for line in page["entries"]]
        token = page["nextToken"]
        if page["throughSeq"] == page["lastSeq"]:
            break
    assert lines == SAID
    assert client.get_job_log(job_id, since_token=token)["entries"] == []
    assert client.get_run_log(job_id, limit=1000)["entries"] == client.get_job_log(job_id, limit=1000)["entries"]


def test_a_log_is_followed_over_broken_connections_line_by_line(
    connect: Connect, cutting: Callable[[int], CuttingProxy]
) -> None:
    proxy = cutting(4)
    cut, client = connect(proxy.url), connect(proxy.server_url)
    job_id = client.submit_job({"lines": LINES}, flow="chatter")["id"]
    followed = list(cut.follow_job_log(job_id))
    whole = client.get_job_log(job_id, limit=1000)["entries"]
    assert followed == whole
    assert [line["message"] for line in followed if line["stream"] == "stdout"] == SAID
    assert len(proxy.heads) >= len(whole) // 4
    assert all("last-event-id: " in head.lower() for head in proxy.heads[1:])
    part = [line["message"] for line in cut.follow_run_log(job_id, stream="stdout")]
    assert part == SAID


def test_a_log_is_followed_from_a_token_on(client: PyocoHttpClient) -> None:
    job_id = chatter(client)
    page = client.get_job_log(job_id, limit=10)
    rest = list(client.follow_job_log(job_id, since_token=page["nextToken"]))
    assert page["entries"] + rest == client.get_job_log(job_id, limit=1000)["entries"]


def test_a_server_that_stays_away_is_given_up(connect: Connect, cutting: Callable[[int], CuttingProxy]) -> None:
    proxy = cutting(1)
    client = connect(proxy.server_url)
    job_id = chatter(client)
    lines = connect(proxy.url).follow_job_log(job_id, patience_sec=1.0)
    assert next(lines)["seq"] == 1
    proxy.close()
    with pytest.raises(httpx.TransportError, match=f"/jobs/{job_id}/logs/stream: "):
        list(lines)
