"""The tasks of the bench for Celery, and its settings: its own, but for where Redis is."""

import os

from celery import Celery, chain, group

app = Celery("work", broker=os.environ["PEER_REDIS"], backend=os.environ["PEER_REDIS"])


@app.task
def tick(*_):
    """Does nothing."""


def chain_of_40():
    return chain(*(tick.si() for _ in range(40)))


def fan_out_of_400():
    """One task, then 400 at once, then one."""
    return chain(tick.si(), group(tick.si() for _ in range(400)), tick.si())
