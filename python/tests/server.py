"""A real server for tests, on a free port and with a folder of its own; and a proxy that cuts its streams."""

from __future__ import annotations

import json
import os
import pathlib
import queue
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable

ROOT = pathlib.Path(__file__).resolve().parents[2]
FLOWS = pathlib.Path(__file__).with_name("flows")
PATIENCE = 60.0
MOST_CONNECTIONS = 40


def program(name: str) -> str:
    """A program of ours: of the folder that PYOCO_BIN names, else of the last development build."""
    return os.path.join(os.environ.get("PYOCO_BIN") or ROOT / "target" / "debug", name)


def clean_environment(**more: str) -> dict[str, str]:
    """The environment without settings of whoever runs the tests."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYOCO_")}
    return kept | {"PYOCO_LOAD_DOTENV": "0", "PYOCO_PYTHON": sys.executable} | more


def until(happened: Callable[[], bool], what: str) -> None:
    """Waits for something, for no longer than the patience of a test."""
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < deadline, f"{what} did not happen within {PATIENCE} s"
        time.sleep(0.02)


class Server:
    """`pyoco-server up`, until it is stopped."""

    def __init__(self, folder: pathlib.Path, flows: pathlib.Path = FLOWS, **settings: str) -> None:
        self.data = folder / "data"
        self._log = open(folder / "server.log", "ab")
        command = [program("pyoco-server"), "up", "--host", "127.0.0.1", "--port", "0"]
        command += ["--data-dir", str(self.data), "--flows", str(flows)]
        self._process = subprocess.Popen(
            command, env=clean_environment(**settings), stdout=self._log, stderr=subprocess.PIPE, cwd=folder
        )
        self._said: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        self.url = self._address()

    def _listen(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._said.put(line.decode(errors="replace"))

    def _address(self) -> str:
        said = []
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and (self._process.poll() is None or not self._said.empty()):
            try:
                said.append(self._said.get(timeout=0.1))
            except queue.Empty:
                continue
            if " is up: " in said[-1]:
                return said[-1].split(" is up: ")[1].strip()
        self.stop()
        raise AssertionError("the server did not come up:\n" + "".join(said))

    def api_key(self, *arguments: str) -> str:
        """A new key, from the tool that makes them."""
        command = [program("pyoco-server-admin"), "--data-dir", str(self.data), "api-key", "create", *arguments]
        made = subprocess.run(command, env=clean_environment(), capture_output=True, timeout=PATIENCE, check=True)
        key: str = json.loads(made.stdout)["api_key"]
        return key

    def stop(self) -> int:
        """Tells it to stop, waits, and gives its exit code."""
        self._process.terminate()
        try:
            return self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise
        finally:
            self._log.close()


class CuttingProxy:
    """Passes bytes on to a server, but ends every connection after so many server-sent events."""

    def __init__(self, url: str, cut_after: int) -> None:
        host, _, port = url.removeprefix("http://").partition(":")
        self.server_url = url
        self._server = (host, int(port))
        self._cut_after = cut_after
        self.heads: list[str] = []
        """The heads of the requests, one a connection."""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Takes no more connections."""
        try:
            # Also whoever waits for one is told.
            self._listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            return
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.create_connection(self._server) as server:
            head = b""
            while b"\r\n\r\n" not in head:
                piece = client.recv(65536)
                if not piece:
                    return
                head += piece
            self.heads.append(head.decode())
            if len(self.heads) > MOST_CONNECTIONS:
                # Whoever makes no progress would come again for ever.
                return self.close()
            server.sendall(head)
            answer = b""
            while answer.count(b"\n\n") < self._cut_after:
                piece = server.recv(65536)
                if not piece:
                    return
                room = self._cut_after - answer.count(b"\n\n")
                whole = piece.split(b"\n\n")
                kept = b"\n\n".join(whole[:room]) + b"\n\n" if len(whole) > room else piece
                answer += kept
                client.sendall(kept)
