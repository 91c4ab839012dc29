"""Tasks that go on when a file is there, or when they are cancelled. The folder of the files is a parameter."""

import pathlib
import time
from typing import Any


def _pass(gate: pathlib.Path, ctx: Any) -> str:
    while not gate.exists() and not ctx.is_cancelled:
        time.sleep(0.01)
    return gate.name


def first(gates: str, ctx: Any) -> str:
    return _pass(pathlib.Path(gates, "first"), ctx)


def second(gates: str, ctx: Any) -> str:
    return _pass(pathlib.Path(gates, "second"), ctx)


def third(gates: str, ctx: Any) -> str:
    return _pass(pathlib.Path(gates, "third"), ctx)
