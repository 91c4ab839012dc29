"""What the drivers of all peers share: the processes of a peer, callers in two processes of their own, and the file that the bench reads.

A driver says how its peer is started and used. How much is asked of it, and what a figure is, is said by the bench and here, so that it
is the same for everybody.
"""

import asyncio
import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from inspect import iscoroutinefunction
from pathlib import Path

# A peer that has not done something by then will not do it.
PATIENCE = 60
# However slow a list is.
FEWEST_LISTS = 3


class Bench:
    """One peer being measured, in the folder that the driver was started in. The first argument says how much, as JSON."""

    def __init__(self, versions, durability, calling_processes=2):
        """The client libraries are Python, where one process has one core: the callers are shared out between two of them."""
        self.calling_processes = calling_processes
        self.order = json.loads(sys.argv[1])
        self.folder = Path.cwd()
        self.report = {"versions": versions, "durability": durability, "figures": {}, "problems": []}
        self.processes = []
        self.callers = []

    def __enter__(self):
        # Asked to end, it takes its processes with it.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("asked to end"))
        return self

    def __exit__(self, *_):
        for callers in self.callers:
            callers.close()
        for process in reversed(self.processes):
            end(process)

    def start(self, name, *command, **settings):
        """Starts a process of the peer. What it prints goes to a file of that name in the folder."""
        with open(self.folder / f"{name}.log", "wb") as log:
            process = subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=os.environ | settings,
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def measure(self, name, figure):
        """Keeps a figure, or why there is none; the others are measured all the same. `figure` gives `rate` or `times` of this module."""
        print(f"{name} …", flush=True)
        begin = time.monotonic()
        try:
            self.report["figures"][name] = figure()
        except Exception as error:
            traceback.print_exc()
            self.report["problems"].append(f"{name}: {type(error).__name__}: {error}")
        print(f"{name}: {time.monotonic() - begin:.1f} s", flush=True)
        written = self.folder / "figures.json.new"
        written.write_text(json.dumps(self.report))
        written.rename(self.folder / "figures.json")

    def call_from(self, make, *arguments):
        """As many callers as the bench asks for; `make` is called in each of their processes and gives what one call is."""
        callers = Callers(shares(self.order["callers"], self.calling_processes), make, arguments)
        self.callers.append(callers)
        return callers

    def submit(self, make, *arguments):
        """Calls a second that were answered, each caller sending its next when the last was answered."""
        return self.call_from(make, *arguments).call_for(self.order["warm_up"], self.order["measured"])

    def end_to_end(self, wait, make, *arguments):
        """Runs a second, from the first call to when the last run ended; `wait` gets what the calls gave, and gives that moment in Unix seconds."""
        callers = self.call_from(make, *arguments)
        begin = time.time()
        told, failed = callers.call_times(self.order["runs"])
        last = wait(told)
        if not begin < last <= time.time():
            raise RuntimeError(f"the last run ended at {last}, which cannot be")
        return rate(len(told) / (last - begin), len(told), failed)

    def one_run(self, run):
        """Runs on the idle system, one by one. Pauses of many lengths, so that who polls is not always met at the same moment of its round."""
        samples = []
        for number in range(self.order["single_runs"]):
            time.sleep((20 + number * 37 % 50) / 1_000)
            samples.append(timed(run))
        return times(samples)

    def whole(self, run):
        """The same run again and again. The first is not timed."""
        run()
        return times([timed(run) for _ in range(self.order["repeats"])])

    def lists(self, stored, ask):
        """One list at a time, of so many stored runs; `ask` gives how many it got."""
        wanted, samples = min(self.order["listed"], stored), []
        give_up = time.monotonic() + self.order["list_time"]
        ask()
        while len(samples) < self.order["lists"]:
            if len(samples) >= FEWEST_LISTS and time.monotonic() > give_up:
                break
            begin = time.perf_counter()
            got = ask()
            samples.append((time.perf_counter() - begin) * 1_000)
            if got != wanted:
                raise RuntimeError(f"a list of {got} instead of {wanted}")
        return times(samples) | {"stored": stored}

    def memory(self, *more):
        """MiB of all processes of the peer, and of those with these numbers, after a pause."""
        time.sleep(self.order["settle"])
        ids = [process.pid for process in self.processes] + list(more)
        return rate(sum(resident(id) for id in ids + descendants(ids)), 1, 0)


