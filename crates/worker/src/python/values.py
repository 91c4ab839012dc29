"""Values on their way between tasks: what JSON says in full, what is pickled, what a person is shown."""

import json
import marshal

SCALARS = frozenset((int, str, float, bool, type(None)))
MAX_DEPTH = 60
# A larger value stands outside the log; what is shown of it is cut.
INLINE_BYTES = 64 * 1024
# So much of an attempt's values may stand in its record.
INLINE_TOTAL = 256 * 1024
SHOWN_CHARACTERS = 1000
MAX_VALUE_BYTES = 256 * 1024 * 1024


class Opaque:
    """Stands for a value that can be neither JSON nor pickled. Having it is no error, reading it is.

    Stored pickles name this class by its module, so neither may be renamed.
    """

    def __init__(self, shown):
        self.shown = shown

    def __repr__(self):
        return self.shown


def readable(value, name):
    if type(value) is Opaque:
        raise TypeError(f"The value of '{name}' ({value!r}) is neither JSON nor can it be pickled.")
    return value


def fingerprint(value):
    """Bytes that differ after a change. None: it cannot change in place."""
    if type(value) in SCALARS:
        return None
    try:
        return marshal.dumps(value, 2)
    except ValueError:
        return dumps_pickle(value)


def dumps_pickle(value):
    import pickle

    return pickle.dumps(value, 4)


def first_look(value):
    try:
        return fingerprint(value)
    except Exception:
        return None  # changes in place of such a value cannot be noticed


def is_changed(value, seen, before):
    """Whether a value differs from what was seen under its key."""
    try:
        if before is None:
            return value is not seen and (type(value) is not type(seen) or value != seen)
        return fingerprint(value) != before
    except Exception:
        return True


def clean(text):
    """Text that can be sent: half characters are written out."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


class Sender:
    """Values on their way to the worker: as JSON where that is all there is to them, else as bytes too."""

    def __init__(self):
        self.blobs = []
        self.room = INLINE_TOTAL

    def travels(self, value):
        kind = type(value)
        if kind in SCALARS and kind is not str and is_plain(value, 0):
            return {"v": value}
        if is_plain(value, 0):
            text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
            data = text.encode("utf-8")
            if len(data) <= min(INLINE_BYTES, self.room) or len(data) < SHOWN_CHARACTERS:
                self.room -= len(data)
                return {"v": value}
            return self._attach("json", data, cut(text))
        show, is_json = shown(value)
        try:
            data = dumps_pickle(value)
        except (Exception, RecursionError):
            if is_json:
                return self.travels(show)
            data = dumps_pickle(value if type(value) is Opaque else Opaque(cut(show)))
        return self._attach("pickle", data, small(show))

    def _attach(self, encoding, data, show):
        if len(data) > MAX_VALUE_BYTES:
            raise ValueError(
                f"a value of {len(data)} bytes is too large to be passed on (at most {MAX_VALUE_BYTES}); "
                "save it with ctx.save_artifact and pass on its path"
            )
        self.blobs.append(data)
        return {"v": show, "b": [encoding, len(self.blobs) - 1]}


def is_plain(value, depth):
    """Whether JSON says everything about it: exact types, 64-bit integers, whole characters, bounded nesting."""
    kind = type(value)
    if kind is str:
        return value.isascii() or is_text(value)
    if kind is bool or value is None:
        return True
    if kind is int:
        return -(2**63) <= value < 2**64
    if kind is float:
        return value - value == 0  # neither infinite nor not a number
    if depth > MAX_DEPTH:
        return False
    if kind is list:
        return all(is_plain(item, depth + 1) for item in value)
    if kind is dict:
        return all(
            type(key) is str and is_plain(key, 0) and is_plain(item, depth + 1) for key, item in value.items()
        )
    return False


def is_text(value):
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def shown(value):
    """What a person is shown of a value that is not plain, and whether that is its JSON form."""
    try:
        back = json.loads(json.dumps(value, allow_nan=False))
        if is_plain(back, 0):
            return back, True
    except Exception:  # whatever a value's own code raises
        pass
    try:
        text = repr(value)
    except Exception as error:
        text = f"<{type(value).__name__} whose repr fails: {type(error).__name__}>"
    return clean(text), False


def cut(text):
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}… ({len(text)} characters)"


def small(show):
    """What is shown, cut when there is much of it."""
    if type(show) in SCALARS and type(show) is not str:
        return show
    text = show if type(show) is str else json.dumps(show, ensure_ascii=False)
    return show if len(text) <= INLINE_BYTES // 4 else cut(text)


def shown_inputs(kwargs):
    """The arguments as a record shows them, at most so much in all."""
    listed, room = {}, INLINE_BYTES
    for key, value in kwargs.items():
        if key == "ctx":
            continue
        kind = type(value)
        if kind in SCALARS and kind is not str and is_plain(value, 0):
            listed[key] = value
            continue
        show = value if is_plain(value, 0) else shown(value)[0]
        text = show if type(show) is str else json.dumps(show, ensure_ascii=False)
        if len(text) > room:
            listed[key] = cut(text)
        else:
            listed[key] = show
            room -= len(text)
    return listed
