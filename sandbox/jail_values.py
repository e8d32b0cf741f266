"""Values in the program's own process: how those that JSON cannot say come in and go out, as plain bytes."""

import importlib
import json
import sys

from jail_bytes import LENGTH

PLAIN = {int, float, str, bool, type(None), list, tuple, dict}
SMALL = {int, float, bool, type(None)}


def understood(about, content):
    """The value that a piece stands for; numpy is imported from the libraries, where nothing was before."""
    kind, *more = about
    if kind == "json":
        return json.loads(bytes(content))
    if kind == "bytes":
        return bytes(content)
    form, shape = more
    memory = bytearray(content)
    if kind == "numpy":
        return importlib.import_module("numpy").frombuffer(memory, form).reshape(shape)
    return memoryview(memory).cast(form, shape) if memory else memoryview(memory)


def encoded(value):
    """JSON text, or None and pieces where a value, or an item of it, is binary; fails as `json.dumps` does."""
    apart = []
    if is_binary(value):
        apart.append([[], *described(value)])
        value = None
    elif type(value) in (list, tuple):
        if any(map(may_be_binary, set(map(type, value)))):
            value = [set_apart(item, place, apart) for place, item in enumerate(value)]
    elif type(value) is dict and any(map(may_be_binary, set(map(type, value.values())))):
        value = {key: set_apart(item, key, apart) for key, item in value.items()}
    text = json.dumps(value, allow_nan=False, default=number).encode()
    if not apart:
        return text, False
    places = json.dumps([[place, about] for place, about, _ in apart]).encode()
    pieces = places, text, *(content for *_, content in apart)
    return b"".join(LENGTH.pack(len(piece)) + piece for piece in pieces), True


def set_apart(item, place, apart):
    """None for an item that is binary, which is noted with its place; any other item as it is."""
    if type(item) in PLAIN or not is_binary(item):
        return item
    apart.append([[place], *described(item)])
    return None


def may_be_binary(kind):
    """Whether values of a type may be."""
    return kind not in PLAIN


def is_binary(value):
    """Whether a value is a buffer; numbers of numpy are, and are not meant."""
    if type(value) in PLAIN or isinstance(value, getattr(sys.modules.get("numpy"), "generic", ())):
        return False
    try:
        memoryview(value).release()
    except TypeError:
        return False
    return True


def described(value):
    """Kind, format and shape of a buffer, and its bytes."""
    if isinstance(value, bytes | bytearray):
        return ["bytes"], bytes(value)
    numpy = sys.modules.get("numpy")
    if numpy and isinstance(value, numpy.ndarray):
        if value.dtype.hasobject:
            raise TypeError("an array of objects")
        return ["numpy", value.dtype.str, list(value.shape)], value.tobytes()
    view = memoryview(value)
    return ["memory", view.format, list(view.shape)], view.tobytes()


def number(value):
    """A number of numpy as one of Python; for json."""
    if isinstance(value, getattr(sys.modules.get("numpy"), "generic", ())):
        return value.item()
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")
