"""The task host: a warm process that runs the tasks of a worker, one at a time.

It imports what it is told to, resolves inputs, wires arguments, calls, and says what came of it: the value, the
arguments, and what changed in the context. Scheduling, retries, deadlines and storing are the worker's business.

Frames go both ways over one socket: two little-endian 32-bit lengths, a JSON document, raw bytes. A second socket
carries only a byte for "cancel", one for "end now", and its own end, which means that the worker is gone.
Python 3.9 or later, no packages.
"""

import _signal  # signal's own functions make an enumeration of every answer
import _thread
import array
import importlib.machinery
import json
import os
import signal
import socket
import struct
import sys
import types

from pyoco_task_context import Context, Stopped, Values, store_at
from pyoco_task_values import INLINE_BYTES, Sender, clean, cut, is_plain, readable, shown_inputs

MAX_TRACEBACK = 32 * 1024
HEADER = struct.Struct("<II")
# Made once: json.dumps and json.loads with options of their own build these anew for every message.
ENCODE = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
DECODE = json.JSONDecoder().raw_decode


class Stale(Exception):
    """A file that this process has imported was changed since."""


class Wire:
    """The socket to the worker."""

    def __init__(self, connection):
        self.socket = connection
        self._rest = b""

    def receive(self):
        """The next message with its raw bytes, or None when there will be none."""
        head = self._take(HEADER.size)
        if head is None:
            return None
        length, extra = HEADER.unpack(head)
        body = self._take(length + extra)
        if body is None:
            return None
        return DECODE(str(body[:length] if extra else body, "utf-8"))[0], memoryview(body)[length:]

    def _take(self, wanted):
        rest = self._rest
        if len(rest) < wanted:
            parts, have = [rest], len(rest)
            while have < wanted:
                part = self.socket.recv(max(65536, min(wanted - have, 1 << 20)))
                if not part:
                    return None
                parts.append(part)
                have += len(part)
            rest = b"".join(parts)
        self._rest = rest[wanted:]
        return rest[:wanted]

    def send(self, message, blobs=()):
        text = ENCODE(message).encode("utf-8")
        self.socket.sendall(HEADER.pack(len(text), sum(map(len, blobs))) + text)
        for blob in blobs:
            self.socket.sendall(blob)


class Function:
    """A callable, the names of its parameters, and arguments that only this process can hold."""

    __slots__ = ("call", "names", "objects", "wants_ctx")

    def __init__(self, call, inputs=None):
        self.call = call
        self.objects = {name: value for name, value in (inputs or {}).items() if not is_plain(value, 0)}
        names = parameter_names(call)
        self.wants_ctx = "ctx" in names
        self.names = [name for name in names if name != "ctx"]


def parameter_names(call):
    if type(call) is types.FunctionType and not call.__dict__:
        code = call.__code__
        plain, keyword = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
        names, at = list(code.co_varnames[:plain]), keyword
        if code.co_flags & 4:
            names.append(code.co_varnames[at])
            at += 1
        names += code.co_varnames[plain:keyword]
        if code.co_flags & 8:
            names.append(code.co_varnames[at])
        return names
    import inspect

    return list(inspect.signature(call).parameters)


def reduced(found):
    """A decorated task or a Task object is reduced to its function."""
    models = sys.modules.get("pyoco.core.models")
    syntax = sys.modules.get("pyoco.dsl.syntax")
    if syntax is not None and isinstance(found, syntax.TaskWrapper):
        found = found.task
    if models is not None and isinstance(found, models.Task):
        found = found.func
    return found


def import_module(name):
    """Like importlib's, but a traceback of it shows only the importing code."""
    if not name:
        raise ValueError("Empty module name")
    module = sys.modules.get(name)
    if module is None:
        importlib.invalidate_caches()
        __import__(name)
        module = sys.modules[name]
    return module


def import_callable(address):
    module, attribute = address.split(":")
    return reduced(getattr(import_module(module), attribute))


class Sources:
    """Files of the user's that were imported: when one has changed, this process serves old code."""

    def __init__(self, wheels):
        self.files = {}
        self.checked_for = None
        # What wheels brought never changes where it is.
        fixed = (os.path.dirname(os.__file__), *([wheels] if wheels else ()))
        self.foreign = tuple(os.path.join(folder, "") for folder in fixed)
        loader, note = importlib.machinery.SourceFileLoader, self.note
        path_stats = loader.path_stats

        def noted(self, path):
            note(path)
            return path_stats(self, path)

        # Asked by the import system just before it reads a file, which is when the time stamp must be taken.
        loader.path_stats = noted

    def note(self, path):
        if not path.startswith(self.foreign) and "site-packages" not in path and "dist-packages" not in path:
            self.files[path] = stamp(path)

    def check(self, run):
        """Once for a run: within one, all tasks of this process see the same code."""
        if run is not None and run == self.checked_for:
            return
        self.checked_for = run
        for path, known in self.files.items():
            if stamp(path) != known:
                raise Stale(path)


