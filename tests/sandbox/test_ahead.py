"""What is compiled before the clock of a call starts is what an import would have found."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evogit.sandbox import CallReply, Limits
from evogit.sandbox.archive import pack
from evogit.sandbox.providers.bubblewrap import Bubblewrap
from evogit.sandbox.session import Sandbox

FILES = {
    "package/__init__.py": "from . import inner\nfrom .inner import value\n",
    "package/inner.py": "import package.deep.below as below\nvalue = below.value + __package__\n",
    "package/deep/below.py": "from ..other import given as value\n",
    "package/other.py": "given = 'far '\n",
    "package/top.py": "import package\ndef f():\n    return [package.value, package.inner.__name__, __name__, __file__[-14:]]\n",  # noqa: E501
    "plain.py": "def f():\n    import later\n    return later.value\n",
    "later.py": "value = 1\n",
    "broken.py": "def f(:\n",
    "raises.py": "import plain\n1 / 0\n",
    "misses.py": "try:\n    import nowhere\nexcept ImportError:\n    nowhere = 3\ndef f():\n    return nowhere\n",
    "heapq.py": "value = 7\n",
    "shadows.py": "import heapq\ndef f():\n    return heapq.value\n",
}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    found = Bubblewrap()
    yield found
    found.close()


def called(sandbox: Sandbox, target: str) -> CallReply:
    packed = pack({name: text.encode() for name, text in FILES.items()})
    with sandbox.open(packed, Limits()) as session:
        return session.call(target, b"{}")


def test_modules_are_what_an_import_makes(sandbox: Sandbox) -> None:
    found = called(sandbox, "package.top:f").value
    assert found == b'["far package", "package.inner", "package.top", "package/top.py"]'
    assert called(sandbox, "misses:f").value == b"3"
    assert called(sandbox, "shadows:f").value == b"7"


def test_what_cannot_be_imported_fails_as_it_does_in_an_import(sandbox: Sandbox) -> None:
    assert "SyntaxError" in called(sandbox, "broken:f").detail
    assert called(sandbox, "raises:f").detail.startswith("ZeroDivisionError", len("raised "))
    assert "raises.py, line 2" in called(sandbox, "raises:f").detail
    assert "No module named 'nothing'" in called(sandbox, "nothing:f").detail
    assert "No module named 'package.nothing'" in called(sandbox, "package.nothing:f").detail


def test_files_that_change_after_the_first_call_are_read_anew(sandbox: Sandbox) -> None:
    source = "def f():\n    return 0\ndef g():\n    import later\n    return later.value\n"
    with sandbox.open(pack({"m.py": source.encode(), "later.py": b"value = 1\n"}), Limits()) as session:
        assert session.call("m:f", b"{}").value == b"0"
        session.run(["true"], files={"later.py": b"value = 22\n"})
        assert session.call("m:g", b"{}").value == b"22"
