"""What every provider must do with workers, shared files and streams; see evogit/sandbox/__init__.py."""

from __future__ import annotations

import io
import json
import statistics
import tarfile
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from evogit.core import BaseFiles, Files
from evogit.sandbox import Environment, Limits
from evogit.sandbox.archive import pack
from evogit.sandbox.providers import provider
from evogit.sandbox.session import Sandbox, Session

TREE = """
import os, stat
def tree():
    found = {}
    for top, folders, names in os.walk("."):
        for name in [*names, *(f for f in folders if os.path.islink(f"{top}/{f}"))]:
            path = os.path.relpath(f"{top}/{name}")
            if path != "m.py":
                link, mode = os.path.islink(path), os.lstat(path).st_mode
                found[path] = "-> " + os.readlink(path) if link else open(path).read() + " x" * bool(mode & 0o100)
    return found
def change():
    for top, folders, names in os.walk("."):
        for name in names:
            os.unlink(f"{top}/{name}")
    open("planted", "w").close()
def append(path):
    with open(path, "a") as file: file.write("more")
    return open(path).read()
"""


def archive(files: Mapping[str, str]) -> bytes:
    """A tar archive: `-> TARGET` is a symbolic link, content that ends in ` x` an executable, `/` a folder."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for path, content in files.items():
            member = tarfile.TarInfo(path.rstrip("/"))
            text = content.removesuffix(" x").encode()
            if path.endswith("/"):
                member.type = tarfile.DIRTYPE
            elif content.startswith("-> "):
                member.type = tarfile.SYMTYPE
                member.linkname = content[3:]
            else:
                member.size = len(text)
                member.mode = 0o755 if content.endswith(" x") else 0o644
            tar.addfile(member, io.BytesIO(text) if member.isreg() else None)
    return made.getvalue()


BASE = BaseFiles(
    "one",
    archive({
        "m.py": TREE, "a": "a", "tool": "tool x", "link": "-> a", "deep/b": "b", "deep/er/c": "c", "folder/d": "d",
    }),
)  # fmt: skip


def ask(session: Session, function: str, *args: Any) -> Any:
    reply = session.call(f"m:{function}", json.dumps({"args": args}).encode())
    assert reply.failure == "", reply.detail
    return json.loads(reply.value)


def tree(sandbox: Sandbox, changed: Mapping[str, str], removed: tuple[str, ...] = ()) -> dict[str, str]:
    with sandbox.open(Files(archive(changed), removed, BASE), Limits()) as session:
        found: dict[str, str] = ask(session, "tree")
        return found


WHOLE = {"a": "a", "tool": "tool x", "link": "-> a", "deep/b": "b", "deep/er/c": "c", "folder/d": "d"}


@pytest.mark.parametrize(
    ("changed", "removed", "difference"),
    [
        ({}, (), {}),
        ({"a": "new"}, (), {"a": "new"}),
        ({"a": "new x", "tool": "plain"}, (), {"a": "new x", "tool": "plain"}),
        ({}, ("a", "deep/er/c"), {"a": None, "deep/er/c": None}),
        ({"link": "was one"}, (), {"link": "was one"}),
        ({"a": "-> tool"}, (), {"a": "-> tool"}),
        ({"link": "-> /etc/passwd", "up": "-> ../.."}, (), {"link": "-> /etc/passwd", "up": "-> ../.."}),
        ({"folder": "a file now"}, ("folder/d",), {"folder/d": None, "folder": "a file now"}),
        ({"a/inside": "x"}, ("a",), {"a": None, "a/inside": "x"}),
        ({"link/inside": "x"}, ("link",), {"link": None, "link/inside": "x"}),
        ({"empty/": "", "new/deep/er/e": "e"}, (), {"new/deep/er/e": "e"}),
    ],
)
def test_candidates_are_changes_to_a_base(sandbox, changed, removed, difference):
    expected = {path: text for path, text in {**WHOLE, **difference}.items() if text is not None}
    assert tree(sandbox, changed, removed) == expected


def test_the_base_is_the_same_for_every_candidate(sandbox):
    with sandbox.open(Files(archive({}), (), BASE), Limits()) as session:
        assert ask(session, "append", "a") == "amore"
        ask(session, "change")
        assert ask(session, "tree") == {"planted": ""}
    assert tree(sandbox, {}) == WHOLE


def test_another_base_is_another_tree(sandbox):
    assert tree(sandbox, {}) == WHOLE
    other = Files(archive({}), (), BaseFiles("two", archive({"m.py": TREE, "z": "z"})))
    with sandbox.open(other, Limits()) as session:
        assert ask(session, "tree") == {"z": "z"}


def test_a_base_larger_than_the_disk_limit_is_not_what_the_program_wrote(sandbox):
    base = BaseFiles(
        "large", archive({"m.py": "def f(): return open('x', 'w').write('y' * 1000000)", "big": "x" * 8_000_000})
    )
    with sandbox.open(Files(archive({}), (), base), Limits(disk=4 << 20)) as session:
        assert ask(session, "f") == 1_000_000


def test_sessions_of_one_worker_keep_nothing(sandbox):
    source = b"import json, sys\nfound = getattr(json, 'left', 0)\njson.left = 1\nimport decimal\ndef f(): return found"
    files = pack({"m.py": source})
    for _ in range(3):
        with sandbox.open(files, Limits()) as session:
            assert ask(session, "f") == 0


@pytest.mark.slow
def test_other_limits_and_preloads_get_other_workers(sandbox):
    files = pack({"m.py": b"import sys, time\nhad = 'decimal' in sys.modules\ndef nap(s): time.sleep(s); return had"})
    for limits, preload, failure in (
        (Limits(wall=0.1), (), "timeout"),
        (Limits(wall=60), (), ""),
        (Limits(wall=60), ("decimal",), ""),
        (Limits(wall=0.1), (), "timeout"),
    ):
        with sandbox.open(files, limits, preload) as session:
            reply = session.call("m:nap", b'{"args": [0.3]}')
            assert reply.failure == failure
            assert reply.value in (b"", json.dumps("decimal" in preload).encode())


def test_two_sessions_at_once(sandbox):
    files = pack({"m.py": b"kept = []\ndef f(x):\n    kept.append(x)\n    return kept"})
    with sandbox.open(files, Limits()) as one, sandbox.open(files, Limits()) as two:
        assert [ask(one, "f", 1), ask(two, "f", 2), ask(one, "f", 3)] == [[1], [2], [1, 3]]


def test_closed_provider_opens_again(sandbox):
    files = pack({"m.py": b"def f(): return 1"})
    sandbox.close()
    with sandbox.open(files, Limits()) as session:
        assert ask(session, "f") == 1


def test_a_list_is_fed_from_inside_and_the_program_sees_one_item_at_a_time(open_session):
    source = """