def stamp(path):
    try:
        found = os.stat(path)
    except OSError:
        return (0, 0, 0)
    return (found.st_mtime_ns, found.st_size, found.st_ino)


class Host:
    """The process: what it has imported, and what it is asked."""

    is_ending = False

    def __init__(self, wire, setup):
        self.wire = wire
        self.is_cancelled = False
        self.pid = os.getpid()
        self.exposed = setup["exposed"]
        self.artifacts = setup["artifacts"]
        self.resolver_address = setup["resolver"]
        self.describe_source = setup["describe"]
        self.folder = os.getcwd()
        sys.path[:] = setup["paths"] + [path for path in sys.path if path not in ("", *setup["paths"])]
        sys.argv = ["pyoco-task-host"]
        self.sources = Sources(setup["wheels"])
        self.functions = {}
        self.flows, self.flow_tasks = {}, {}
        self.plugins = None
        self.plugin_folders, self.has_plugins = None, False
        self.describer = None
        self.environment = dict(os.environ._data)
        self.streams = (sys.stdout, sys.stderr)
        self.threads = _thread._count() + 1  # the one that watches

    def visible_env(self):
        if self.exposed is None:
            return dict(os.environ)
        return {name: os.environ[name] for name in self.exposed if name in os.environ}

    def artifact_folder(self, run):
        folder = os.path.join(self.artifacts, run)
        os.makedirs(folder, exist_ok=True)
        return folder

    def function(self, runner):
        ((kind, address),) = runner.items()
        address = tuple(address) if kind == "flow" else address
        known = self.functions.get((kind, address))
        if known is None:
            if kind == "callable":
                known = Function(import_callable(address))
            else:
                task = self.flow_task(*address) if kind == "flow" else self.plugin_task(address)
                known = Function(task.func, task.inputs)
            self.functions[kind, address] = known
            # What a module starts while it is imported is the module's, not a task's.
            self.threads = max(self.threads, _thread._count())
        return known

    # Flows that a resolver builds, and tasks that plugins register: only with the pyoco package.

    def described(self):
        if self.describer is None:
            self.describer = types.ModuleType("pyoco_task_host_describe")
            exec(compile(self.describe_source, "<pyoco task host>", "exec"), self.describer.__dict__)
        return self.describer

    def resolved_flow(self, name):
        flow = self.flows.get(name)
        if flow is None:
            if self.resolver_address is None:
                raise LookupError("this worker was started without --flow-resolver")
            resolver = self.described().resolver(self.resolver_address, import_module)
            flow = self.flows[name] = resolver(name)
        return flow

    def flow_task(self, flow, task):
        resolved = self.resolved_flow(flow)
        known = self.flow_tasks.get(flow)
        if known is None or known[0] is not resolved:
            # By name, once: a flow may have very many tasks, and each is asked for.
            known = self.flow_tasks[flow] = resolved, {member.name: member for member in resolved.tasks}
        if task in known[1]:
            return known[1][task]
        raise LookupError(f"the flow '{flow}' of this worker's resolver has no task '{task}'")

    def plugin_task(self, name):
        if self.plugins is None:
            self.plugins = self.described().plugins()[0]
        if name not in self.plugins:
            raise LookupError(f"no plugin of this worker registers a task '{name}'")
        return self.plugins[name]

    # What the worker asks.

    def load(self, message, _blobs):
        """Imports callables in the order of the document, then what else the worker offers."""
        self.sources.check(None)
        errors = {}
        for task, address in message["callables"]:
            try:
                self.function({"callable": address})
            except Stopped:
                raise
            except BaseException as error:
                errors[task] = import_error(error)
        warnings, discovered = [], []
        modules = message["discovery"].replace(",", " ").split()
        if modules or self.plugins_exist():
            discovered, self.plugins, warnings = self.described().discover(modules, import_module)
        return {"op": "loaded", "errors": errors, "discovered": discovered, "warnings": warnings}

    def plugins_exist(self):
        """Looking through all installed packages takes milliseconds: only after one of their folders has changed."""
        from importlib import metadata

        folders = tuple((path, stamp(path)) for path in sys.path)
        if self.plugin_folders != folders:
            entries = metadata.entry_points()
            found = entries.select(group="pyoco.tasks") if hasattr(entries, "select") else entries.get("pyoco.tasks")
            self.plugin_folders, self.has_plugins = folders, bool(found)
        return self.has_plugins

    def resolver(self, _message, _blobs):
        """Whether there is a resolver at all; it is not asked for anything."""
        try:
            self.described().resolver(self.resolver_address, import_module)
            return {"op": "flow", "unknown": ""}
        except BaseException as error:
            return {"op": "flow", "error": error_text(error), "traceback": user_traceback(error)}

    def flow(self, message, _blobs):
        """Describes a flow of the resolver as data."""
        self.sources.check(None)
        try:
            flow = self.resolved_flow(message["name"])
            return {"op": "flow", "ir": self.described().flow_ir(flow)}
        except Stopped:
            raise
        except KeyError as error:
            return {"op": "flow", "unknown": str(error)}
        except BaseException as error:
            return {"op": "flow", "error": error_text(error), "traceback": user_traceback(error)}

    def exec(self, message, blobs):
        self.sources.check(message["run"])
        answer, sender, values = {"op": "done"}, Sender(), Values(self.wire)
        try:
            values.take(message, blobs)
            function = self.function(message["runner"])
            if "traceparent" in message:
                os.environ["TRACEPARENT"] = message["traceparent"]
            ctx = Context(self, message, values)
            kwargs = {name: self.resolve(spec, values) for name, spec in message["inputs"].items()}
            if function.objects:
                kwargs.update((name, value) for name, value in function.objects.items() if name in kwargs)
            if function.wants_ctx:
                kwargs["ctx"] = ctx
            self.wire_arguments(function, kwargs, message, values, answer)
            answer["inputs"] = shown_inputs(kwargs)
            value = function.call(**kwargs)
            if type(value) is types.CoroutineType:
                import asyncio

                value = asyncio.run(value)
            if os.getpid() != self.pid:
                os._exit(0)  # a forked child came back from the task: it is not the host
            answer["output"] = sender.travels(value)
            for path in message.get("outputs", ()):
                store_at(values, path, value)
            answer["ok"] = True
        except BaseException as error:  # also sys.exit: it ends the attempt, not the host
            if os.getpid() != self.pid:
                os._exit(1)
            if isinstance(error, Stopped):
                answer["stopped"] = True
            answer.pop("output", None)
            sender.blobs.clear()
            answer.update(ok=False, error=error_text(error), kind=type(error).__name__)
            answer["traceback"] = user_traceback(error)
        try:
            changes = values.changes(sender)
            if changes is not None:
                answer["changed"], answer["removed"] = changes
        except BaseException as error:
            answer = {"op": "done", "ok": False, "inputs": answer.get("inputs"), "kind": type(error).__name__}
            answer["error"] = f"what the task changed in the context cannot be kept: {error_text(error)}"
            sender.blobs.clear()
        if not self.put_back():
            answer["retire"] = True
        if sender.blobs:
            answer["sizes"] = [len(blob) for blob in sender.blobs]
        return answer, sender.blobs

    def resolve(self, spec, values):
        """One configured argument. Selectors were parsed by the compiler; the texts are the original's."""
        ((kind, what),) = spec.items()
        if kind == "lit":
            return what
        if kind == "param":
            if what not in values.seen["params"]:
                raise KeyError(f"Param '{what}' not found in context.")
            return readable(values.seen["params"][what], what)
        if kind == "env":
            if what not in os.environ or (self.exposed is not None and what not in self.exposed):
                raise KeyError(f"Environment variable '{what}' not found.")
            return os.environ[what]
        if kind == "invalid":
            raise ValueError(what["message"])
        if what["node"] not in values.seen["results"]:
            raise KeyError(f"Node '{what['node']}' result not found in context.")
        result = readable(values.seen["results"][what["node"]], what["node"])
        for key in what.get("path", ()):
            result = result[key] if isinstance(result, dict) else getattr(result, key)
        return result

    @staticmethod
    def wire_arguments(function, kwargs, message, values, answer):
        """Inputs win over params, params over results; everything by name."""
        open_names = [name for name in function.names if name not in kwargs]
        if not open_names:
            return
        known = message.get("known")
        if known is None or any(name not in known for name in open_names):
            values.ask(names=open_names)
            # The worker sends these along the next time.
            answer["names"] = function.names
        params, results = values.seen["params"], values.seen["results"]
        for name in open_names:
            if name in params:
                kwargs[name] = readable(params[name], name)
            elif name in results:
                kwargs[name] = readable(results[name], name)

    def put_back(self):
        """Undoes what a task did to the process. False: something of it is still there, so the process must go."""
        for stream in self.streams:
            try:
                stream.flush()
            except (OSError, ValueError):
                return False
        sys.stdout, sys.stderr = self.streams
        if os.environ._data != self.environment:
            for name in list(os.environ):
                if os.environ.encodekey(name) not in self.environment:
                    del os.environ[name]
            for name, value in self.environment.items():
                if os.environ._data.get(name) != value:
                    os.environ[os.environ.decodekey(name)] = os.environ.decodevalue(value)
        try:
            if os.getcwd() != self.folder:
                os.chdir(self.folder)
        except OSError:
            return False
        if _signal.getsignal(signal.SIGTERM) is not on_terminate:
            signal.signal(signal.SIGTERM, on_terminate)
        if _thread._count() > self.threads:
            return False
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            return False
        except ChildProcessError:
            return True

    def answer(self, message, blobs):
        try:
            answer = getattr(self, message["op"])(message, blobs)
        except Stale as changed:
            return {"op": "stale", "path": str(changed)}, ()
        return answer if type(answer) is tuple else (answer, ())

    def serve(self):
        while True:
            received = self.wire.receive()
            if received is None:
                return
            answer, blobs = self.answer(*received)
            del received
            self.wire.send(answer, blobs)

    def watch(self, control, watching):
        """Waits for a cancel, for the word to end, or for the end of the worker, which is the end of everything here."""
        group = os.getpgrp()
        watching.release()
        word = control.recv(1)
        while word:
            self.is_cancelled = True
            if word == b"t":
                Host.is_ending = True
                os.kill(self.pid, signal.SIGTERM)
            word = control.recv(1)
        os.killpg(group, signal.SIGKILL)


