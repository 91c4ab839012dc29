"""The types of answers, beside what the server says of itself in /openapi.json."""

from __future__ import annotations

from typing import Any, is_typeddict

import httpx
import pytest
from server import Server

from pyoco_client import types

NAMES = [name for name in types.__all__ if is_typeddict(getattr(types, name))]
# Made by the client, or only sent, or the name for it is another one there.
OWN = {"WatchEvent": {"event", "data"}}


@pytest.fixture(scope="module")
def schemas(server: Server) -> dict[str, Any]:
    described: dict[str, Any] = httpx.get(f"{server.url}/openapi.json").json()["components"]["schemas"]
    return described


@pytest.mark.parametrize("name", NAMES)
def test_each_type_has_the_members_that_the_server_describes(name: str, schemas: dict[str, Any]) -> None:
    ours = getattr(types, name)
    members = set(ours.__required_keys__ | ours.__optional_keys__)
    if name in OWN:
        assert members == OWN[name]
        return
    described = schemas[name]
    assert members == set(described["properties"])
    missing = set(described.get("required", [])) - ours.__required_keys__
    assert not missing, "described as always there"
    invented = ours.__required_keys__ - set(described.get("required", []))
    assert not invented, "not described as always there"