import select, sys
seen = []
def f(x):
    seen.append(x)
    if x == 7: raise ValueError("seven")
    return seen[-2:]
"""
    session = open_session(source)
    replies = list(session.stream("m:f", [b"%d" % number for number in range(12)]))
    assert [json.loads(reply.value) for reply in replies[:3]] == [[0], [0, 1], [1, 2]]
    assert [reply.failure for reply in replies] == [""] * 7 + ["crashed"]
    assert "raised ValueError: seven" in replies[-1].detail


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "failure", "detail"),
    [
        ("os._exit(3)", "crashed", "exited with code 3 before replying in item 3 of 12"),
        ("time.sleep(3600)", "timeout", "killed after 3 s of wall clock in item 3 of 12"),
        ("return {1}", "invalid", "returned what JSON cannot say in item 3 of 12"),
        ("print('x' * 2000)", "output-limit", "wrote more than 1000 bytes of output in item 3 of 12"),
    ],
)
def test_the_reason_names_the_item(open_session, body, failure, detail):
    session = open_session(f"import os, time\ndef f(x):\n    if x == 2: {body}\n    return x", output=1000)
    replies = list(session.stream("m:f", [b"%d" % number for number in range(12)], wall=3))
    assert [reply.value for reply in replies[:2]] == [b"0", b"1"]
    assert (len(replies), replies[-1].failure) == (3, failure)
    assert detail in replies[-1].detail


def test_a_long_list_arrives_in_order_with_its_costs(open_session):
    session = open_session("def f(x): return x if x % 40 else sum(range(300_000)) * 0 + x")
    replies = list(session.stream("m:f", [b"%d" % number for number in range(400)]))
    assert [int(reply.value) for reply in replies] == [*range(400)]
    dear = statistics.median(reply.usage.cpu for reply in replies[40::40])
    assert dear > 5 * statistics.median(reply.usage.cpu for reply in replies[1::40])


def test_a_generator_is_asked_for_the_next_item_only_after_the_reply(open_session):
    session, made = open_session("def f(x): return x + 1"), []

    def items() -> Iterator[bytes]:
        for _ in range(5):
            made.append(len(replies))
            yield b"1"

    replies: list[bytes] = []
    for reply in session.stream("m:f", items()):
        replies.append(reply.value)
    assert made == [0, 1, 2, 3, 4]


@pytest.mark.slow
def test_figures_are_plausible(open_session, ask):
    """The program counts along: its own clock is as slow as ours where the machine is busy."""
    source = """