def import_error(error):
    if isinstance(error, (ImportError, AttributeError)):
        return str(error)
    return f"{type(error).__name__}: {error_text(error)}"


def error_text(error):
    try:
        if isinstance(error, Stopped):
            return "the task was stopped"
        if isinstance(error, SystemExit):
            code = "" if error.code is None else repr(error.code)
            return f"the task called sys.exit({code})"
        if isinstance(error, KeyboardInterrupt):
            return "the task was interrupted (KeyboardInterrupt)"
        text = str(error)
    except Exception:
        text = ""
    text = clean(text)
    return (text if len(text) <= INLINE_BYTES else cut(text)) or type(error).__name__


def user_traceback(error):
    """The traceback without our own frames."""
    import traceback

    place = error.__traceback__
    while place is not None and place.tb_frame.f_code.co_filename == "<pyoco task host>":
        place = place.tb_next
    try:
        text = "".join(traceback.format_exception(type(error), error, place))
    except Exception as broken:
        text = f"{type(error).__name__} (its traceback cannot be shown: {type(broken).__name__})\n"
    text = clean(text)
    if len(text) > MAX_TRACEBACK:
        half = MAX_TRACEBACK // 2
        text = f"{text[:half]}\n… {len(text) - MAX_TRACEBACK} characters left out …\n{text[-half:]}"
    return text


