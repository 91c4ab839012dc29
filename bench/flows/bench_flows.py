"""The tasks of the bench, and the same flows as the resolver of a worker gives them by name.

Every task returns the clock at its start, so that the bench can tell the time between two tasks without asking the server
that it measures.
"""

import random
import time


def tick():
    """Does nothing; gives the time at which it was called."""
    return time.time()


def pause():
    """Holds a run open for a while, so that a watcher sees it change. Never equally long: a server that polls must not fall in step."""
    started = time.time()
    time.sleep(random.uniform(0.1, 0.5))
    return started


def get_flow(name):
    """The one-task flow for POST /runs; the others are sent as flow.yaml."""
    if name != "noop":
        raise KeyError(name)
    from pyoco import Flow
    from pyoco.core.models import Task

    flow = Flow(name=name)
    return flow >> Task(func=tick, name="tick")
