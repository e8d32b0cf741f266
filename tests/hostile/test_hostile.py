"""Every attack in attacks.py fails in a sandbox, says why, and leaves the next candidate alone; on `none` it works."""

from __future__ import annotations

import json
import math
import os
import re
import time
from pathlib import Path
from typing import Any

import pytest

from evogit.sandbox import CallReply, Limits, values
from evogit.sandbox.archive import pack
from evogit.sandbox.providers import kinds
from evogit.sandbox.session import Session
from tests.clock import PATIENCE, wait_until

from .conftest import APART, JAILS, ONE_KERNEL

ANYTHING = object()
EXCEPTIONS = {
    ("mapped_device", "docker"): "out-of-memory",
    ("mapped_device", "runsc"): "out-of-memory",
    ("outlive_the_supervisor", "docker"): ["500", "refused"],
    ("outlive_the_supervisor", "runsc"): ["0", "refused"],
    ("open_the_supervisor", "runsc"): ["auxv", "environ", "maps", "ns/net"],
    ("become_root", "runsc"): ["refused", False, True],
    ("fork_bomb", "runsc"): "out-of-memory",
    ("quick_fork_bomb", "runsc"): "out-of-memory",
    ("memory_behind_an_ended_thread", "runsc"): "crashed",
    ("fill_sockets", "runsc"): "",
    ("fill_connections", "runsc"): "",
    ("fill_datagrams", "runsc"): "",
    ("inode_bomb", "runsc"): "timeout",
}
"""What a provider does otherwise than the rest: docs/security.md says why that is no harm, or what to do about it."""
ROOT = Path(__file__).parents[2]
FILES = pack({"attacks.py": Path(__file__).with_name("attacks.py").read_bytes()})
HONEST = b'{"args": [2, 3]}'
TIGHT = Limits(wall=60, cpu=10, memory=120 << 20, processes=20, disk=30 << 20, output=100_000, reply=8 << 20)


def call(session: Session, attack: str, host: dict[str, Any], **options: Any) -> CallReply:
    return session.call(f"attacks:{attack}", json.dumps({"args": [host]}).encode(), **options)


@pytest.fixture(params=JAILS)
def session(request, providers, attacked_before):
    """A session on the attacks; afterwards nothing of it is left. It works whatever was in the one before."""
    attacked_before.add(request.param)
    yield from attacked(providers(request.param), request.param)


@pytest.fixture(scope="module", autouse=True)
def attacked_before(providers):
    """Names of providers; after the last attack on each an honest program works."""
    names = set()
    yield names
    for name in names:
        with providers(name).open(FILES, TIGHT) as session:
            assert session.call("attacks:honest", HONEST).value == b"5"


@pytest.fixture(scope="module", params=APART)
def shared(request, providers, attacked_before):
    """One such session for all attacks that leave it working."""
    attacked_before.add(request.param)
    yield from attacked(providers(request.param), request.param)


def attacked(sandbox, name):
    with sandbox.open(FILES, TIGHT) as session:
        reply = session.call("attacks:identity", b"{}")
        assert not reply.failure, f"the session before this one left its mark: {reply.detail}"
        identity = json.loads(reply.value)
        yield session
        identity["ended"] = time.clock_gettime(time.CLOCK_BOOTTIME)
    wait_until(lambda: not left_behind(identity, name), "the end of all that it left")


NONE = pytest.param("none", marks=pytest.mark.slow)
BOTH = pytest.mark.parametrize("session", [*JAILS, "none"], indirect=True)
NONE_IS_SLOW = pytest.mark.parametrize("session", [*JAILS, NONE], indirect=True)
ONE_KERNEL_AND_NONE = pytest.mark.parametrize("session", [*ONE_KERNEL, NONE], indirect=True)
SHARED_BY_ONE_KERNEL = pytest.mark.parametrize("shared", ONE_KERNEL, indirect=True)

BROKEN = [
    ("print_result_and_exit", "crashed", "exited with code 0 before replying in call"),
    ("exit_quietly", "crashed", "exited with code 0 before replying in call"),
    ("system_exit", "crashed", "raised SystemExit: 0"),
    ("endless_name", "crashed", "raised \N{REPLACEMENT CHARACTER}[2J"),
    ("write_to_every_pipe", "invalid", "wrote to the reply channel"),
    ("print_to_every_pipe", "invalid", "wrote to the reply channel"),
    ("print_little_to_every_pipe", "invalid", "wrote to the reply channel"),
    ("close_the_pipes", "crashed", "before replying in call"),
]

