"""Fills the original's bucket of runs: seed_runs.py NATS_URL FIRST COUNT RARE_EVERY.

Written straight into the bucket, in the form that its gateway writes at submission, because a submission takes far longer. Every RARE_EVERY-th run is of the flow
"rare", the others of the flow "common".
"""

import asyncio
import json
import sys
import time
import uuid

import nats

AT_ONCE = 500


async def main(url, first, count, rare_every):
    connection = await nats.connect(url)
    stream = connection.jetstream()
    for start in range(first, first + count, AT_ONCE):
        end = min(start + AT_ONCE, first + count)
        puts = (put(stream, number, rare_every) for number in range(start, end))
        await asyncio.gather(*puts)
    await connection.close()


async def put(stream, number, rare_every):
    now = time.time()
    snapshot = {
        "run_id": str(uuid.uuid4()),
        "flow_name": "rare" if number % rare_every == 0 else "common",
        "tag": "nobody",
        "tags": ["nobody"],
        "tenant_id": None,
        "api_key_id": None,
        "status": "PENDING",
        "params": {},
        "tasks": {},
        "task_records": {},
        "start_time": None,
        "end_time": None,
        "heartbeat_at": now,
        "updated_at": now,
        "error": None,
    }
    payload = json.dumps(snapshot, separators=(",", ":")).encode()
    await stream.publish(f"$KV.pyoco_runs.{snapshot['run_id']}", payload, timeout=30)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], *(int(word) for word in sys.argv[2:5])))