def on_terminate(_signal, _frame):
    """A TERM counts only when the worker has said so, since a service manager may send one to everybody, and only once,
    since the task is then busy tidying up."""
    if Host.is_ending:
        Host.is_ending = False
        raise Stopped(143)


def receive_control(connection):
    """The second socket comes over the first one, with the set-up message behind it."""
    _, passed, _, _ = connection.recvmsg(1, socket.CMSG_SPACE(array.array("i").itemsize))
    (number,) = array.array("i", passed[0][2])
    os.set_inheritable(number, False)
    return socket.socket(fileno=number)


def main():
    connection = socket.socket(fileno=os.dup(0))
    control = receive_control(connection)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.close(null)
    os.register_at_fork(after_in_child=lambda: (connection.close(), control.close()))
    sys.stdin = open(0, encoding="utf-8", closefd=False)
    for stream in (sys.stdout, sys.stderr):
        # Line by line, also where PYTHONUNBUFFERED asks for less: a line that is written in pieces can be torn apart.
        stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True, write_through=False)
    signal.signal(signal.SIGTERM, on_terminate)
    wire = Wire(connection)
    setup = wire.receive()
    if setup is None:
        return
    host = Host(wire, setup[0])
    watching = _thread.allocate_lock()
    watching.acquire()
    _thread.start_new_thread(host.watch, (control, watching))
    # From here on every further thread is a task's.
    watching.acquire()
    host.serve()