BROKEN_BY_THE_KERNEL = [
    ("real_time_signal", "crashed", "was killed by signal 40 before replying in call 2"),
    ("memory_bomb", "out-of-memory", "memory"),
    ("memory_in_children", "out-of-memory", "memory in call 2"),
    ("memory_behind_a_name", "out-of-memory", "memory in call 2"),
    ("memory_behind_an_ended_thread", "out-of-memory", "memory in call 2"),
    ("memory_behind_sharing", "out-of-memory", "memory in call 2"),
    ("thread_bomb", "process-limit", "processes and threads in call 2"),
    ("fill_temporary_folder", "disk-limit", "files in call 2"),
    ("exhaust_descriptors", "crashed", "Too many open files"),
]


@pytest.mark.parametrize(("attack", "failure", "detail"), BROKEN)
@pytest.mark.parametrize("shared", [*ONE_KERNEL, NONE], indirect=True)
def test_failure_is_seen_with_and_without_isolation(shared, host, attack, failure, detail):
    reply = call(shared, attack, host)
    assert (reply.failure, reply.value) == (failure, b"")
    assert detail in reply.detail
    assert shared.call("attacks:honest", HONEST).value == b"5"


@ONE_KERNEL_AND_NONE
def test_output_is_limited(session, host):
    reply = call(session, "output_bomb", host)
    assert (reply.failure, reply.value) == ("output-limit", b"")
    assert "wrote more than 100000 bytes of output in call 2" in reply.detail


@pytest.mark.parametrize(("attack", "failure", "detail"), BROKEN_BY_THE_KERNEL)
@NONE_IS_SLOW
def test_failure_in_the_kernel_is_seen_with_and_without_isolation(request, session, host, attack, failure, detail):
    reply = call(session, attack, host)
    assert (reply.failure, reply.value) == (expected(request, attack, failure), b"")
    assert detail in reply.detail or reply.failure != failure


CONTAINED = [
    ("fork_bomb", "process-limit", "processes and threads in call 2"),
    ("quick_fork_bomb", "process-limit", "processes and threads in call 2"),
    ("fill_sockets", "out-of-memory", "memory in call 2"),
    ("fill_connections", "out-of-memory", "memory in call 2"),
    ("fill_datagrams", "out-of-memory", "memory in call 2"),
    ("fill_shared_memory", "disk-limit", "wrote"),
    ("fill_and_hide", "disk-limit", "in call 2"),  # without a disk of its own, unlinked files are not seen
    ("inode_bomb", "disk-limit", "files in call 2"),
]


@pytest.mark.parametrize(("attack", "usual", "detail"), CONTAINED)
def test_bomb_is_contained(request, session, host, attack, usual, detail):
    failure = expected(request, attack, usual)
    reply = call(session, attack, host, wall=1 if failure == "timeout" else 60, cpu=60)
    assert reply.failure == failure
    assert detail in reply.detail or failure != usual


@pytest.mark.parametrize("attack", ["ignore_signals", "stop_itself", "loop_in_c"])
@pytest.mark.parametrize("shared", [*JAILS, NONE], indirect=True)
def test_loop_is_killed(shared, host, attack):
    reply = call(shared, attack, host, wall=0.15)
    assert reply.failure == "timeout"
    assert "killed after 0.15 s of wall clock in call" in reply.detail
    assert shared.call("attacks:honest", HONEST).value == b"5"


@pytest.mark.parametrize(("wall", "cpu", "reason"), [(0.2, 60, "0.2 s of wall clock"), (60, 0.2, "0.2 s of CPU")])
def test_busy_children_do_not_hold_the_engine(session, host, wall, cpu, reason):
    reply = call(session, "busy_children", host, wall=wall, cpu=cpu)
    assert (reply.failure, reply.detail) == ("timeout", f"killed after {reason} in call 2")


REFUSED = {
    "read_secret": ("refused", "hidden case"),
    "read_evaluators": ("refused", True),
    "look_at_host_folders": ([], ["folder", "tasks"]),
    "find_docker": ([], None),
    "read_engine_environment": ("refused", True),
    "write_outside": ("refused", 1),
    "signal_the_engine": (False, True),
    "mapped_device": ("refused", None),
    "shared_memory": ("refused", None),
    "hidden_shared_memory": ("refused", "hidden"),
    "connect_home": ("refused", None),
    "connect_abstract": ("refused", None),
    "system_v_memory": ("refused", "done"),
    "open_the_supervisor": ([], ANYTHING),
    "write_to_the_system": ([], None),
    "change_the_supervisor": (["refused", "refused"], None),
    "kill_the_supervisor": ("alive", None),
    "trace_the_supervisor": ("EPERM", None),
    "starve_the_supervisor": (["refused"] * 4, None),
    "wake_the_crash_handler": (["EPERM", "EPERM"], None),
    "outlive_the_supervisor": (["1000", "refused"], None),
    "send_datagram": (["refused", "refused"], None),
    "strange_sockets": (["refused"], None),
    "memory_files": (dict.fromkeys(("memfd_create", "memfd_secret", "userfaultfd"), "EPERM"), None),
    "kernel_doors": ([], None),
    "hidden_kernel_memory": (
        {"xattr": ["ENOSYS"] * 3, "inotify": ["ENOSYS"] * 2, "landlock": ["ENOSYS"] * 3, "buffers": ["refused"] * 2},
        None,
    ),
    "other_tables": (["ENOSYS"] * 4, None),
    "become_root": (["refused", True, True], None),
    "use_setuid_programs": ([False, True], None),
    "resolve_a_name": ("refused", None),
    "reply_equal_to_everything": ([1.0, {"score": 2.0}], None),
    "reply_an_object": ("invalid", "invalid"),
}
SUCCEEDS = [name for name, (_, gain) in REFUSED.items() if gain is not None] + ["connect_home", "connect_abstract"]


