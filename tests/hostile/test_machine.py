"""Programs that take from the machine beyond their limits, or make it remember, get nothing; each provider is asked."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from evogit.sandbox import CallReply, Environment, Limits
from evogit.sandbox.archive import pack
from evogit.sandbox.cgroups import groups
from evogit.sandbox.providers.bubblewrap import Bubblewrap
from evogit.sandbox.session import Sandbox, Session

from .conftest import APART, JAILS

FILES = pack({"machine.py": Path(__file__).with_name("machine.py").read_bytes()})
TIGHT = Limits(wall=30, cpu=20, memory=64 << 20, processes=40, disk=30 << 20)


def call(session: Session, attack: str, *args: Any, **options: Any) -> CallReply:
    return session.call(f"machine:{attack}", json.dumps({"args": args}).encode(), **options)


def gain(reply: CallReply) -> Any:
    return reply.failure or json.loads(reply.value)


@pytest.fixture(scope="module", params=APART)
def shared(request: Any, providers: Callable[[str], Sandbox]) -> Iterator[tuple[str, Session]]:
    """One session for all attacks that leave it working."""
    with providers(request.param).open(FILES, TIGHT) as session:
        yield request.param, session


REFUSED: dict[str, Any] = {
    "drop_pages": False,
    "ask_for_pages": {
        "nowait": "refused",
        "page out": "refused",
        "cold": "refused",
        "mincore": "ENOSYS",
        "cachestat": "ENOSYS",
    },
    "reserved_pages": ["refused"] * 4,
    "files_control": ["refused"] * 4,
    "queued_signals": 1024,
    "timers": 1024,
    "raise_the_limit_of_signals": "refused",
    "old_calls": ["ENOSYS"],
    "keep_siblings_idle": False,
    "pipes_in_flight": 256,
}
EXCEPTIONS: dict[tuple[str, str], Any] = {
    ("timers", "runsc"): 2_000,
    ("old_calls", "runsc"): ["EBADF"],
    ("pipes_in_flight", "runsc"): 1600,
}
"""What gVisor does otherwise: it takes its own memory for it, and 32-bit calls for others of its own."""


@pytest.mark.parametrize("attack", REFUSED)
def test_the_machine_gives_nothing_away(shared: tuple[str, Session], attack: str) -> None:
    name, session = shared
    expected = EXCEPTIONS.get((attack, name), REFUSED[attack])
    found = gain(call(session, attack, fresh=True))
    assert found == expected or (isinstance(expected, int) and 0 < found <= expected)


UNSEEN = {
    "map_a_file_everywhere": [],
    "watch_everything": ["sampled", "runsc"],
    "look_up_names": ["sampled", "runsc"],
}
"""Memory of the kernel -> where no limit sees it; docs/security.md has the measured amounts."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("attack", "name"),
    [
        pytest.param(attack, *(each.values if hasattr(each, "values") else (each,)), marks=getattr(each, "marks", ()))
        for attack, unseen in UNSEEN.items()
        for each in JAILS
        if (each.values[0] if hasattr(each, "values") else each) not in unseen
    ],
)
def test_memory_of_the_kernel_is_memory(providers: Callable[[str], Sandbox], attack: str, name: str) -> None:
    if name == "bubblewrap" and not groups():
        pytest.skip("no control groups can be had here")
    with providers(name).open(FILES, TIGHT) as session:
        assert call(session, attack).failure == "out-of-memory"
    with providers(name).open(FILES, TIGHT) as session:
        assert gain(call(session, "honest", 2, 3)) == 5


@pytest.mark.slow
@pytest.mark.skipif(not groups(), reason="no control groups can be had here")
def test_work_in_children_that_nobody_waits_for_is_charged_in_bubblewrap(providers: Callable[[str], Sandbox]) -> None:
    sandbox = providers("bubblewrap")
    assert sandbox.timing == "counted"
    with sandbox.open(FILES, TIGHT) as session:
        assert call(session, "swarm", 60, 0.005).usage.cpu > 0.9 * 60 * 0.005


@pytest.mark.parametrize("counted", [True, False])
def test_an_exclusive_program_reaches_no_other_core(counted: bool) -> None:
    if (os.cpu_count() or 1) < 2:
        pytest.skip("there is one core")
    sandbox = Bubblewrap(Environment(exclusive=True), counted=counted)
    try:
        with sandbox.open(FILES, TIGHT) as session:
            assert len(gain(call(session, "reach_other_cores"))) == 1
    finally:
        sandbox.close()


@pytest.mark.slow
@pytest.mark.skipif(not groups(), reason="no control groups can be had here")
def test_busy_sessions_next_door_take_no_more_than_one_share(providers: Callable[[str], Sandbox]) -> None:
    """Twelve of them on every core would leave a thirteenth; as one group they leave a half."""
    sandbox = providers("bubblewrap")
    with sandbox.open(FILES, TIGHT) as one, sandbox.open(FILES, TIGHT) as other:
        alone = gain(call(one, "work"))
        call(other, "sessions", 12 * (os.cpu_count() or 1))
        assert gain(call(one, "work")) < 6 * alone
