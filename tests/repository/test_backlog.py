from __future__ import annotations

import pytest

from evogit.repository.journal import CHUNK, Backlog


@pytest.mark.parametrize("amount", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 7])
def test_records_come_out_oldest_first_and_as_they_were(amount: int) -> None:
    records = [
        (f"{number:040x}", "host é", 1_700_000_000 + number, f"größer\n\n{number}\n") for number in range(amount)
    ]
    backlog = Backlog()
    for name, who, when, message in reversed(records):
        backlog.add((name.encode(), who.encode(), when, message.encode()))
    assert len(backlog) == amount
    assert list(backlog) == records