@pytest.mark.parametrize("attack", REFUSED)
def test_attack_is_refused(request, shared, host, attack):
    assert gain(call(shared, attack, host, fresh=True)) == expected(request, attack, REFUSED[attack][0])


@pytest.mark.parametrize("attack", SUCCEEDS)
@pytest.mark.parametrize("shared", ["none"], indirect=True)
def test_attack_succeeds_without_a_sandbox(shared, host, attack):
    found = gain(call(shared, attack, host, fresh=True))
    assert found == REFUSED[attack][1] or (REFUSED[attack][1] is ANYTHING and found != REFUSED[attack][0])


@pytest.mark.parametrize(
    ("attack", "sentence"),
    [
        ("reply_nan", "it has NaN, which is not a number"),
        ("reply_infinity", "it has 1e999, which is too large for a number"),
        ("reply_twin_keys", "it has the same key twice"),
        ("reply_deep", "it is nested deeper than 64 levels"),
        ("reply_brackets", "it has 2000002 brackets, more than 1000000"),
        ("reply_long_number", "Exceeds the limit"),
        ("reply_pickle", "it is not UTF-8"),
    ],
)
@SHARED_BY_ONE_KERNEL
def test_forged_json_is_refused(shared, host, attack, sentence):
    reply = call(shared, attack, host, fresh=True)
    assert reply.failure == ""
    with pytest.raises(ValueError, match=sentence):
        values.parse(reply.value)


def failed_in_time(session, attack, host):
    """The reply that fails of what comes when a thread of the program gets to it: on a busy machine not at once."""
    until = time.monotonic() + PATIENCE
    while not (reply := call(session, attack, host)).failure and time.monotonic() < until:
        time.sleep(0.1)
    return reply


@ONE_KERNEL_AND_NONE
def test_reply_that_nobody_asked_for_is_invalid(session, host):
    assert call(session, "reply_in_advance", host).value == b'"armed"'
    reply = failed_in_time(session, "reply_in_advance", host)
    assert (reply.failure, reply.value) == ("invalid", b"")


@ONE_KERNEL_AND_NONE
def test_second_reply_is_invalid(session, host):
    assert failed_in_time(session, "reply_twice", host).failure == "invalid"


@pytest.mark.parametrize("shared", [*JAILS, NONE], indirect=True)
def test_patched_clocks_change_no_figure(shared, host):
    attacks = ("work", "patch_the_library", "work", "work")
    first, patched, *others = [call(shared, attack, host, fresh=True).usage for attack in attacks]
    honest = [first, *others]  # neighbours can only make it dearer
    assert patched.cpu > min(each.cpu for each in honest) / 3
    assert patched.wall > min(each.wall for each in honest) / 3


@SHARED_BY_ONE_KERNEL
def test_escape_codes_do_not_reach_the_terminal(shared, host):
    detail = call(shared, "escape_codes", host).detail
    assert "evil" in detail
    assert all(character.isprintable() or character == "\n" for character in detail)


@pytest.mark.parametrize("name", APART)
def test_candidates_at_the_same_time_do_not_find_each_other(providers, host, name):
    sandbox = providers(name)
    with sandbox.open(FILES, TIGHT) as one, sandbox.open(FILES, TIGHT) as other:
        place = gain(call(one, "hide_a_file", host))
        assert gain(call(other, "find_neighbours", place)) == []


@BOTH
def test_daemon_ends_with_the_session(session, host):
    assert call(session, "leave_a_daemon", host).value == b'"left"'


def test_output_between_calls_is_limited(session, host):
    assert call(session, "output_after_the_reply", host).value == b'"started"'
    assert failed_in_time(session, "output_after_the_reply", host).failure == "output-limit"
    assert len(session.output()[0]) < TIGHT.output + 100


