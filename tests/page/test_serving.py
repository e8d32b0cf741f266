"""The server of the page as a process: what it prints, and when."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.page.guarding import serving, small_run


@pytest.mark.slow
def test_who_starts_the_server_reads_the_address_while_it_is_at_work_and_can_connect_at_once(tmp_path: Path) -> None:
    with serving(small_run(tmp_path / "own")) as served:
        served.connect().close()
        assert served.process.poll() is None
