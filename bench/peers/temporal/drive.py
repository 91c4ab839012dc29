"""Temporal's development server with a file for its database, and two worker processes."""

import asyncio
import subprocess
import sys
import uuid
from importlib.metadata import version
from pathlib import Path

import measuring
import work
from temporalio.client import Client, WorkflowExecutionStatus

DURABILITY = "SQLite with a file and a rollback journal, synced at every commit (without a file all is in memory)"
WORKERS = 2


async def submit(address, queue):
    client = await Client.connect(address)

    async def call():
        handle = await client.start_workflow(work.OneTask.run, id=str(uuid.uuid4()), task_queue=queue)
        return handle.id

    return call


def main():
    program = Path(sys.executable).parent / "temporal"
    told = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    versions = f"{told.strip()}, temporalio {version('temporalio')}"
    loop = asyncio.new_event_loop()
    with measuring.Bench(versions, DURABILITY) as bench:
        port = measuring.free_port()
        address = f"127.0.0.1:{port}"
        bench.start(
            "server", program, "server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", port,
            "--db-filename", bench.folder / "temporal.db", "--log-level", "warn",
        )  # fmt: skip
        measuring.wait_until("the server does not listen", lambda: measuring.listens(port))
        client = loop.run_until_complete(connect(address))
        for number in range(WORKERS):
            bench.start(f"worker-{number}", sys.executable, work.__file__, address)

        def run(workflow):
            done = client.execute_workflow(workflow.run, id=str(uuid.uuid4()), task_queue=work.QUEUE)
            loop.run_until_complete(asyncio.wait_for(done, measuring.PATIENCE))

        async def ended(ids):
            last = 0
            for id in reversed(ids):
                handle = client.get_workflow_handle(id)
                await asyncio.wait_for(handle.result(), measuring.PATIENCE)
                description = await handle.describe()
                if description.status != WorkflowExecutionStatus.COMPLETED:
                    raise RuntimeError(f"{id} is {description.status}")
                last = max(last, description.close_time.timestamp())
            return last

        async def listed():
            page = client.list_workflows(page_size=bench.order["listed"])
            await page.fetch_next_page()
            return len(page.current_page)

        run(work.OneTask)
        bench.measure("memory", bench.memory)
        bench.measure("one_run", lambda: bench.one_run(lambda: run(work.OneTask)))
        bench.measure("chain", lambda: bench.whole(lambda: run(work.ChainOf40)))
        bench.measure("fan_out", lambda: bench.whole(lambda: run(work.FanOutOf400)))
        wait = lambda ids: loop.run_until_complete(ended(ids))
        bench.measure("end_to_end", lambda: bench.end_to_end(wait, submit, address, work.QUEUE))
        bench.measure("submit", lambda: bench.submit(submit, address, "nobody"))
        stored = lambda: loop.run_until_complete(client.count_workflows()).count
        bench.measure("list", lambda: bench.lists(stored(), lambda: loop.run_until_complete(listed())))


async def connect(address):
    """As soon as it answers, which is later than when it listens."""
    give_up = asyncio.get_running_loop().time() + measuring.PATIENCE
    while True:
        try:
            return await Client.connect(address)
        except RuntimeError:
            if asyncio.get_running_loop().time() > give_up:
                raise
            await asyncio.sleep(0.2)


if __name__ == "__main__":
    main()
