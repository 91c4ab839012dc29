"""Executions, what happened to them, what waits, and the graphs that they are made of. Times are RFC 3339."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from .wheels import UsedWheel

ExecutionStatus = Literal["ACTIVE", "COMPLETED", "FAILED", "CANCELED"]
NodeStatus = Literal["PENDING", "READY", "RUNNING", "WAITING", "SUCCEEDED", "FAILED", "CANCELED"]


class Accepted(TypedDict):
    """What every accepted command is answered, and each of its repeats; of a retry it names the new execution."""

    executionId: str
    command: str
    accepted: bool
    correlationId: str
    idempotencyKey: str


class ErrorInfo(TypedDict, total=False):
    """What failed: a stable word, a text for people, and whatever else is known."""

    code: str
    message: str
    detail: dict[str, Any]


class _Party(TypedDict):
    kind: str


class Party(_Party, total=False):
    """Somebody: `system`, `user`, `scheduler` or `external`, and which one."""

    id: str


class Actor(_Party, total=False):
    """Who caused an event."""

    id: str


class _NodeWait(TypedDict):
    since: str


class NodeWait(_NodeWait, total=False):
    """What a node waits for."""

    waitKey: str | None
    prompt: Any


class _ExecutionNode(TypedDict):
    nodeId: str
    nodeType: str
    status: NodeStatus


class ExecutionNode(_ExecutionNode, total=False):
    """One node of an execution."""

    canceledByExecution: bool
    attempt: int
    startedAt: str
    endedAt: str
    retryAt: str
    workerId: str
    progress: float
    message: str
    waiting: NodeWait
    output: Any
    error: ErrorInfo


class _Execution(TypedDict):
    executionId: str
    graphId: str
    status: ExecutionStatus
    seq: int
    nodes: list[ExecutionNode]


class Execution(_Execution, total=False):
    """An execution with its nodes: those of the graph, then those that loops unfolded."""

    graphVersion: int
    cancelRequestedAt: str | None
    cancelRequestedBy: Party
    cancelReason: str
    createdAt: str | None
    startedAt: str | None
    updatedAt: str | None
    endedAt: str | None
    archivedAt: str
    input: Any
    tag: str
    tags: list[str]
    tenantId: str
    workerId: str
    parked: bool
    error: ErrorInfo
    failedNodeId: str
    retryOf: str
    retriedBy: str
    traceparent: str
    warnings: list[str]
    wheels: list[UsedWheel]


class _ExecutionSummary(TypedDict):
    executionId: str
    graphId: str
    status: ExecutionStatus
    cancelRequested: bool
    createdAt: str
    updatedAt: str


class ExecutionSummary(_ExecutionSummary, total=False):
    """An execution in a list."""

    tags: list[str]
    workerId: str
    error: str


class _ExecutionPage(TypedDict):
    items: list[ExecutionSummary]


class ExecutionPage(_ExecutionPage, total=False):
    """A page of executions, newest change first."""

    nextCursor: str | None


class _ExecutionEvent(TypedDict):
    seq: int
    eventId: str
    executionId: str
    type: str
    occurredAt: str
    actor: Actor
    schemaVersion: int
    payload: dict[str, Any]


class ExecutionEvent(_ExecutionEvent, total=False):
    """One event. Its number counts from 1 in its execution, without a gap."""

    correlationId: str
    causationId: str


class _EventPage(TypedDict):
    executionId: str
    events: list[ExecutionEvent]
    lastSeq: int


class EventPage(_EventPage, total=False):
    """A page of events, oldest first; `next` is the `after` of the next page."""

    next: int | None


class BulkFilter(TypedDict, total=False):
    """Which executions. All that is said has to hold; times are RFC 3339."""

    status: list[str]
    flow: str
    tag: str
    label: str
    createdAfter: str
    createdBefore: str
    updatedAfter: str
    updatedBefore: str


class BulkSkip(TypedDict):
    """An execution that was passed over, and why."""

    id: str
    why: str


class BulkFailure(TypedDict):
    """An execution with which it could not be done."""

    id: str
    code: str
    message: str


class _BulkReport(TypedDict):
    action: Literal["cancel", "retry"]
    dryRun: bool
    matched: int
    done: list[str]
    created: list[str]
    skipped: list[BulkSkip]
    failed: list[BulkFailure]


class BulkReport(_BulkReport, total=False):
    """What became of a page of executions; with `nextCursor` it goes on."""

    nextCursor: str | None


class _GraphNode(TypedDict):
    nodeId: str
    nodeType: str


class GraphNode(_GraphNode, total=False):
    """A node of a graph, and who runs it."""

    runner: str | None


class _Graph(TypedDict):
    graphId: str
    version: int
    createdAt: str
    flowVersion: int
    nodes: list[GraphNode]


class Graph(_Graph, total=False):
    """A version of a graph; with its text where that was asked for."""

    warnings: list[str]
    source: str
    format: str


class GraphSummary(TypedDict):
    """A graph in a list, with its newest version."""

    graphId: str
    version: int
    createdAt: str


class _GraphPage(TypedDict):
    items: list[GraphSummary]


class GraphPage(_GraphPage, total=False):
    """A page of graphs, by name."""

    nextCursor: str | None


class _Wait(TypedDict):
    executionId: str
    graphId: str
    nodeId: str
    since: str


class Wait(_Wait, total=False):
    """A node that waits for somebody."""

    waitKey: str | None
    prompt: Any
    tags: list[str]


class _WaitPage(TypedDict):
    items: list[Wait]


class WaitPage(_WaitPage, total=False):
    """A page of waits, newest first."""

    nextCursor: str | None
