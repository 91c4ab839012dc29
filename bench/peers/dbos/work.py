"""The workflows of the bench for DBOS, which is a library: the process that has them runs them."""

import asyncio

from dbos import DBOS


@DBOS.step()
def tick():
    """Does nothing."""


@DBOS.step()
async def tick_async():
    """Does nothing."""


@DBOS.workflow()
def one_task():
    tick()


@DBOS.workflow()
def chain_of_40():
    for _ in range(40):
        tick()


@DBOS.workflow()
async def fan_out_of_400():
    """One task, then 400 at once, then one."""
    await tick_async()
    await asyncio.gather(*(tick_async() for _ in range(400)))
    await tick_async()
