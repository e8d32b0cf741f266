"""Three versions of a text as one: `git merge-file`, each conflicting hunk decided or left between markers."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from evogit.repository.conflicts import Choose, Side
from evogit.repository.git import run_git

SHORTEST_MARKER = 7
"""Characters of Git's own markers."""

LONGEST = 2.0
"""Seconds of CPU that one file may take; larger ones than Git merges faster are not given to it."""


def merge_hunks(scratch: Path, ours: bytes, base: bytes, theirs: bytes, choose: Choose) -> tuple[bytes, int]:
    """The merged text, and how many hunks `choose` was asked about. `scratch` is a Git directory without settings."""
    size = marker_size(ours, base, theirs)
    text = _merge_file(scratch, (ours, base, theirs), f"--marker-size={size}")
    return choose_hunks(text, size, choose, ends_of(ours, theirs))


def marked_hunks(scratch: Path, ours: bytes, base: bytes, theirs: bytes, size: int) -> bytes:
    """The merged text, conflicts between markers of `size` characters, the base's lines in the middle of each."""
    return _merge_file(scratch, (ours, base, theirs), f"--marker-size={size}", "--diff3")


def _merge_file(scratch: Path, versions: Sequence[bytes], *options: str) -> bytes:
    with _in_memory(*versions) as (paths, descriptors):
        labels = (part for name in ("ours", "base", "theirs") for part in ("-L", name))
        command = ("merge-file", "-p", "-q", *options, *labels, *paths)
        return run_git(scratch, *command, pass_fds=descriptors, ok=range(128), seconds=LONGEST).stdout


def ends_of(ours: bytes, theirs: bytes) -> dict[Side, bool]:
    """Whose last line has an end."""
    return {"ours": ours.endswith(b"\n"), "theirs": theirs.endswith(b"\n")}


def marker_size(*versions: bytes) -> int:
    """A length for conflict markers that no line of the versions begins with."""
    runs = (len(run) for version in versions for run in re.findall(rb"(?m)^(?:<+|=+|>+|\|+)", version))
    return max(SHORTEST_MARKER, *runs, 0) + 1


def count_markers(content: bytes, size: int) -> int:
    """Lines that begin with as many marker characters: four for each conflict that `marked_hunks` leaves."""
    starts = tuple(character * size for character in (b"<", b"|", b"=", b">"))
    return sum(line.startswith(starts) for line in content.split(b"\n"))


def choose_hunks(text: bytes, size: int, choose: Choose, ends: Mapping[Side, bool]) -> tuple[bytes, int]:
    """Replace each conflict of a text with markers of `size` by the side that is chosen.

    `ends` says whose last line has an end, as Git gives one to each that is in conflict.
    """
    ours, middle, theirs = b"<" * size, b"=" * size, b">" * size
    result: list[bytes] = []
    sides: dict[Side, list[bytes]] = {"ours": [], "theirs": []}
    into, hunks, last = result, 0, True
    for line in _lines(text):
        if line.startswith(ours):
            sides = {"ours": [], "theirs": []}
            into = sides["ours"]
        elif line.startswith(middle):
            into = sides["theirs"]
        elif line.startswith(theirs):
            side = choose()
            result += sides[side]
            into, hunks, last = result, hunks + 1, ends[side]
        else:
            into.append(line)
            last = last or into is result
    merged = b"".join(result)
    return (merged if last else merged.removesuffix(b"\n").removesuffix(b"\r")), hunks


def _lines(text: bytes) -> list[bytes]:
    """Lines as Git sees them: only a line feed ends one."""
    return [line for line in re.split(rb"(?<=\n)", text) if line]


@contextmanager
def _in_memory(*versions: bytes) -> Iterator[tuple[list[str], Sequence[int]]]:
    """Versions as files that exist in memory only: candidates' code never touches the host's file system."""
    descriptors = [os.memfd_create("evogit-merge", 0) for _ in versions]
    try:
        for descriptor, version in zip(descriptors, versions, strict=True):
            with os.fdopen(os.dup(descriptor), "wb") as file:
                file.write(version)
        yield [f"/proc/self/fd/{descriptor}" for descriptor in descriptors], descriptors
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
