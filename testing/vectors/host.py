"""The task host of the golden vectors: imports task functions, calls them, says what came of it.

One JSON object a line on stdin, one a line on stdout; what tasks print never reaches the wire. Every exec runs
in a thread of its own with a copy of the context; nothing is kept between two of them but imported modules.
Scheduling, retries, deadlines, records and where results are stored are the driver's business, not ours.

Requests carry "id" and "op":
  load      module, source, callables {task: "module:attr"}      -> errors {task: text}
  describe  module, source, flow                                 -> ir (also makes its tasks callable by name)
  exec      runner, inputs, context, refs, loops, variables, expose_env
                                                                 -> "called" event, then the result
  cancel    every ctx.is_cancelled is true from now on           -> (no answer)
"""

import asyncio
import base64
import importlib
import inspect
import io
import json
import os
import pathlib
import pickle
import sys
import threading
import traceback

import describe

ROOTS = ("params", "results", "scratch", "artifacts")
MAX_DEPTH = 64


class Wire:
    """The line to the driver, out of reach of whatever tasks print."""

    def __init__(self):
        self.incoming = os.fdopen(os.dup(0), "r", encoding="utf-8")
        self._outgoing = os.fdopen(os.dup(1), "w", encoding="utf-8")
        self._lock = threading.Lock()
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 1)

    def send(self, message):
        line = json.dumps(message, allow_nan=False) + "\n"
        with self._lock:
            self._outgoing.write(line)
            self._outgoing.flush()


class ThreadStream(io.TextIOBase):
    """sys.stdout or sys.stderr: each task's thread writes into its own buffer, everybody else into nothing."""

    def __init__(self):
        self._local = threading.local()

    def begin(self):
        self._local.buffer = io.StringIO()

    def end(self):
        text = self._local.buffer.getvalue()
        self._local.buffer = None
        return text

    def writable(self):
        return True

    def write(self, text):
        buffer = getattr(self._local, "buffer", None)
        if buffer is not None:
            buffer.write(text)
        return len(text)


class LoopFrame:
    """One round of an enclosing loop: name, type, index, iteration, count, item, condition, path."""

    def __init__(self, members):
        self.__dict__.update(members)


class Opaque:
    """Stands for a value that can be neither JSON nor pickled. Reading it is an error, having it is not."""

    def __init__(self, shown):
        self.shown = shown

    def __repr__(self):
        return self.shown


class Context:
    """What a task sees as ctx."""

    def __init__(self, roots, loops, variables, cancelled):
        self.params, self.results, self.scratch, self.artifacts = (roots[root] for root in ROOTS)
        self.loops = tuple(LoopFrame(members) for members in loops)
        self._variables = variables
        self._cancelled = cancelled

    @property
    def loop(self):
        return self.loops[-1] if self.loops else None

    @property
    def is_cancelled(self):
        return self._cancelled.is_set()

    def get_var(self, name, default=None):
        return self._variables.get(name, default)

    def get_result(self, node_name):
        return self.results.get(node_name)

    def save_artifact(self, name, data):
        folder = pathlib.Path("./artifacts").absolute()
        path = folder / name
        if folder not in pathlib.Path(os.path.normpath(path)).parents:
            raise ValueError(f"Artifact name '{name}' leaves the folder of its run.")
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(data, bytes):
            path.write_bytes(data)
        else:
            path.write_text(data if isinstance(data, str) else str(data))
        kind = "object" if isinstance(data, (dict, list)) else type(data).__name__
        self.artifacts[name] = {"path": str(path), "type": kind}
        return str(path)


def fits(value, depth=0):
    """Whether the driver's JSON can hold it: 64-bit integers, no half characters, not nested without end."""
    if depth > MAX_DEPTH:
        return False
    if isinstance(value, bool) or value is None or isinstance(value, float):
        return True
    if isinstance(value, int):
        return -(2**63) <= value < 2**64
    if isinstance(value, str):
        return not any("\ud800" <= character <= "\udfff" for character in value)
    if isinstance(value, list):
        return all(fits(item, depth + 1) for item in value)
    return all(fits(key) and fits(item, depth + 1) for key, item in value.items())


def same(value, back):
    """Whether the way through JSON changed nothing, types included."""
    if type(value) is not type(back):
        return False
    if isinstance(value, list):
        return len(value) == len(back) and all(same(a, b) for a, b in zip(value, back))
    if isinstance(value, dict):
        return list(value) == list(back) and all(same(item, back[key]) for key, item in value.items())
    return value == back


def shown(value):
    """What a record shows of a value, and whether that is all there is to it."""
    try:
        back = json.loads(json.dumps(value, allow_nan=False))
        if fits(back):
            return back, same(value, back)
    except Exception:  # whatever a value's own code raises
        pass
    return repr(value), False


def encode(value):
    """A value as it travels: what is shown, and a pickle where that is not the whole value."""
    show, exact = shown(value)
    if exact:
        return {"value": show}
    try:
        data = pickle.dumps(value)
        pickle.loads(data)
    except Exception:
        if not isinstance(show, str):
            return {"value": show}
        data = pickle.dumps(Opaque(show))
    return {"value": show, "pickle": base64.b64encode(data).decode("ascii")}


def fingerprint(value):
    """Equal before and after a call if the value was left alone."""
    travels = encode(value)
    return json.dumps(travels["value"]), travels.get("pickle")


def readable(value, name):
    if isinstance(value, Opaque):
        raise TypeError(f"The value of '{name}' ({value!r}) is neither JSON nor can it be pickled.")
    return value


