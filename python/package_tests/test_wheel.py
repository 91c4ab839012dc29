"""The built wheel, in an empty environment: what docs/install.md says of it. PYOCO_WHEEL names the wheel."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator

import pytest
from server import PATIENCE, ROOT, Server, clean_environment, until

PROGRAMS = ["pyoco-server", "pyoco-worker", "pyoco-client", "pyoco-server-admin", "nats-bootstrap"]
MOST_BYTES = 40 << 20


@pytest.fixture(scope="module")
def wheel() -> pathlib.Path:
    return pathlib.Path(os.environ["PYOCO_WHEEL"]).resolve()


@pytest.fixture(scope="module")
def installed(wheel: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The folder of the programs of an environment that has the wheel and what it asks for."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    programs = folder / "bin"
    subprocess.run(
        [programs / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel],
        check=True,
        timeout=5 * PATIENCE,
    )
    return programs


@pytest.fixture(scope="module")
def server(installed: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server of the wheel, with the flows of the examples."""
    os.environ["PYOCO_BIN"] = str(installed)
    server = Server(tmp_path_factory.mktemp("server"), flows=ROOT / "examples")
    yield server
    assert server.stop() == 0


def said(*command: str | pathlib.Path) -> str:
    done = subprocess.run(command, env=clean_environment(), capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_and_what_it_installs_stay_small(wheel: pathlib.Path) -> None:
    assert wheel.stat().st_size <= MOST_BYTES
    with zipfile.ZipFile(wheel) as archive:
        assert sum(entry.file_size for entry in archive.infolist()) <= MOST_BYTES


def test_the_five_programs_are_there_and_know_their_names(installed: pathlib.Path) -> None:
    versions = {said(installed / name, "--version").strip() for name in PROGRAMS}
    assert {version.split()[0] for version in versions} == set(PROGRAMS)
    assert len({version.split()[1] for version in versions}) == 1


def test_a_program_keeps_its_process_so_that_signals_reach_it(installed: pathlib.Path, tmp_path: pathlib.Path) -> None:
    command = [str(installed / "pyoco-worker"), "--data-dir", str(tmp_path / "data")]
    worker = subprocess.Popen(command, env=clean_environment(), stdout=subprocess.DEVNULL, cwd=tmp_path)
    try:
        # It listens to signals before it opens its store.
        until((tmp_path / "data" / "pyoco.db").exists, "the store of the worker")
        assert os.readlink(f"/proc/{worker.pid}/exe") == str((installed / "pyoco-server").resolve())
        worker.terminate()
        assert worker.wait(PATIENCE) == 0
    finally:
        worker.kill()


def test_the_three_lines_of_the_documentation_run_a_flow(installed: pathlib.Path, server: Server) -> None:
    page = (ROOT / "docs" / "install.md").read_text()
    [example] = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert len(example.strip().splitlines()) == 3
    assert example in (ROOT / "python" / "README.md").read_text()
    example = example.replace("http://127.0.0.1:8000", server.url)
    assert said(installed / "python", "-c", example).strip() == "COMPLETED"
    listed = said(installed / "pyoco-client", "--server", server.url, "list", "--status", "COMPLETED")
    assert "hello" in listed


def test_the_wheel_is_one_that_the_server_takes(wheel: pathlib.Path, installed: pathlib.Path, server: Server) -> None:
    said(installed / "pyoco-client", "--server", server.url, "wheel-upload", "--wheel-file", wheel, "--tags", "nobody", "--preflight", "off")
    assert wheel.name in said(installed / "pyoco-client", "--server", server.url, "wheels")


def test_type_checkers_find_the_types(installed: pathlib.Path, tmp_path: pathlib.Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "from pyoco_client import PyocoHttpClient\n"
        "def status(client: PyocoHttpClient) -> int:\n"
        "    return client.get_run('x')['status']\n"
    )
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--python-executable", installed / "python", program],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=tmp_path,
    )
    assert "Incompatible return value type" in checked.stdout and "Found 1 error" in checked.stdout, checked.stdout
