"""What a hostile candidate leaves behind, in memory, files, processes or the kernel, does not reach the next one."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from evogit.sandbox import CallReply, Limits
from evogit.sandbox.archive import pack
from evogit.sandbox.session import Sandbox, Session

from .conftest import JAILS, ONE_KERNEL

FILES = pack({"remains.py": Path(__file__).with_name("remains.py").read_bytes()})
TIGHT = Limits(wall=60, cpu=20, memory=200 << 20, processes=20, disk=200 << 20, output=100_000)


def call(session: Session, function: str, *args: Any) -> CallReply:
    return session.call(f"remains:{function}", json.dumps({"args": args}).encode())


def ask(session: Session, function: str, *args: Any) -> Any:
    reply = call(session, function, *args)
    assert reply.failure == "", reply.detail
    return json.loads(reply.value)


@pytest.fixture(scope="module")
def clean(sandbox: Sandbox) -> Any:
    """What the first candidate of a worker sees."""
    sandbox.close()
    with sandbox.open(FILES, TIGHT) as session:
        return ask(session, "surroundings")


COST_NO_WORKER = ["plant_everywhere", "forbid_everything", "strange_files", "leave_daemons", "leave_sockets"]
"""Files, processes and connections: what can be removed is removed, as a worker is not to be so easily lost."""
REMAINS = [
    *COST_NO_WORKER, "plant_in_shared_memory", "make_immutable", "move_the_box_away", "keep_unlinked_files",
    "leave_zombies", "multiply_until_killed", "wait_for_the_next", "lock_files", "leave_messages", "open_terminals",
    "install_a_filter", "change_what_children_inherit", "change_the_supervisors", "change_the_pipes",
    "change_what_is_imported", "ask_to_be_woken", "open_every_device", "write_the_maps", "write_switches_of_the_kernel",
    "name_the_host", "write_the_audit_id",
]  # fmt: skip


def test_the_next_candidate_finds_the_world_as_it_was(request, sandbox, clean):
    """One candidate after the other looks around, and leaves something for the next one."""
    before, workers = "nothing", set()
    for remains in [*REMAINS, ""]:
        with sandbox.open(FILES, TIGHT) as session:
            assert (before, ask(session, "surroundings")) == (before, clean)
            assert (before, ask(session, "honest", 2, 3)) == (before, 5)
            if remains in COST_NO_WORKER and "runsc" not in request.node.callspec.id:  # it has no number that stays
                workers.add(ask(session, "worker"))
            if remains:
                session.call(f"remains:{remains}", b"{}", fresh=True)
        before = remains
    assert len(workers) < 2


@pytest.mark.parametrize("remains", ["dig_deep", pytest.param("many_files", marks=pytest.mark.slow)])
@pytest.mark.parametrize("sandbox", ONE_KERNEL, indirect=True)  # it takes gVisor seconds to make them
def test_folders_of_any_depth_and_size_are_gone(sandbox, clean, remains):
    workers = set()
    with sandbox.open(FILES, TIGHT) as session:
        workers.add(ask(session, "worker"))
        call(session, remains)
    with sandbox.open(FILES, TIGHT) as session:
        assert ask(session, "surroundings") == clean
        assert ask(session, "honest", 2, 3) == 5
        workers.add(ask(session, "worker"))
    assert len(workers) == 1 or remains == "many_files"


def test_the_supervisor_cannot_be_changed(sandbox):
    with sandbox.open(FILES, TIGHT) as session:
        assert ask(session, "change_the_supervisors") == []


@pytest.mark.parametrize("sandbox", ONE_KERNEL, indirect=True)
def test_what_can_be_written_once_was_written(sandbox):
    with sandbox.open(FILES, TIGHT) as session:
        assert [each for each in ask(session, "write_the_maps") if isinstance(each, int) and each > 5] == []
        assert str(ask(session, "write_the_audit_id")).startswith("refused")
        own = [
            path for path in ask(session, "write_switches_of_the_kernel") if not path.startswith("/proc/sys/kernel/ns")
        ]
        assert own == []


def test_memory_holds_nothing_of_an_earlier_session(sandbox):
    secret = f"ECRET case {time.monotonic_ns()}"
    with sandbox.open(FILES, TIGHT) as session:
        ask(session, "say", "S" + secret)
        assert ask(session, "find", "S", secret) > 0
    with sandbox.open(FILES, TIGHT) as session:
        assert ask(session, "find", "S", secret) == 0


@pytest.mark.parametrize("sandbox", ONE_KERNEL, indirect=True)
def test_memory_holds_no_item_to_come(sandbox):
    tail = str(time.monotonic_ns())
    items = [f"{digit}{tail}".encode() for digit in (1, 3, 2)]
    with sandbox.open(FILES, TIGHT) as session:
        assert json.loads(list(session.stream("remains:find_while_fed", items))[0].value) == [0, 0]
        broken = list(session.stream("remains:exit_like_a_stopped_container", items))
        assert broken[0].failure == "crashed"
        assert json.loads(list(session.stream("remains:find_while_fed", items[:1]))[0].value) == [0, 0]


def test_hashes_and_random_numbers_repeat_and_true_randomness_does_not(sandbox):
    numbers, hashes = [], set()
    for seed in (1, 1, 2):
        with sandbox.open(FILES, TIGHT, seed=seed) as session:
            numbers.append(ask(session, "random_numbers"))
            hashes.add(ask(session, "surroundings")["names"][-1])
        if len(numbers) == 1:
            sandbox.close()  # the next ones come from another worker
    first, again, other = numbers
    assert first[:2] == again[:2] != other[:2]
    assert first[2] != again[2]
    assert len(hashes) == 1


FOR_NOTHING = {
    "exit_like_a_stopped_container": "crashed",
    "orphans_that_exit_like_it": "crashed",
    "sibling_of_the_supervisor": "",
    "orphan_with_a_signal": "",
    "signal_everybody": "",
    "be_spared_when_memory_runs_out": "out-of-memory",
}


@pytest.mark.parametrize("attack", FOR_NOTHING)
@pytest.mark.parametrize(
    "sandbox", JAILS, indirect=True
)  # that memory ran out is seen in other ways where it is sampled
@pytest.mark.slow
def test_nobody_is_tried_again_for_nothing(request, sandbox, attack):
    """No candidate can look like a lost sandbox, which is a fault of the daemon: that would raise SandboxLostError."""
    with sandbox.open(FILES, TIGHT) as session:
        failure = call(session, attack).failure
    gvisor = attack == "sibling_of_the_supervisor" and "runsc" in request.node.callspec.id  # hits itself
    assert failure == ("crashed" if gvisor else FOR_NOTHING[attack])
    with sandbox.open(FILES, TIGHT) as session:
        assert ask(session, "honest", 2, 3) == 5