def test_memory_is_limited_in_commands(session, host):
    done = session.run(["sh", "-c", "a=xxxxxxxxxxxxxxxx; while :; do a=$a$a; done"])
    assert done.code != 0
    grow = "kept = []\nwhile True: kept.append(bytearray(1000000))"
    done = session.run(["python3", "-c", grow])
    assert (done.code, done.breach) == (None, "out-of-memory")


@pytest.mark.parametrize("session", ONE_KERNEL, indirect=True)
def test_moved_folder_misleads_nobody(session, host):
    assert call(session, "replace_the_folder", host).value == b'"replaced"'
    done = session.run(["cat", "data"], files={"data": b"honest"}, out=["data"])
    assert (done.stdout, done.files) == (b"honest", {"data": b"honest"})


TRICKS = "ln -s {secret} link; ln {secret} hard; mkfifo fifo; mkdir folder; ln -s / up; echo ok > file"


@pytest.mark.parametrize("session", [*APART, "none"], indirect=True)
def test_only_regular_files_of_the_folder_come_back(request, session, host):
    names = ["link", "fifo", "folder", "up/etc/passwd", "up/etc/group", "file"]
    if "runsc" in request.node.callspec.id:  # gVisor goes through links to folders, as this user
        names = [name for name in names if not name.startswith("up/")]
    done = session.run(["sh", "-c", TRICKS.format(secret=host["secret"])], out=names)
    assert done.files == {"file": b"ok\n"}


@ONE_KERNEL_AND_NONE
def test_file_too_large_to_come_back_is_a_breach(session, host):
    done = session.run(["truncate", "-s", "20M", "big"], out=["big"])
    assert (done.breach, done.files) == ("output-limit", {})


@NONE_IS_SLOW
@pytest.mark.slow
def test_cpu_of_children_that_vanish_is_charged(session, host):
    """A cgroup sees all of their 0.6 s; samples, which come late on a busy machine, see most of it at some time."""
    idle = session.call("attacks:honest", HONEST).usage.cpu
    children = {**host, "children": 3, "seconds": 0.2}
    wait_until(lambda: call(session, "children_that_vanish", children).usage.cpu > 0.2 + idle, "a charge")


@pytest.mark.parametrize("session", JAILS[2:3], indirect=True)
def test_cgroup_sees_swarms_of_children_that_vanish(session, host):
    reply = call(session, "children_that_vanish", {**host, "children": 100, "seconds": 0.005})
    assert reply.usage.cpu > 0.5


def expected(request: pytest.FixtureRequest, attack: str, usual: Any) -> Any:
    names = (*kinds(), "sampled", "runsc")
    provider = next(name for name in names if name in request.node.callspec.id)
    return EXCEPTIONS.get((attack, provider), usual)


def gain(reply: CallReply) -> Any:
    """What an attack got, or how it ended."""
    return reply.failure or values.parse(reply.value)


def left_behind(identity: dict[str, Any], provider: str) -> list[str]:
    """Processes and folders of a session that still exist; the next one's may have the number of its namespace."""
    if provider in ("bubblewrap", "sampled"):
        alive = [p.parents[1] for p in _proc("ns/pid") if _link(p) == identity["namespace"]]
        return [str(p) for p in alive if _born(p) < identity["ended"]]
    if provider in ("docker", "runsc"):
        return [str(p) for p in _proc("status") if f"\nUid:\t{identity['user']}\t" in _text(p)]
    folders = [identity["box"]] if Path(identity["box"]).exists() else []
    return folders + [str(p.parent) for p in _proc("environ") if identity["box"] in _text(p)]


def _proc(name: str) -> list[Path]:
    return [p / name for p in Path("/proc").iterdir() if p.name.isdigit()]


def _link(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError:
        return ""


def _born(process: Path) -> float:
    """Seconds after the machine's start."""
    fields = _text(process / "stat").rpartition(")")[2].split()
    return int(fields[19]) / os.sysconf("SC_CLK_TCK") + 0.01 if fields else math.inf


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


@pytest.mark.slow
def test_the_documentation_names_every_exception_and_only_tests_that_exist():
    text = (ROOT / "docs/security.md").read_text()
    assert [attack for attack, _ in EXCEPTIONS if f"`{attack}`" not in text] == []
    tests = "".join(file.read_text() for file in (ROOT / "tests").rglob("test_*.py"))
    programs = "".join(file.read_text() for file in Path(__file__).parent.glob("*.py"))
    assert [name for name in re.findall(r"`(test_\w+)`", text) if f"def {name}(" not in tests] == []
    assert [name for name in re.findall(r"`(tests/[\w/]+\.py)`", text) if not (ROOT / name).is_file()] == []
    attacks = re.findall(r"`([a-z]+(?:_[a-z0-9]+)+)`", text)
    assert [name for name in attacks if name not in tests and f"def {name}(" not in programs] == []
