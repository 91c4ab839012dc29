"""Registered graphs: put, read, list, delete."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..request import Request, get, given, no_answer, path
from ..types import Graph, GraphPage


def put_graph(graph_id: str, document: str | Mapping[str, Any], *, expected: int | None = None) -> Request[Graph]:
    """Keeps a flow under a name, as a new version unless it says the same as the newest one.

    The document is the text of a flow.yaml, or the same as a dictionary. With `expected`, only if the newest version is that one.
    """
    is_yaml = isinstance(document, str)
    return Request(
        "PUT",
        path("graphs", graph_id),
        headers=_if_version(expected) | {"Content-Type": "application/yaml" if is_yaml else "application/json"},
        content=(document if isinstance(document, str) else json.dumps(document)).encode(),
    )


def get_graph(graph_id: str, *, version: int | None = None) -> Request[Graph]:
    """Reads a version of a graph with its text; the newest when none is named."""
    return get("graphs", graph_id, query=given({"version": version}))


def list_graphs(*, limit: int | None = None, cursor: str | None = None) -> Request[GraphPage]:
    """Lists the newest version of every graph, by name."""
    return get("graphs", query=given({"limit": limit, "cursor": cursor}))


def delete_graph(graph_id: str, *, expected: int | None = None) -> Request[None]:
    """Deletes a graph: nothing new can be made of it. With `expected`, only if its newest version is that one."""
    return Request("DELETE", path("graphs", graph_id), headers=_if_version(expected), read=no_answer)


def _if_version(expected: int | None) -> dict[str, str]:
    return {} if expected is None else {"If-Match": f'"{expected}"'}
