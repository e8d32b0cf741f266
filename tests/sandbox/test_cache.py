from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from evogit.content import content
from evogit.core import SandboxError
from evogit.sandbox.cache import cache_folder, recall, remember
from evogit.sandbox.interpreter import prepare


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "evogit" / "compiled"


def test_what_was_remembered_holds_until_something_changes(cache: Path, tmp_path: Path) -> None:
    libraries = tmp_path / "libraries"
    libraries.mkdir()
    found = {"folders": {str(libraries): libraries.stat().st_mtime_ns}, "version": [3, 11]}
    assert recall("python", "key") is None
    assert remember("python", "key", found) == found
    assert recall("python", "key") == found
    assert recall("python", "other") is None
    assert recall("other", "key") is None
    (libraries / "new.dist-info").mkdir()
    assert recall("python", "key") is None
    python = Path(sys.executable).resolve()
    assert prepare(python, (), content("sandbox")) == prepare(python, (), content("sandbox"))
    assert len([*cache.iterdir()]) == 2


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"key": "key", "found": []}', b"\xff"])
def test_what_is_damaged_is_made_again(cache: Path, content: bytes) -> None:
    remember("python", "key", {"folders": {}})
    (file,) = cache.iterdir()
    file.write_bytes(content)
    assert recall("python", "key") is None


def test_nothing_is_remembered_where_nothing_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert remember("python", "key", {"folders": {}}) == {"folders": {}}
    assert recall("python", "key") is None


def test_a_cache_that_everybody_may_write_to_is_refused(cache: Path) -> None:
    cache.parent.mkdir()
    assert cache_folder() == cache.parent
    cache.parent.chmod(0o777)
    with pytest.raises(SandboxError, match="XDG_CACHE_HOME"):
        cache_folder()


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a folder to another user")
@pytest.mark.parametrize("kind", ["folder", "link"])
def test_a_cache_that_another_user_made_is_refused(cache: Path, tmp_path: Path, kind: str) -> None:
    if kind == "folder":
        cache.parent.mkdir()
    else:
        (tmp_path / "mine").mkdir()
        cache.parent.symlink_to(tmp_path / "mine")
    assert cache_folder() == cache.parent
    os.chown(cache.parent, 12345, 12345, follow_symlinks=False)
    with pytest.raises(SandboxError, match="12345"):
        cache_folder()
