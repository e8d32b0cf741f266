"""Tar archives of a candidate's files, and the checked list of entries that a supervisor unpacks."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from evogit.core import SandboxError
from evogit.sandbox import FolderEntry

PAGE = 4096  # bytes that a tmpfs gives out at once


def pack(files: Mapping[str, bytes]) -> bytes:
    """A tar archive of plain files, path -> content."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for path, content in files.items():
            member = tarfile.TarInfo(path)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return archive.getvalue()


def archive_of(entries: Sequence[FolderEntry], contents: bytes) -> bytes:
    """Write entries as a tar archive, the inverse of `entries_of`. Raises SandboxError if a path leaves the folder."""
    _check_entries(entries)
    archive, position = io.BytesIO(), 0
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for path, kind, size, changed in entries:
            content, position = contents[position : position + size], position + size
            member = tarfile.TarInfo(path)
            member.mtime = changed
            member.mode = 0o755 if kind in ("executable", "folder") else 0o644
            if kind == "link":
                member.type = tarfile.SYMTYPE
                member.linkname = os.fsdecode(content)
            elif kind == "folder":
                member.type = tarfile.DIRTYPE
            else:
                member.size = size
            tar.addfile(member, io.BytesIO(content) if member.isreg() else None)
    return archive.getvalue()


def entries_of(archive: bytes) -> tuple[list[FolderEntry], bytes]:
    """List files, folders and links of a tar archive. Raises SandboxError for other members, or paths that leave it."""
    entries: list[FolderEntry] = []
    contents: list[bytes] = []
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as tar:
            for path, kind, content, changed in _members(tar):
                entries.append((path, kind, len(content), changed))
                contents.append(content)
    except tarfile.TarError as error:
        raise SandboxError(f"expected a tar archive of the candidate's files, got a broken one: {error}") from error
    _check_entries(entries)
    return entries, b"".join(contents)


def disk_of(archive: bytes) -> tuple[int, int]:
    """Bytes and files that an archive's content takes on a tmpfs, folders and what is kept of each file left out."""
    entries, _ = entries_of(archive)
    return sum(-(-size // PAGE) * PAGE for _, _, size, _ in entries), len(entries)


def check_paths(paths: Sequence[str]) -> None:
    """Raise SandboxError for paths that are not inside the folder, below one another, or twice the same."""
    leaves = set(paths)
    if len(leaves) < len(paths):
        raise SandboxError("expected every file once, got two with the same path")
    for path in paths:
        pure = _inside(path)
        if any(str(parent) in leaves for parent in pure.parents):
            raise SandboxError(f"expected a folder above {path!r}, got a file or link")


def laid_over(archive: bytes, folder: str, files: Mapping[str, tuple[bytes, bool]]) -> bytes:
    """Replace a folder of the archive by these files: path -> content, executable. Raises SandboxError if no folder."""
    entries, contents = entries_of(archive)
    kept: list[FolderEntry] = []
    parts: list[bytes] = []
    position = 0
    for entry in entries:
        content, position = contents[position : position + entry[2]], position + entry[2]
        if not covered(entry[0], {folder}) or (not files and entry[0] == folder):
            kept.append(entry)
            parts.append(content)
    kept += [(path, "executable" if runs else "file", len(data), 0) for path, (data, runs) in files.items()]
    return archive_of(kept, b"".join([*parts, *(data for data, _ in files.values())]))


def covered(path: str, roots: Collection[str]) -> bool:
    """Whether a path is one of those roots, or below one."""
    while path and path not in roots:
        path = path.rpartition("/")[0]
    return bool(path)


def check_readonly(changed: Iterable[str], roots: Collection[str]) -> None:
    """Raise SandboxError for a change to what is read-only, to what is below it, or to a folder above it."""
    above = {str(parent) for root in roots for parent in PurePosixPath(root).parents}
    for path in changed:
        if path in above or covered(path, roots):
            raise SandboxError(f"expected no change to what is read-only, got one of {path!r}")


def _inside(path: str) -> PurePosixPath:
    pure = PurePosixPath(path)
    if pure.is_absolute() or str(pure) != path or {"..", "."} & {*pure.parts} or "\0" in path:
        raise SandboxError(f"expected paths relative to the candidate's folder, got {path!r}")
    return pure


def _check_entries(entries: Sequence[FolderEntry]) -> None:
    """Raise SandboxError for invalid paths; folders may be above others."""
    check_paths([path for path, kind, *_ in entries if kind != "folder"])
    for path, kind, *_ in entries:
        if kind == "folder":
            _inside(path)


def _members(tar: tarfile.TarFile) -> Iterator[tuple[str, str, bytes, int]]:
    for member in tar:
        path = member.name.removeprefix("./").rstrip("/")
        if member.isdir() and path in ("", "."):
            continue
        if member.isdir():
            yield path, "folder", b"", 0
        elif member.issym():
            yield path, "link", member.linkname.encode("utf-8", "surrogateescape"), 0
        elif member.isreg() and (file := tar.extractfile(member)):
            yield path, "executable" if member.mode & 0o100 else "file", file.read(), int(member.mtime)
        else:
            raise SandboxError(f"expected files, folders and symbolic links, got another kind of member: {path!r}")
