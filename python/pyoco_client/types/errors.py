"""What is wrong with what was sent, piece by piece."""

from __future__ import annotations

from typing import Any, TypedDict


class _InputProblem(TypedDict):
    type: str
    loc: list[str | int]
    msg: str


class InputProblem(_InputProblem, total=False):
    """One input that is wrong: which rule it breaks, the way to it, and the rule in words."""

    input: Any
    ctx: Any


class FieldProblem(TypedDict):
    """One field that is wrong."""

    path: str
    message: str


class _WorkflowProblem(TypedDict):
    reason: str


class WorkflowProblem(_WorkflowProblem, total=False):
    """One problem of a flow.yaml. Lines and columns count from one."""

    line: int | None
    column: int | None
    message: str
    help: str
