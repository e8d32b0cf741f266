from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evogit.sandbox import values

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=20,
)


@pytest.mark.slow
@settings(max_examples=50)
@given(JSON)
def test_what_is_dumped_is_parsed_back(value):
    assert values.parse(values.dump(value)) == value


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[1,]", "NaN", "[-Infinity]", "1e999", "-1e999", '{"a": 1, "a": 1}', '{"a": {"b": 1, "b": 2}}', "01",
        "'x'", "1 2", "[" * 65 + "]" * 65, "[" * 10**6, '{"a":' * 1000 + "1" + "}" * 1000, "1" * 5000, '"\\ud800"',
        '{"\\udfff": 1}', "\ufeff1",
    ],
)  # fmt: skip
def test_harmful_text_is_refused(text):
    with pytest.raises(ValueError, match=r"\w"):
        values.parse(text.encode("utf-8", "surrogatepass"))


def test_depth_is_counted_in_containers():
    assert values.parse(b"true") is True
    assert values.parse(b"[[1]]", depth=2) == [[1]]
    with pytest.raises(ValueError, match="deeper than 1 levels"):
        values.parse(b"[[1]]", depth=1)
    brackets = json.dumps("[" * 100).encode()
    assert values.parse(brackets, depth=1) == "[" * 100


CYCLE: list[object] = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1}, object(), b"x", CYCLE])
def test_what_json_cannot_say_is_not_dumped(value):
    with pytest.raises(ValueError, match="expected a value that JSON can say"):
        values.dump(value)
