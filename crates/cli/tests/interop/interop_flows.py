"""Flows that the workers of both makes resolve. The module lies in the folder of its site, and its tasks leave their marks there."""

import pathlib
import time

from pyoco import Flow
from pyoco.core.models import Task

HERE = pathlib.Path(__file__).parent
# On Python 3.11 the worker of PyPI hangs when a run ends while its heartbeat is being written, as it is at the beginning.
A_MOMENT = 0.3


def give(a=0):
    time.sleep(A_MOMENT)
    return {"x": a, "name": "ünï"}


def take(give):
    return [give["x"], 1.5, None, True]


def fail():
    raise ValueError("no luck: ünï")


def wait(ctx):
    for _ in range(600):
        if ctx.is_cancelled:
            time.sleep(A_MOMENT)
            return "stopped"
        time.sleep(0.05)


def after():
    return 1


def mark(token):
    time.sleep(A_MOMENT)
    (HERE / token).touch()


FLOWS = {
    "ok": [("give", give), ("take", take)],
    "bad": [("give", give), ("fail", fail), ("after", after)],
    "slow": [("wait", wait), ("after", after)],
    "mark": [("mark", mark)],
}


def get_flow(name):
    flow = Flow(name=name)
    for task, function in FLOWS[name]:
        flow >> Task(func=function, name=task)
    return flow
