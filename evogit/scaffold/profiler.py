"""Runs a shell command and prints where its CPU time goes. `evogit init` copies it to `.evogit/profiler.py`.

The Pythons, Nodes and `go test`s that the command starts are profiled by their own means. For anything else there is
callgrind, which takes fifty times as long.
"""

from __future__ import annotations

import json
import os
import pstats
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

MAX_OWN, MAX_TOTAL = 16, 6
"""Rows by own time, then of others by time with all that they call."""
MIN_SHARE = 0.004
"""Share of the time from which on a row is printed."""
LAST_LINES = 20
"""Lines of a failed command that are printed."""

ROOT = Path(__file__).resolve().parent.parent

WRAPPERS = {
    "python3": 'case "$1" in -m|[!-]*) exec {real} -m cProfile -o {folder}/$$.prof "$@";; esac\nexec {real} "$@"\n',
    "node": 'exec {real} --cpu-prof --cpu-prof-dir={folder} "$@"\n',
    "go": '[ "$1" = test ] || exec {real} "$@"\nshift\nexec {real} test -exec {folder}/bin/profiled-test "$@"\n',
    "profiled-test": 'program=$1\nshift\nexec "$program" -test.cpuprofile={folder}/$$.pprof "$@"\n',
}
"""Program -> the script that stands in for it at the beginning of PATH."""
WRAPPERS["python"] = WRAPPERS["python3"]

OUTSIDE = re.compile(r".*/(?:python3[\d.]*|site-packages|packages|dist-packages|node_modules|go/src|pkg/mod)/")
HARNESS = re.compile(
    r"<built-in method (builtins\.(exec|__import__|__build_class__|compile)|marshal\.loads)>|"
    r"runpy\.py|cProfile\.py|<frozen|\(root|\(program|"
    r"(node:internal/modules/.*|evaluate|the benchmark)$"
)


class Row(NamedTuple):
    """A function: its time alone, with all that it calls, how often it ran, and its main callers."""

    name: str
    own: float
    total: float
    calls: int = 0
    callers: tuple[str, ...] = ()


def place(path: str, line: int, name: str) -> str:
    """Return `path:line name`, the path from the repository's root; functions of the evaluator are not named."""
    path = path.removeprefix("file://")
    inside = os.path.relpath(path, ROOT) if path.startswith("/") else path
    if inside.startswith(f"{Path(__file__).parent.name}/"):
        return "the benchmark"
    if inside.startswith("../"):
        inside = OUTSIDE.sub("", path)
    return f"{inside}:{line} {name}" if path not in ("", "~") else name


def python_rows(profiles: list[Path]) -> Iterator[Row]:
    """Read what cProfile left."""
    stats: dict[Any, Any] = pstats.Stats(*map(str, profiles)).stats  # type: ignore[attr-defined]
    for where, (_, calls, own, total, callers) in stats.items():
        order = sorted(callers, key=lambda caller: -callers[caller][3])[:2]
        yield Row(place(*where), own, total, calls, tuple(place(*caller) for caller in order))


def node_rows(profiles: list[Path]) -> Iterator[Row]:
    """Read what `node --cpu-prof` left: a tree of calls, and which node each sample met."""
    own, total, callers = Counter[str](), Counter[str](), defaultdict[str, Counter[str]](Counter)
    for path in profiles:
        profile = json.loads(path.read_text())
        time = Counter[int]()
        for node, passed in zip(profile["samples"], profile["timeDeltas"], strict=True):
            time[node] += passed
        above = {child: each["id"] for each in profile["nodes"] for child in each.get("children", ())}
        frames = {each["id"]: each["callFrame"] for each in profile["nodes"]}
        names = {
            node: place(frame["url"], frame["lineNumber"] + 1, frame["functionName"] or "(anonymous)")
            for node, frame in frames.items()
        }
        for node, passed in time.items():
            own[names[node]] += passed
            if node in above:
                callers[names[node]][names[above[node]]] += passed
            seen, at = set[str](), node
            while at:
                total[names[at]] += passed if names[at] not in seen else 0
                seen.add(names[at])
                at = above.get(at, 0)
    for name in total:
        yield Row(name, own[name], total[name], 0, tuple(each for each, _ in callers[name].most_common(2)))


