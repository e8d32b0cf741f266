"""The supervisor's arithmetic on what the kernel says: no counter is believed beyond its bound."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from evogit.content import content

TABLE = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:9C41 00000000:0000 0A 00000000:00000080 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0
   1: 0100007F:9C42 0100007F:9C41 02 0236614E:00000000 01:00000014 00000000     0        0 2 2 0 20 0 0 10 -1
   2: 0100007F:9C43 0100007F:9C41 02 F236614E:00000000 01:00000014 00000000     0        0 3 2 0 20 0 0 10 -1
   3: 0100007F:9C41 0100007F:9C44 01 FFFFFFFF:00000010 01:00000014 00000000     0        0 4 2 0 20 0 0 10 -1
   4: 0100007F:9C44 0100007F:9C41 01 00001000:00000200 01:00000014 00000000     0        0 5 2 0 20 0 0 10 -1
   5: 0100007F:9C45 0100007F:9C41 04 20000000:00000000 01:00000014 00000000     0        0 6 2 0 20 0 0 10 -1
"""
"""Row 1 was read from a kernel 6.18 under a program that opens one connection after the other."""


@pytest.fixture
def supervisor(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Imports a module of the supervisor."""
    monkeypatch.syspath_prepend(str(content("sandbox")))  # type: ignore[no-untyped-call]

    def load(name: str) -> ModuleType:
        return __import__(name)

    return load


def test_queues_of_sockets_that_connect_and_numbers_below_zero_do_not_count(supervisor: Any) -> None:
    buffers = 10 << 20
    assert supervisor("jail_meter").queues(TABLE, buffers) == 0x10 + 0x1000 + 0x200 + buffers


@pytest.mark.parametrize(
    ("wait", "cpu", "cores", "late"),
    [
        (3.0, 1.0, 2, 3.0),  # one thread, which had a core for a quarter of the time
        (28.0, 4.0, 1, 0.0),  # eight threads, which had the one core that they may use
        (30.0, 2.0, 1, 2.0),  # the same, on a core that others had for half of the time
        (25.6, 230.4, 64, 0.4),  # 64 threads on 64 cores, each late by a tenth
        (28.0, 2.0, 0.5, 0.0),  # a container's half of a core, all of which it had
        (0.0, 0.1, 2, 0.0),  # asleep
    ],
)
def test_a_session_is_late_by_what_others_had_of_its_cores(
    supervisor: Any, wait: float, cpu: float, cores: float, late: float
) -> None:
    assert supervisor("jail_waits").delay(wait, cpu, 4.0, cores) == pytest.approx(late)