def resolve(spec, ctx, exposed):
    """One configured argument. Selectors were parsed by the compiler; the texts are the original's."""
    ((kind, what),) = spec.items()
    if kind == "lit":
        return what
    if kind == "param":
        if what not in ctx.params:
            raise KeyError(f"Param '{what}' not found in context.")
        return readable(ctx.params[what], what)
    if kind == "env":
        if what not in os.environ or (exposed is not None and what not in exposed):
            raise KeyError(f"Environment variable '{what}' not found.")
        return os.environ[what]
    if kind == "invalid":
        raise ValueError(what["message"])
    if what["node"] not in ctx.results:
        raise KeyError(f"Node '{what['node']}' result not found in context.")
    result = readable(ctx.results[what["node"]], what["node"])
    for key in what.get("path", []):
        result = result[key] if isinstance(result, dict) else getattr(result, key)
    return result


def wire_arguments(function, kwargs, ctx):
    """Inputs win over params, params over results; everything by name."""
    parameters = inspect.signature(function).parameters
    if "ctx" in parameters:
        kwargs["ctx"] = ctx
    for name in parameters:
        if name in kwargs:
            continue
        if name in ctx.params:
            kwargs[name] = readable(ctx.params[name], name)
        elif name in ctx.results:
            kwargs[name] = readable(ctx.results[name], name)
    return kwargs


class Host:
    def __init__(self, wire):
        self.wire = wire
        self.registered = {}
        self.cancelled = threading.Event()
        self.stdout, self.stderr = ThreadStream(), ThreadStream()
        sys.stdout, sys.stderr = self.stdout, self.stderr

    def import_source(self, module, source):
        pathlib.Path(f"{module}.py").write_text(source)
        importlib.invalidate_caches()
        return importlib.import_module(module)

    def function(self, runner):
        """The function behind a runner: `module:attribute`, or a task of the described flow."""
        if "registered" in runner:
            return self.registered[runner["registered"]]
        module, attribute = runner["callable"].split(":")
        found = getattr(importlib.import_module(module), attribute)
        if type(found).__module__.startswith("pyoco."):  # a decorated task or a Task object
            found = getattr(found, "task", found).func
        return found

    def load(self, message):
        errors = {}
        if message["source"] is not None:
            try:
                self.import_source(message["module"], message["source"])
            except Exception:
                pass  # every callable of the module says so below
        for task, callable_ in message["callables"].items():
            try:
                self.registered[task] = self.function({"callable": callable_})
            except Exception as error:
                errors[task] = str(error)
        return {"errors": errors}

    def describe(self, message):
        module = self.import_source(message["module"], message["source"])
        flow = module.resolve_flow(message["flow"])
        self.registered = {task.name: task.func for task in flow.tasks}
        return {"ir": describe.flow_ir(flow)}

    def exec(self, message):
        roots = {root: dict(message["context"][root]) for root in ROOTS}
        for path, data in message["refs"].items():
            root, _, key = path.partition(".")
            roots[root][key] = pickle.loads(base64.b64decode(data))
        before = {root: {key: fingerprint(value) for key, value in roots[root].items()} for root in ROOTS}
        ctx = Context(roots, message["loops"], message["variables"], self.cancelled)
        answer = {"inputs": None}
        self.stdout.begin()
        self.stderr.begin()
        try:
            function = self.function(message["runner"])
            exposed = message["expose_env"]
            kwargs = {key: resolve(spec, ctx, exposed) for key, spec in message["inputs"].items()}
            kwargs = wire_arguments(function, kwargs, ctx)
            answer["inputs"] = {key: shown(value)[0] for key, value in kwargs.items() if key != "ctx"}
            self.wire.send({"id": message["id"], "event": "called"})
            value = function(**kwargs)
            if inspect.iscoroutine(value):
                value = asyncio.run(value)
            answer.update(ok=True, output=encode(value))
        except BaseException as error:  # also sys.exit: it ends the attempt, not the host
            answer.update(ok=False, error=str(error), kind=type(error).__name__)
            answer["traceback"] = traceback.format_exc()
        streams = (("stdout", self.stdout.end()), ("stderr", self.stderr.end()))
        answer["logs"] = [[stream, text] for stream, text in streams if text]
        answer["changes"] = self.changes(roots, before)
        return answer

    @staticmethod
    def changes(roots, before):
        """Changed and removed top-level keys of the context."""
        changed, removed = {root: {} for root in ROOTS}, []
        for root in ROOTS:
            for key, value in roots[root].items():
                if before[root].get(key) != fingerprint(value):
                    changed[root][key if isinstance(key, str) else str(key)] = encode(value)
            removed += [[root, key] for key in before[root] if key not in roots[root]]
        return {"changed": changed, "removed": removed}

    def answer(self, message):
        try:
            answer = getattr(self, message["op"])(message)
        except BaseException as error:
            answer = {"broken": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()}
        self.wire.send({"id": message["id"], **answer})

    def serve(self):
        for line in self.wire.incoming:
            message = json.loads(line)
            if message["op"] == "cancel":
                self.cancelled.set()
            elif message["op"] == "exec":
                threading.Thread(target=self.answer, args=(message,), daemon=True).start()
            else:
                self.answer(message)


if __name__ == "__main__":
    sys.path.insert(0, os.getcwd())
    Host(Wire()).serve()
    os._exit(0)  # threads of abandoned attempts do not hold us back
