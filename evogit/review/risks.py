"""What a person should look at before a machine's change is theirs: a checklist, not a proof of anything."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import PurePosixPath

from evogit.repository import EXECUTABLE, FILE, Repository, TreeEntry
from evogit.text import escaped

LARGE = 400
"""Changed lines above which a diff is called large."""

_DEPENDENCIES = re.compile(
    r"pyproject\.toml|setup\.(py|cfg)|requirements[^/]*\.txt|Pipfile(\.lock)?|poetry\.lock|uv\.lock|package(-lock)?\.json"
    r"|yarn\.lock|pnpm-lock\.yaml|Cargo\.(toml|lock)|go\.(mod|sum)|Gemfile(\.lock)?|pom\.xml|build\.gradle(\.kts)?"
    r"|Makefile|CMakeLists\.txt|Dockerfile"
)
_TEST = re.compile(r"(^|/)(tests?|spec|__tests__)/|(^|/)test_[^/]*$|[._](test|spec)\.\w+$|_test\.\w+$")
_TOOLS = re.compile(
    r"(^|/)\.|(^|/)(conftest|sitecustomize|usercustomize|noxfile)\.py$|\.pth$"
    r"|(^|/)(Jenkinsfile|Rakefile|[Jj]ustfile|tox\.ini|pytest\.ini)$"
)
_IMPORT = re.compile(
    rb"""^\s*(?:from\s+([\w.]+)\s+import\b|import\s+([\w.]+(?:\s*,\s*[\w.]+)*)|\#\s*include\s*[<"]([^>"]+)|use\s+(\w+)::)"""
    rb"""|\brequire\(\s*['"]([^'"]+)|^\s*(?:import|export)\b[^'"]*['"]([^'"]+)""",
)
_USES = {
    "the network": re.compile(
        rb"\b(sockets?|urllib|http\.client|requests|aiohttp|httpx|ftplib|smtplib|XMLHttpRequest|WebSocket)\b"
        rb"|\bfetch\s*\(|\bconnect\s*\(|https?://|\b(curl|wget)\b"
    ),
    "other programs": re.compile(
        rb"\b(subprocess|child_process|os\.system|pty)\b|\b(popen|system|fork|execv[pe]*|execl[pe]*|spawn\w*)\s*\("
    ),
    "code generated at run time": re.compile(
        rb"(?<![\w.])(eval|exec|compile|__import__)\s*\(|\bnew\s+Function\b|\b(importlib|pickle|marshal|ctypes|dlopen)\b"
    ),
    "the environment": re.compile(rb"\b(os\.environ|getenv|process\.env)\b"),
}


def risks(repository: Repository, before: str, after: str) -> list[str]:
    """What in the change from one tree to another deserves a look, one sentence each."""
    old, new = ({entry.path: entry for entry in repository.trees.entries(tree)} for tree in (before, after))
    found, added, removed = list[str](), 0, 0
    for path in repository.changed_paths(before, after):
        was, now = _content(repository, old.get(path)), _content(repository, new.get(path))
        found += _of_entry(path, old.get(path), new.get(path))
        if b"\0" in was + now:
            found.append(f"{path} is binary: no diff shows what it does")
            continue
        old_lines, new_lines = Counter(was.splitlines()), Counter(now.splitlines())
        fresh, gone = new_lines - old_lines, old_lines - new_lines
        added, removed = added + fresh.total(), removed + gone.total()
        found += _of_lines(path, was, list(fresh))
    if added + removed > LARGE:
        found.append(f"the change is large: {added:,} lines added, {removed:,} removed")
    return found


def _content(repository: Repository, entry: TreeEntry | None) -> bytes:
    return repository.trees.blob(entry.blob) if entry and entry.is_file else b""


def _of_entry(path: str, old: TreeEntry | None, new: TreeEntry | None) -> Iterator[str]:
    if new and not new.is_file:
        yield f"{path} is a link or a submodule"
    if new and new.mode == EXECUTABLE and (old is None or old.mode != EXECUTABLE):
        yield f"{path} becomes executable"
    if old and new and old.mode == EXECUTABLE and new.mode == FILE:
        yield f"{path} is no longer executable"
    if old and _TEST.search(path):
        yield f"the test {path} is {'changed' if new else 'deleted'}"
    if new and _TOOLS.search(path):
        yield f"{path} is read by tools, such as Git, CI or a test runner"
    if _DEPENDENCIES.fullmatch(PurePosixPath(path).name):
        yield f"{path} determines what is installed or built"


def _of_lines(path: str, was: bytes, fresh: list[bytes]) -> Iterator[str]:
    known = {_module(line) for line in was.splitlines()}
    modules = [module for line in fresh if (module := _module(line)) and module not in known]
    if modules:
        yield f"{path} imports {', '.join(dict.fromkeys(modules))}"
    for what, pattern in _USES.items():
        if line := next((line for line in fresh if pattern.search(line)), None):
            yield f"{path} may use {what}: {line.strip().decode(errors='replace')[:80]}"
    if any(escaped(text) != text for text in (line.decode(errors="replace") for line in fresh)):
        yield f"{path} contains invisible characters, or ones that reverse text direction"


def _module(line: bytes) -> str:
    match = _IMPORT.search(line)
    return next(filter(None, match.groups()), b"").decode(errors="replace") if match else ""
