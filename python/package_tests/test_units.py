"""The unit files of packaging/systemd, where systemd can be asked about them."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys

import pytest
from server import PATIENCE, ROOT

UNITS = sorted((ROOT / "packaging" / "systemd").glob("*.service"))
SYSTEMD = shutil.which("systemd-analyze")


def test_there_is_a_unit_for_the_server_and_one_for_a_worker() -> None:
    assert [unit.name for unit in UNITS] == ["pyoco-server.service", "pyoco-worker.service"]


@pytest.mark.skipif(SYSTEMD is None, reason="there is no systemd here")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_systemd_finds_nothing_wrong_with_a_unit(unit: pathlib.Path, tmp_path: pathlib.Path) -> None:
    text = unit.read_text()
    program = f"/opt/pyoco/bin/{unit.stem}"
    assert f"ExecStart={program} " in text
    # It wants the program to be there; any will do.
    copy = tmp_path / unit.name
    copy.write_text(text.replace(f"ExecStart={program} ", f"ExecStart={sys.executable} "))
    done = subprocess.run([str(SYSTEMD), "verify", copy], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0 and unit.stem not in done.stderr, done.stderr
