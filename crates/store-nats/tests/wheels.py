"""What the packages of PyPI do with wheels: `wheels.py <what> [argument ...]`, NATS at PYOCO_NATS_URL. Answers with JSON.

The gateway of pyoco-server 0.5.1 runs in this very process; `read` is what its worker does.
"""

import asyncio
import hashlib
import json
import sys
from pathlib import Path


def gateway(what, arguments):
    from fastapi.testclient import TestClient
    from pyoco_server.http_api import create_app

    with TestClient(create_app()) as client:
        if what == "upload":
            name, path, tags = arguments
            with Path(path).open("rb") as file:
                answer = client.post("/wheels", files={"wheel": (name, file)}, data={"tags": tags} if tags else {})
        elif what == "download":
            answer = client.get(f"/wheels/{arguments[0]}")
            return {"status": answer.status_code, "sha256": hashlib.sha256(answer.content).hexdigest()}
        elif what == "delete":
            answer = client.delete(f"/wheels/{arguments[0]}")
        elif what == "list":
            answer = client.get("/wheels")
        else:
            answer = client.get("/wheels/history")
        return {"status": answer.status_code, "body": answer.json()}


async def read(name):
    import nats
    from pyoco_server.config import NatsBackendConfig

    config = NatsBackendConfig.from_env()
    connection = await nats.connect(config.nats_url)
    try:
        store = await connection.jetstream().object_store(config.wheel_object_store_bucket)
        result = await store.get(name)
        return {"size": result.info.size, "headers": result.info.headers, "sha256": hashlib.sha256(result.data).hexdigest()}
    except Exception as error:
        return {"error": type(error).__name__}
    finally:
        await connection.close()


def main(what, *arguments):
    answer = asyncio.run(read(*arguments)) if what == "read" else gateway(what, arguments)
    # Its own log goes to stdout too; the answer is the last line.
    print("\n" + json.dumps(answer))


main(*sys.argv[1:])
