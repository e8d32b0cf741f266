"""Control groups for bubblewrap's workers: where they can be had, and that none is left."""

from __future__ import annotations

from pathlib import Path

import pytest

from evogit.sandbox import Limits
from evogit.sandbox.archive import pack
from evogit.sandbox.cgroups import _unified, groups
from evogit.sandbox.providers.bubblewrap import Bubblewrap

NO_PROCESS = 1 << 22  # above the largest process id of Linux
FOUND = groups()
needs_groups = pytest.mark.skipif(not FOUND, reason="no control groups can be had here")


@needs_groups
def test_a_worker_has_a_group_that_goes_with_it_or_with_the_next_engine() -> None:
    assert FOUND
    for parent in set(FOUND.parents.values()):
        (parent / f"evogit-{NO_PROCESS}-1").mkdir()  # which an engine of another test may remove at once
    assert groups()
    left = (folder for parent in FOUND.parents.values() for folder in parent.glob(f"evogit-{NO_PROCESS}-*"))
    assert not list(left)
    sandbox = Bubblewrap()
    with sandbox.open(pack({"m.py": b"def f(): return open('/proc/self/cgroup').read()"}), Limits()) as session:
        own = session.call("m:f", b"{}").value.decode()
        (name,) = {line.rpartition("/")[2] for line in own.strip('"').split("\\n") if "evogit-" in line}
        places = [parent / name for parent in FOUND.parents.values()]
        assert all((place / "cgroup.procs").read_text() for place in places)
    sandbox.close()
    assert not any(place.exists() for place in places)


def test_sampling_goes_on_where_there_are_none() -> None:
    sandbox = Bubblewrap(counted=False)
    assert sandbox.timing == "sampled"
    with sandbox.open(pack({"m.py": b"def f(): return 1"}), Limits()) as session:
        assert session.call("m:f", b"{}").value == b"1"
    sandbox.close()


def test_version_two_is_used_where_the_root_hands_controllers_down(tmp_path: Path) -> None:
    (tmp_path / "cgroup.subtree_control").write_text("cpuset cpu io memory pids\n")
    found = _unified(tmp_path, "/user.slice")
    assert found
    assert found.version == 2
    assert set(found.parents) == {"cpu", "memory", "pids", "cpuset"}
    (tmp_path / "cgroup.subtree_control").write_text("memory pids\n")
    (tmp_path / "user.slice").mkdir()
    assert _unified(tmp_path, "/user.slice") is None