class Callers:
    """Callers in processes of their own, one process for each number of callers."""

    def __init__(self, numbers, make, arguments):
        self.pipes, self.processes = [], []
        context = multiprocessing.get_context("spawn")
        for share in numbers:
            here, there = context.Pipe()
            process = context.Process(target=serve, args=(there, make, arguments, share), daemon=True)
            process.start()
            self.pipes.append(here)
            self.processes.append(process)
        for pipe in self.pipes:
            receive(pipe)

    def call_for(self, warm_up, measured):
        begin = time.monotonic() + warm_up
        end = begin + measured
        for pipe in self.pipes:
            pipe.send({"until": end})
        told, failed = self.answers()
        within = sum(begin <= moment < end for moment, _ in told)
        return rate(within / measured, within, failed)

    def call_times(self, count):
        for share, pipe in zip(shares(count, len(self.pipes)), self.pipes):
            pipe.send({"count": share})
        told, failed = self.answers()
        return [result for _, result in sorted(told, key=lambda one: one[0])], failed

    def answers(self):
        told, failed = [], 0
        for pipe in self.pipes:
            answer = receive(pipe)
            told += answer["told"]
            failed += answer["failed"]
            if answer["example"]:
                print(f"a call failed: {answer['example']}", flush=True)
        if not told:
            raise RuntimeError("no call was answered")
        return told, failed

    def close(self):
        for process in self.processes:
            process.kill()
            process.join()


def serve(pipe, make, arguments, share):
    """A process of callers: does what comes through the pipe until it is killed."""
    if iscoroutinefunction(make):
        asyncio.run(serve_coroutines(pipe, make, arguments, share))
        return
    call = make(*arguments)
    pipe.send("ready")
    while True:
        calls = Calls(pipe.recv())
        threads = [threading.Thread(target=calls.repeat, args=(call,)) for _ in range(share)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        pipe.send(calls.answer())


async def serve_coroutines(pipe, make, arguments, share):
    call = await make(*arguments)
    pipe.send("ready")
    while True:
        calls = Calls(await asyncio.to_thread(pipe.recv))
        await asyncio.gather(*(calls.repeat_async(call) for _ in range(share)))
        pipe.send(calls.answer())


class Calls:
    """What the callers of one process were asked for, and what they were told."""

    def __init__(self, order):
        self.until = order.get("until", float("inf"))
        self.left = order.get("count", sys.maxsize)
        self.lock = threading.Lock()
        self.told, self.failed, self.example = [], 0, None

    def take(self):
        with self.lock:
            self.left -= 1
            return self.left >= 0 and time.monotonic() < self.until

    def repeat(self, call):
        while self.take():
            try:
                result = call()
                self.told.append((time.monotonic(), result))
            except Exception as error:
                self.failed, self.example = self.failed + 1, repr(error)

    async def repeat_async(self, call):
        while self.take():
            try:
                result = await call()
                self.told.append((time.monotonic(), result))
            except Exception as error:
                self.failed, self.example = self.failed + 1, repr(error)

    def answer(self):
        return {"told": self.told, "failed": self.failed, "example": self.example}


def rate(value, samples, failed):
    """A value that was counted."""
    return {"value": value, "samples": samples, "failed": failed}


def times(samples):
    """Milliseconds."""
    return {"times": samples}


def timed(run):
    begin = time.perf_counter()
    run()
    return (time.perf_counter() - begin) * 1_000


def shares(whole, parts):
    """As even as can be."""
    return [whole // parts + (number < whole % parts) for number in range(parts)]


def receive(pipe):
    if not pipe.poll(PATIENCE):
        raise TimeoutError("a process of callers did not answer")
    return pipe.recv()


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_until(what, is_so, every=0.05):
    give_up = time.monotonic() + PATIENCE
    while not is_so():
        if time.monotonic() > give_up:
            raise TimeoutError(what)
        time.sleep(every)


def listens(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    except OSError:
        return False


def resident(id):
    """MiB; nothing of a process that has gone."""
    try:
        status = Path(f"/proc/{id}/status").read_text()
    except OSError:
        return 0
    line = next((line for line in status.splitlines() if line.startswith("VmRSS:")), "VmRSS: 0")
    return int(line.split()[1]) / 1_024


def descendants(ids):
    """All that these processes started, and what those started."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                # The name, in parentheses, may hold anything.
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found, ahead = [], list(ids)
    while ahead:
        children = parents.get(ahead.pop(), [])
        found += children
        ahead += children
    return found


def end(process):
    """Asks a process and its group to end, and ends them when they do not."""
    for sent, patience in ((signal.SIGTERM, 5), (signal.SIGKILL, 5)):
        try:
            os.killpg(process.pid, sent)
            process.wait(patience)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue
