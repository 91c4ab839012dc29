"""The tasks of the bench, and the same flows as the resolver of a worker gives them by name.

Every task returns the clock at its start, so that the bench can tell the time between two tasks without asking the server
that it measures.
"""

import os
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


def nap():
    """Waits 20 ms."""
    time.sleep(0.02)


def hold(ctx):
    """Runs until it is canceled. Leaves a file when it begins, and one with the clock when it notices the cancel."""
    mark = ctx.params["mark"]
    leave(mark + ".begun")
    give_up = time.time() + 60
    while not ctx.is_cancelled and time.time() < give_up:
        time.sleep(0.001)
    leave(mark + ".noticed")


def leave(path):
    """Writes the clock; whoever finds the file finds all of it."""
    with open(path + ".new", "w") as file:
        file.write(repr(time.time()))
    os.rename(path + ".new", path)


def write_rows(ctx):
    """Prints `rows` lines of 80 bytes as fast as it can."""
    for number in range(1, ctx.params["rows"] + 1):
        print(f"row {number} ".ljust(79, "."))


def write_clock(ctx):
    """Waits for the file `mark`, then prints its clock `rows` times, every `every` seconds."""
    give_up = time.time() + 60
    while not os.path.exists(ctx.params["mark"]) and time.time() < give_up:
        time.sleep(0.001)
    begin = time.time()
    for number in range(1, ctx.params["rows"] + 1):
        time.sleep(max(0.0, begin + number * ctx.params["every"] - time.time()))
        print(f"row {number} {time.time()!r}")


BY_NAME = {"noop": ("tick", tick), "held": ("hold", hold)}


def get_flow(name):
    """The one-task flows for POST /runs, and those that are too large for a flow.yaml; the others are sent as one."""
    from pyoco import Flow
    from pyoco.core.models import Task

    flow = Flow(name=name)
    shape, _, count = name.partition("-")
    if shape == "chain":
        last = flow
        for number in range(int(count)):
            last = last >> Task(func=tick, name=f"s{number}")
        return flow
    if shape == "fan":
        many = [Task(func=tick, name=f"f{number}") for number in range(int(count))]
        flow >> Task(func=tick, name="root") >> many >> Task(func=tick, name="join")
        return flow
    task, function = BY_NAME[name]
    return flow >> Task(func=function, name=task)
