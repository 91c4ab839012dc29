"""What the tests share: one server for all that do not need another, and both clients."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterator
from typing import cast

import pytest
from blocking import Blocking
from server import CuttingProxy, Server

from pyoco_client import PyocoHttpClient

Connect = Callable[..., PyocoHttpClient]
KINDS = {"sync": PyocoHttpClient, "async": Blocking}


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server of most tests."""
    server = Server(tmp_path_factory.mktemp("server"), PYOCO_CANCEL_GRACE_PERIOD_SEC="5")
    yield server
    assert server.stop() == 0


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that asks for keys."""
    server = Server(tmp_path_factory.mktemp("guarded"), PYOCO_HTTP_AUTH_MODE="api_key")
    yield server
    assert server.stop() == 0


@pytest.fixture(params=list(KINDS))
def connect(request: pytest.FixtureRequest) -> Iterator[Connect]:
    """Makes clients: the test runs with those that block, and again with those of asyncio."""
    made: list[PyocoHttpClient] = []

    def connect(*arguments: str, **named: object) -> PyocoHttpClient:
        client = cast(PyocoHttpClient, KINDS[request.param](*arguments, **named))
        made.append(client)
        return client

    yield connect
    for client in made:
        client.close()


@pytest.fixture
def client(server: Server, connect: Connect) -> PyocoHttpClient:
    """A client of the server of most tests."""
    return connect(server.url)


@pytest.fixture
def gates(tmp_path: pathlib.Path) -> pathlib.Path:
    """The folder of the files that the flow `gated` waits for."""
    folder = tmp_path / "gates"
    folder.mkdir()
    return folder


@pytest.fixture
def cutting(server: Server) -> Iterator[Callable[[int], CuttingProxy]]:
    """Makes proxies before the server that cut connections after so many events."""
    made: list[CuttingProxy] = []

    def cutting(cut_after: int) -> CuttingProxy:
        made.append(CuttingProxy(server.url, cut_after))
        return made[-1]

    yield cutting
    for proxy in made:
        proxy.close()
