"""Wheels and workers."""

from __future__ import annotations

import importlib.util
import pathlib

import pytest
from server import ROOT

from pyoco_client import PyocoHttpClient, StatusError


def built(version: str, folder: pathlib.Path) -> pathlib.Path:
    """The wheel of examples/wheel."""
    spec = importlib.util.spec_from_file_location("build_wheel", ROOT / "examples" / "wheel" / "build_wheel.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    path = module.build(version, folder)
    assert isinstance(path, pathlib.Path)
    return path


def versions_of_a_run(client: PyocoHttpClient) -> list[str]:
    """The versions of the wheels that a run runs with now."""
    yaml = (ROOT / "examples" / "wheel" / "flow.yaml").read_text()
    run_id = client.submit_run_yaml(yaml, flow_name="wheel", tag="default")["run_id"]
    run = client.wait_for_end(run_id, timeout_sec=120)
    assert run["status"] == "COMPLETED", run
    return [wheel["version"] for wheel in run["wheels"]]


def test_a_wheel_is_uploaded_used_fetched_and_deleted(client: PyocoHttpClient, tmp_path: pathlib.Path) -> None:
    first, second = built("1.0.0", tmp_path), built("2.0.0", tmp_path)
    artifact = client.upload_wheel(filename=first.name, data=first.read_bytes(), tags=["default", " "])
    try:
        assert (artifact["name"], artifact["size_bytes"]) == (first.name, first.stat().st_size)
        assert artifact["tags"] == ["default"]
        assert artifact in client.list_wheels()
        assert client.download_wheel(first.name) == first.read_bytes()

        with pytest.raises(StatusError) as again:
            client.upload_wheel(filename=first.name, data=first.read_bytes(), replace=False)
        assert (again.value.status, again.value.err_id) == (409, "ERR-PYOCO-0022")

        assert versions_of_a_run(client) == ["1.0.0"]
        client.upload_wheel(filename=second.name, data=second.read_bytes())
        assert versions_of_a_run(client) == ["2.0.0"]
    finally:
        for wheel in client.list_wheels():
            assert client.delete_wheel(wheel["name"]) == {"name": wheel["name"], "deleted": True}
    assert client.list_wheels() == []
    history = client.list_wheel_history(wheel_name=first.name, limit=2)
    assert [event["action"] for event in history] == ["delete", "upload"]
    assert client.list_wheel_history(action="upload", limit=1)[0]["wheel_name"] == second.name
    with pytest.raises(StatusError) as gone:
        client.delete_wheel(first.name)
    assert (gone.value.status, gone.value.err_id) == (404, "ERR-PYOCO-0023")


def test_a_file_that_is_no_wheel_is_refused_with_a_reason(client: PyocoHttpClient) -> None:
    with pytest.raises(StatusError) as refused:
        client.upload_wheel(filename="a-1-py3-none-any.whl", data=b"no archive")
    assert refused.value.status == 422 and refused.value.message


def test_workers_are_listed_hidden_and_shown_again(client: PyocoHttpClient) -> None:
    worker = client.get_workers(scope="active", limit=10)[0]
    assert worker["tags"] == ["default"] and worker["state"] in ("IDLE", "RUNNING")
    assert client.patch_worker_hidden(worker["worker_id"], hidden=True)["hidden"] is True
    try:
        assert client.get_workers() == []
        assert len(client.get_workers(include_hidden=True)) == 1
    finally:
        client.patch_worker_hidden(worker["worker_id"], hidden=False)
    assert len(client.get_workers(state="STOPPED_GRACEFUL")) == 0


def test_health_and_metrics_are_told(client: PyocoHttpClient) -> None:
    assert client.get_health() == {"status": "ok"}
    assert "# TYPE pyoco_" in client.get_metrics()