import time
def f():
    while time.process_time() < 0.2: pass
    kept = bytearray(b"x" * 40_000_000)
    time.sleep(1)
    return time.process_time()
"""
    session = open_session(source)
    began = time.monotonic()
    reply = session.call("m:f", b"{}")
    spent, own = time.monotonic() - began, json.loads(reply.value)
    assert own <= reply.usage.cpu < 3 * own
    assert 1 + own <= reply.usage.wall <= spent
    assert 40_000_000 <= reply.usage.memory < 100_000_000


def test_cut_output_is_marked_in_calls_and_runs(open_session):
    session = open_session("import sys\ndef f(): sys.stderr.write('e' * 5000)", output=100)
    assert session.call("m:f", b"{}").failure == "output-limit"
    assert session.output() == (b"", b"e" * 100 + b"\n[cut after 100 bytes]\n")
    done = session.run(["python3", "-c", "print('o' * 5000)"])
    assert (done.breach, done.stdout) == ("output-limit", b"o" * 100 + b"\n[cut after 100 bytes]\n")


# --- a worker for each --------------------------------------------------------------------------------------------

WHICH = b"""
import os
def which(): return [os.stat("/proc/1").st_ctime_ns, os.readlink("/proc/self/ns/user")]
"""


@pytest.mark.parametrize("name", ["bubblewrap", pytest.param("docker", marks=pytest.mark.docker)])
def test_fresh_workers_serve_one_session(name):
    files, found = pack({"m.py": WHICH}), {}
    for isolation in ("warm", "fresh"):
        sandbox = provider(name, Environment(isolation=isolation))
        for _ in range(2):
            with sandbox.open(files, Limits()) as session:
                seen = ask(session, "which")
                found.setdefault(isolation, []).append(seen[1] if name == "bubblewrap" else seen[0])
        sandbox.close()
    assert found["warm"][0] == found["warm"][1]
    assert name == "bubblewrap" or found["fresh"][0] != found["fresh"][1]  # numbers of user namespaces come again


@pytest.mark.slow
def test_a_base_of_many_small_files_fits(sandbox: Sandbox) -> None:
    base = BaseFiles("small", pack({f"folder{n % 10}/{n}": b"x" for n in range(2000)}))
    files = Files(pack({"m.py": b"import os\ndef count(): return len(os.listdir('folder3'))\n"}), (), base)
    with sandbox.open(files, Limits()) as session:
        assert session.call("m:count", b"{}").value == b"200"
