"""What a task sees: the context, whose values stay with the worker until they are read, and what it changed."""

import json
import os

from pyoco_task_values import Opaque, clean, first_look, is_changed, readable

ROOTS = ("params", "results", "scratch", "artifacts")


class Stopped(SystemExit):
    """The worker ends this process: SIGTERM, as an exception, so that `finally` and `with` do their work."""


class LoopFrame:
    """One round of an enclosing loop: name, type, index, iteration, count, item, condition, path."""

    def __init__(self, members):
        self.__dict__.update(members)

    def __repr__(self):
        return f"LoopFrame({self.__dict__!r})"


class NotLoaded:
    """The place of a value that has not been asked for yet."""

    def __repr__(self):
        return "<a value that was not loaded>"


NOT_LOADED = NotLoaded()


class Shared(dict):
    """One of the four mappings as a task sees it: a dict whose large values are loaded when they are read."""

    def __init__(self, members, load):
        super().__init__(members)
        self._load = load
        self._waiting = {key for key, value in members.items() if value is NOT_LOADED}

    def _get(self, key):
        value = super().__getitem__(key)
        if value is NOT_LOADED:
            value = self._load(key)
            super().__setitem__(key, value)
            self._waiting.discard(key)
        return value

    def _all(self):
        for key in list(self._waiting):
            if super().get(key) is NOT_LOADED:
                self._get(key)
        self._waiting.clear()

    def __getitem__(self, key):
        return readable(self._get(key), key)

    def get(self, key, default=None):
        return self[key] if key in self else default

    def setdefault(self, key, default=None):
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key, *default):
        if key in self:
            value = self[key]
            del self[key]
            return value
        return super().pop(key, *default)

    def popitem(self):
        self._all()
        return super().popitem()

    # Overriding this also keeps dict(x), {**x} and f(**x) from reading behind our back.
    def __iter__(self):
        return super().__iter__()

    def values(self):
        self._all()
        return super().values()

    def items(self):
        self._all()
        return super().items()

    def copy(self):
        return dict(self)

    def __eq__(self, other):
        self._all()
        return super().__eq__(other)

    def __ne__(self, other):
        return not self == other

    __hash__ = None

    def __repr__(self):
        self._all()
        return super().__repr__()

    def __or__(self, other):
        return {**self, **other} if isinstance(other, dict) else NotImplemented

    def __ror__(self, other):
        return {**other, **self} if isinstance(other, dict) else NotImplemented

    def __reduce__(self):
        return (dict, (dict(self.items()),))

    def raw_items(self):
        return super().items()


class Values:
    """What an attempt has seen of the context, and how it looked then. The rest stays with the worker."""

    def __init__(self, wire):
        self.wire = wire
        self.seen = {root: {} for root in ROOTS}
        self.before = {root: {} for root in ROOTS}
        self.opened = {}

    def take(self, message, blobs):
        """Values that the worker sent. One that was seen already stays the object that it is."""
        paths = message.get("blobs")
        if paths:
            self._open_blobs(message, paths, blobs)
        for root in ROOTS:
            members = message.get(root)
            if not members:
                continue
            seen, before = self.seen[root], self.before[root]
            for key, value in members.items():
                if key not in seen:
                    seen[key] = value
                    before[key] = first_look(value)

    @staticmethod
    def _open_blobs(message, paths, blobs):
        at = 0
        for root, path, encoding, size in paths:
            data, at = blobs[at : at + size], at + size
            try:
                if encoding == "json":
                    value = json.loads(bytes(data))
                else:
                    import pickle

                    value = pickle.loads(data)
            except Exception as error:
                value = Opaque(f"it cannot be opened here: {type(error).__name__}: {error}")
            place = message[root]
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = value

    def ask(self, **what):
        self.wire.send({"op": "need", **what})
        answer = self.wire.receive()
        if answer is None:
            raise Stopped(143)
        message, blobs = answer
        self.take(message, blobs)
        return message

    def root(self, root):
        """A whole mapping, as a task sees it."""
        opened = self.opened.get(root)
        if opened is None:
            message = self.ask(root=root)
            members = dict(message.get(root, ()))
            members.update((key, NOT_LOADED) for key in message.get("large", ()))
            members.update((key, value) for key, value in self.seen[root].items() if key in members)
            opened = self.opened[root] = (Shared(members, lambda key: self._load(root, key)), frozenset(members))
        return opened[0]

    def _load(self, root, key):
        if key not in self.seen[root]:
            self.ask(root=root, key=key)
        return self.seen[root][key]

    def changes(self, sender):
        """Changed and removed top-level keys, ready to be sent; None when there are none."""
        changed, removed = {}, []
        for root in ROOTS:
            seen, before = self.seen[root], self.before[root]
            if root not in self.opened and not seen:
                continue
            if root in self.opened:
                shared, keys = self.opened[root]
                members = [(key, value) for key, value in shared.raw_items() if value is not NOT_LOADED]
                removed += [[root, key] for key in keys if not dict.__contains__(shared, key)]
            else:
                members = list(seen.items())
            found = {
                clean(key if type(key) is str else str(key)): sender.travels(value)
                for key, value in members
                if key not in seen or is_changed(value, seen[key], before[key])
            }
            if found:
                changed[root] = found
        return (changed, removed) if changed or removed else None


class Context:
    """What a task sees as ctx."""

    def __init__(self, host, message, values):
        self._host, self._values = host, values
        self._run = message["run"]
        self._variables = dict(message.get("vars", {}))
        self.loops = tuple(LoopFrame(members) for members in message.get("loops", ()))

    @property
    def params(self):
        return self._values.root("params")

    @property
    def results(self):
        return self._values.root("results")

    @property
    def scratch(self):
        return self._values.root("scratch")

    @property
    def artifacts(self):
        return self._values.root("artifacts")

    @property
    def env(self):
        return self._host.visible_env()

    @property
    def loop(self):
        return self.loops[-1] if self.loops else None

    @property
    def is_cancelled(self):
        return self._host.is_cancelled

    @property
    def artifact_dir(self):
        return self._host.artifact_folder(self._run)

    def get_var(self, name, default=None):
        return self._variables.get(name, default)

    def set_var(self, name, value):
        self._variables[name] = value

    def clear_var(self, name):
        self._variables.pop(name, None)

    def get_result(self, node_name):
        return self.results.get(node_name)

    def set_result(self, node_name, value):
        self.results[node_name] = value

    def save_artifact(self, name, data):
        folder = os.path.realpath(self.artifact_dir)
        path = os.path.realpath(os.path.join(folder, name))
        if os.path.commonpath([folder, path]) != folder or path == folder:
            raise ValueError(f"Artifact name '{name}' leaves the folder of its run.")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        content = data if isinstance(data, bytes) else (data if isinstance(data, str) else str(data)).encode("utf-8")
        # A process that dies here leaves the former file, not half of the new one.
        draft = f"{path}.{os.getpid()}.part"
        with open(draft, "wb") as file:
            file.write(content)
        os.replace(draft, path)
        kind = "object" if isinstance(data, (dict, list)) else type(data).__name__
        self.artifacts[name] = {"path": path, "type": kind}
        return path


def store_at(values, path, value):
    """Writes a result along a dotted path that leads through a value which only we can open."""
    root, first, *way, last = path.split(".")
    try:
        place = values.root(root).get(first)
    except TypeError:
        return
    if not isinstance(place, dict):
        return
    for key in way:
        place = place.setdefault(key, {})
        if not isinstance(place, dict):
            return
    place[last] = value
