"""Values that JSON cannot say, and inputs that are sent once: into a sandbox and out of it, checked outside."""

from __future__ import annotations

import json
import struct
from array import array
from collections.abc import Iterator
from typing import Any

import pytest

from evogit import Array, Invalid
from evogit.evaluation.arguments import put
from evogit.evaluation.binary_values import read
from evogit.evaluation.program import Program
from evogit.sandbox import Limits
from evogit.sandbox.providers.bubblewrap import Bubblewrap
from evogit.sandbox.values import MisfitError

CANDIDATE = """\
from array import array
seen = []
def same(x):
    seen.append(id(x))
    return x
def kinds(*args, **kwargs):
    return [type(x).__name__ for x in (*args, *kwargs.values())]
def doubled(x):
    return array("d", (2 * each for each in x))
def pair(x):
    return {"text": bytes(x), "size": len(x)}
def nothing(x):
    return array("d", [float("nan")])
def times_same():
    return [len(seen), len(set(seen))]
def grow(x):
    x.append(1)
    return len(x)
"""


@pytest.fixture(scope="module")
def program() -> Iterator[Program]:
    from evogit.sandbox.archive import pack

    sandbox = Bubblewrap()
    files = pack({"c.py": CANDIDATE.encode()})
    with sandbox.open(files, Limits()) as session:
        yield Program(session, lambda: sandbox.open(files, Limits()))
    sandbox.close()


def test_binary_values_cross_as_they_are(program: Program) -> None:
    assert program.call("c:same", [b"\x00\xff"], returns=bytes).value == b"\x00\xff"
    numbers = array("d", [1.5, 2.5])
    found = program.call("c:doubled", [numbers], returns=Array("float64", (2,))).value
    assert memoryview(found).tolist() == [3.0, 5.0]
    grid = memoryview(array("i", range(6))).cast("B").cast("i", [2, 3])
    assert memoryview(program.call("c:same", kwargs={"x": grid}).value).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert program.call("c:kinds", [b"", numbers], {"z": 1}).value == ["bytes", "memoryview", "int"]
    assert program.call("c:pair", [b"ab"]).value == {"text": b"ab", "size": 2}
    assert memoryview(program.call("c:same", [array("d")]).value).nbytes == 0


@pytest.mark.parametrize(
    ("target", "returns", "reason"),
    [
        ("c:doubled", Array("float32"), "expected an array of float32, got float64"),
        ("c:doubled", Array("float64", (3,)), "expected an array of the shape"),
        ("c:doubled", Array("float64", (None, 2)), "expected an array of the shape"),
        ("c:doubled", list[float], "got a binary value"),
        ("c:doubled", int, "got a binary value"),
        ("c:doubled", bytes, "expected bytes"),
        ("c:nothing", Array("float64"), "NaN or infinity"),
        ("c:kinds", Array("float64"), "expected an array, got"),
        ("c:doubled", (bytes, None), "expected 2 values"),
    ],
)
def test_what_is_not_of_the_type_is_invalid(program: Program, target: str, returns: Any, reason: str) -> None:
    with pytest.raises(Invalid, match="does not fit") as refused:
        program.call(target, [array("d", [1.0, 2.0])], returns=returns)
    assert reason in refused.value.reason


def test_an_input_that_was_put_is_sent_once_to_each_life(program: Program) -> None:
    rows = program.put([[1, 2], [3]])
    with program.anew() as life:
        assert [life.call("c:same", [rows]).value for _ in range(2)] == [[[1, 2], [3]]] * 2
        assert life.call("c:times_same").value == [2, 1]  # one object
        assert life.call("c:grow", [rows]).value == 3  # which is the candidate's own
        assert life.call("c:grow", [rows], fresh=True).value == 3
    assert program.call("c:grow", kwargs={"x": rows}).value == 3
    assert memoryview(program.call("c:same", [program.put(array("h", [7]))]).value).tolist() == [7]


def test_what_is_neither_json_nor_binary_is_the_evaluators_mistake(program: Program) -> None:
    for strange in ({1, 2}, object(), [b"inside"], float("nan")):
        with pytest.raises(ValueError, match="expected a value that JSON can say"):
            program.call("c:same", [strange])
    with pytest.raises(ValueError, match="JSON"):
        put({1})


def pieces(places: object, value: object, *contents: bytes) -> bytes:
    """A binary reply, as a program could forge it."""
    texts = (json.dumps(places).encode(), json.dumps(value).encode(), *contents)
    return b"".join(struct.pack(">I", len(text)) + text for text in texts)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\x00\x00",
        b"\x00\x00\x00\xffabc",
        pieces([], None),
        pieces([[[], ["bytes"]]], None),
        pieces([[[], ["bytes"], 1]], None, b""),
        pieces([[[], ["pickle"]]], None, b"x"),
        pieces([[[], ["numpy", "O", [1]]]], None, bytes(8)),
        pieces([[[], ["numpy", "<f8", [2]]]], None, bytes(8)),
        pieces([[[], ["numpy", "<f8", [-1]]]], None, bytes(8)),
        pieces([[[], ["numpy", "<f8", [1] * 33]]], None, bytes(8)),
        pieces([[[], ["numpy", "<f8", [True]]]], None, bytes(8)),
        pieces([[[], ["numpy", "V8", [1]]]], None, bytes(8)),
        pieces([[[], ["memory", "P", [1]]]], None, bytes(8)),
        pieces([[[], ["memory", "dd", [1]]]], None, bytes(16)),
        pieces([[[5], ["bytes"]]], [None], b"x"),
        pieces([[[-1], ["bytes"]]], [None], b"x"),
        pieces([[[True], ["bytes"]]], [None, None], b"x"),
        pieces([[["a"], ["bytes"]]], {"a": 1}, b"x"),
        pieces([[["append"], ["bytes"]]], [None], b"x"),
        pieces([[[0, 0], ["bytes"]]], [[None]], b"x"),
        pieces([[[{}], ["bytes"]]], {"a": None}, b"x"),
        pieces([[[0], ["bytes"]]] * 1001, [None], *[b""] * 1001),
    ],
)
def test_forged_binary_replies_are_refused(raw: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - any sentence will do, and no other exception
        read(raw)


@pytest.mark.slow
def test_arrays_of_numpy_come_as_what_they_were() -> None:
    numpy = pytest.importorskip("numpy")
    value, plain, size = read(pieces([[[0], ["numpy", "<f4", [2, 1]]]], [None, "x"], numpy.ones(2, "f4").tobytes()))
    assert (value[0].tolist(), value[1], plain, size) == ([[1.0], [1.0]], "x", [None, "x"], 8)
    assert Array("float32", (2, None)).check(value[0]) is value[0]
    with pytest.raises(MisfitError, match="shape"):
        Array("float32", (1, 1)).check(value[0])