def go_rows(profiles: list[Path]) -> Iterator[Row]:
    """Read what `go test -cpuprofile` left."""
    command = ["go", "tool", "pprof", "-top", "-filefunctions", "-unit=ms", *map(str, profiles)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    numbers = r"^\s*([\d.]+)(?:ms)?\s+[\d.]+%\s+[\d.]+%\s+([\d.]+)(?:ms)?\s+[\d.]+%\s+(\S+) (\S+)"
    for own, total, name, path in re.findall(numbers, text, re.MULTILINE):
        yield Row(place(path, 0, name).replace(":0 ", " "), float(own), float(total))


def callgrind_rows(files: list[Path]) -> Iterator[Row]:
    """Read what callgrind left of the process that did most."""
    sums = {path: re.findall(r"^(?:summary|totals): (\d+)", path.read_text(), re.MULTILINE) for path in files}
    main = max(files, key=lambda path: max(map(int, sums[path]), default=0))
    own, total = dict[str, float](), dict[str, float]()
    for counts, option in ((own, "--inclusive=no"), (total, "--inclusive=yes")):
        command = ["callgrind_annotate", option, "--threshold=99", str(main)]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        for count, where, name in re.findall(r"^ *([\d,]+) \([^)]*\)  (\S+?):([^\[\n]+)", text, re.MULTILINE):
            function = place(where, 0, name.strip()).replace(":0 ", " ").removeprefix("??? ")
            counts[function] = max(counts.get(function, 0.0), float(count.replace(",", "")))
    for name in own | total:
        yield Row(name, own.get(name, 0.0), total.get(name, 0.0))


def below_callgrind(argv: list[str], folder: Path) -> list[str]:
    """Return the command line that runs another below callgrind, but for compilers."""
    skipped = ",".join(f"*/{name}" for name in ("cc1*", "as", "ld*", "collect2", "rustc", "cargo", "cmake", "ninja"))
    options = ["--tool=callgrind", "--trace-children=yes", f"--trace-children-skip={skipped}", "-q"]
    return ["valgrind", *options, f"--callgrind-out-file={folder}/%p.callgrind", *argv]


def profiled(command: str, folder: Path) -> list[Row]:
    """Run the command with wrappers before the programs that can profile, or below a profiler."""
    wrappers = folder / "bin"
    wrappers.mkdir()
    for name, script in WRAPPERS.items():
        real = shutil.which(name)
        if real or name == "profiled-test":
            wrapper = wrappers / name
            wrapper.write_text(
                "#!/bin/sh\n" + script.format(real=shlex.quote(real or ""), folder=shlex.quote(str(folder)))
            )
            wrapper.chmod(0o755)
    argv = ["sh", "-c", command]
    if not re.search(r"\b(python3?|node|npm|npx|go|pytest)\b", command):
        argv = below_callgrind(argv, folder)
    environment = {**os.environ, "PATH": f"{wrappers}:{os.environ['PATH']}"}
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        ended = subprocess.run(argv, env=environment, stdout=output)
        if ended.returncode:
            output.seek(0)
            print(*output.readlines()[-LAST_LINES:], sep="", file=sys.stderr)
            sys.exit(ended.returncode)
    readers = {".prof": python_rows, ".cpuprofile": node_rows, ".pprof": go_rows, ".callgrind": callgrind_rows}
    for ending, read in readers.items():
        if profiles := sorted(folder.glob(f"*{ending}")):
            return list(read(profiles))
    return []


def main(command: str) -> None:
    """Print the functions that take most, and the main callers of each."""
    with tempfile.TemporaryDirectory() as folder:
        rows = [row for row in profiled(command, Path(folder)) if not HARNESS.search(row.name)]
    whole = sum(row.own for row in rows)
    if not whole:
        sys.exit(f"no profile of {command!r}: expected it to start python3, node or `go test` by these names")
    own = sorted(rows, key=lambda row: -row.own)[:MAX_OWN]
    inner = [row for row in rows if row not in own and (ROOT / re.split("[: ]", row.name)[0]).is_file()]
    rest = sorted(inner, key=lambda row: -row.total)[:MAX_TOTAL]
    print("% of the time alone, with what it calls; function; its main callers")
    for row in (*own, *rest):
        if max(row.own, row.total) >= MIN_SHARE * whole:
            calls = f" x{row.calls:,}" if row.calls else ""
            callers = f" <- {', '.join(row.callers)}" if row.callers else ""
            print(f"{100 * row.own / whole:5.1f} {min(100 * row.total / whole, 100):5.1f}  {row.name}{calls}{callers}")


if __name__ == "__main__":
    main(sys.argv[1])
