"""The workflows of the bench for Temporal, and a worker for them: work.py ADDRESS."""

import asyncio
import sys
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import Worker

QUEUE = "bench"
LIMIT = timedelta(seconds=60)


@activity.defn
async def tick():
    """Does nothing."""


def do_tick():
    return workflow.execute_activity(tick, start_to_close_timeout=LIMIT)


@workflow.defn
class OneTask:
    @workflow.run
    async def run(self):
        await do_tick()


@workflow.defn
class ChainOf40:
    @workflow.run
    async def run(self):
        for _ in range(40):
            await do_tick()


@workflow.defn
class FanOutOf400:
    """One task, then 400 at once, then one."""

    @workflow.run
    async def run(self):
        await do_tick()
        await asyncio.gather(*(do_tick() for _ in range(400)))
        await do_tick()


async def main(address):
    client = await Client.connect(address)
    await Worker(client, task_queue=QUEUE, workflows=[OneTask, ChainOf40, FanOutOf400], activities=[tick]).run()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
