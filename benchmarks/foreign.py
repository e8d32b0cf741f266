"""Compares the scores of other systems' tasks, read as they are, with what these systems measure themselves.

    python benchmarks/foreign.py FOLDER [--environment DIR] [--only WORD]

FOLDER holds tasks of OpenEvolve, ShinkaEvolve and SkyDiscover at any depth. Their packages and what the tasks need are
installed into an environment of their own at DIR. Each evaluator is run there on its seed twice: what differs between
the two, or is called a time, is noise; all other numbers must be ours to a relative 1e-9. SkyDiscover's containers are
run without one, with their absolute path replaced in a copy.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "sandbox" / "foreign"))

from evaluate_container import takes_mode_first  # noqa: E402

from evogit.adopt import ForeignTask, find_task, recognise  # noqa: E402
from evogit.core import EvoGitError  # noqa: E402
from evogit.review.checking import judge_seed  # noqa: E402

SYSTEMS = ("openevolve", "shinka-evolve")
TIMES = re.compile(r"time|seconds|duration|elapsed")
"""Names of numbers that no second measurement gives again."""
LONGEST = 900.0
"""Seconds for one evaluation of theirs."""
CLOSE = 1e-9

OPENEVOLVE = """
import asyncio, json, sys
from openevolve.config import load_config
from openevolve.evaluator import Evaluator
from openevolve.utils.metrics_utils import get_fitness_score
program, evaluator, config = sys.argv[1:]
config = load_config(config or None)
judge = Evaluator(config.evaluator, evaluator, None, None, suffix="." + program.rpartition(".")[2])
metrics = asyncio.run(judge.evaluate_program(open(program).read(), "seed"))
if metrics.get("timeout"):
    sys.exit("timeout")
metrics["combined_score"] = get_fitness_score(metrics, config.database.feature_dimensions)
print(json.dumps({k: float(v) for k, v in metrics.items() if isinstance(v, (int, float))}))
"""


@dataclass(frozen=True)
class Row:
    """What came of one task."""

    system: str
    task: str
    reading: float
    ours: str
    theirs: str
    verdict: str


def main() -> int:
    """Print the table; 1 where a deterministic number differs, or a task does not start."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--environment", type=Path, default=Path(tempfile.gettempdir()) / "evogit-foreign")
    parser.add_argument("--only", default="", metavar="WORD", help="Tasks whose path has this word.")
    parser.add_argument("--without", default="", metavar="WORD", help="No task whose path has this word.")
    parser.add_argument("--sandbox", default="bubblewrap")
    given = parser.parse_args()
    places = [place for place in tasks_below(given.folder) if given.only in str(place) and not without(given, place)]
    found = {place: task for place in places if (task := recognise(place))}
    python = installed(given.environment, {name for task in found.values() for name in task.packages})
    print("| system | task | read | EvoGit, sandboxed | its own evaluator | equal |")
    print("|---|---|---|---|---|---|")
    fine = True
    for place, task in found.items():
        row = compared(place, task, python, given.sandbox)
        fine &= not row.verdict.startswith(("NO", "fails"))
        reading = f"{1000 * row.reading:.0f} ms"
        print(f"| {row.system} | {row.task} | {reading} | {row.ours} | {row.theirs} | {row.verdict} |", flush=True)
    return 0 if fine else 1


def without(given: argparse.Namespace, place: Path) -> bool:
    """Whether a task is left out."""
    return bool(given.without) and given.without in str(place)


def tasks_below(folder: Path) -> Iterator[Path]:
    """Folders that are a task of another system, but none within one."""
    if recognise(folder):
        yield folder
        return
    for place in sorted(path for path in folder.iterdir() if path.is_dir()):
        yield from tasks_below(place)


def installed(folder: Path, packages: set[str]) -> Path:
    """The Python of an environment with the other systems and what the tasks need."""
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    done = subprocess.run([python, "-m", "pip", "install", "-q", *SYSTEMS, *sorted(packages)], check=False)
    if done.returncode:
        sys.exit("cannot install the other systems; see what pip says above")
    return python


def compared(place: Path, task: ForeignTask, python: Path, sandbox: str) -> Row:
    """One row of the table."""
    began = time.perf_counter()
    recognise(place)
    reading = time.perf_counter() - began
    ours, status = asyncio.run(sandboxed(place, sandbox))
    with tempfile.TemporaryDirectory() as scratch:
        first, second = (directly(place, task, python, Path(scratch) / str(n)) for n in range(2))
    return Row(
        task.system, task.name, reading, shown(ours) or status, shown(first), verdict(ours, first, second, status)
    )


def shown(metrics: Mapping[str, float]) -> str:
    """The score, with as many digits as there are."""
    return repr(metrics["combined_score"]) if "combined_score" in metrics else ""


def verdict(ours: Mapping[str, float], first: Mapping[str, float], second: Mapping[str, float], status: str) -> str:
    """Whether what is no noise is the same."""
    if not first or not ours:
        both = not first and not ours
        return f"both fail ({status})" if both else f"fails {'beside' if first else 'there'} ({status})"
    steady = [name for name in first if first[name] == second.get(name) and not TIMES.search(name)]
    noisy = len(first) - len(steady)
    wrong = [name for name in steady if name not in ours or not math.isclose(ours[name], first[name], rel_tol=CLOSE)]
    if wrong:
        return "NO: " + ", ".join(f"{name} {first[name]!r}, here {ours.get(name)!r}" for name in wrong)
    left = f"; {noisy} noisy" if noisy else ""
    return f"{len(steady)} of {len(steady)} numbers{left}" if steady else f"all {noisy} numbers are noisy"


async def sandboxed(place: Path, sandbox: str) -> tuple[dict[str, float], str]:
    """What EvoGit measures for the seed, and how that ended."""
    try:
        judged = [each async for each in judge_seed(find_task(str(place)), ["train"], sandbox)][0]
    except EvoGitError as error:
        return {}, str(error).splitlines()[0]
    if not judged.evaluation.ok:
        return {}, f"{judged.evaluation.status}: {judged.evaluation.reason}"
    return {**judged.evaluation.cases["command"], **judged.evaluation.metrics}, "ok"


def directly(place: Path, task: ForeignTask, python: Path, scratch: Path) -> dict[str, float]:
    """What the system's own code measures for the seed, outside of any sandbox; empty where it fails."""
    shutil.copytree(place, scratch)
    program = str(scratch / task.editable[0])
    if task.system == "ShinkaEvolve":
        given = ["--program_path", program]
        if not Path(program).is_file():
            given = ["--repo_path", laid(scratch / "repository", task)]
        command = [python, "evaluate.py", *given, "--results_dir", str(scratch / "results")]
    elif script := next(scratch.glob("eval*/evaluate.sh"), None):
        rehomed(script.parent, [link.partition("=")[0] for link in task.links])
        given = [program, "train"]
        command = ["bash", str(script), *(reversed(given) if takes_mode_first(script.read_text()) else given)]
    else:
        config = next(iter(sorted(map(str, scratch.glob("config*.yaml")))), "")
        command = [python, "-c", OPENEVOLVE, program, str(scratch / "evaluator.py"), config]
    path = f"{python.parent}:{os.environ['PATH']}"
    try:
        done = subprocess.run(
            command, cwd=scratch, env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=LONGEST
        )
    except subprocess.TimeoutExpired:
        return {}
    if task.system == "ShinkaEvolve":
        return of_shinka(scratch / "results")
    return last_numbers(done.stdout)


def laid(folder: Path, task: ForeignTask) -> str:
    """A folder with the seed's files."""
    for path, (data, _) in task.seed.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return str(folder)


def rehomed(folder: Path, paths: list[str]) -> None:
    """Let the files of a copy name the copy where they name the place in their container."""
    for file in folder.rglob("*"):
        if file.suffix in (".py", ".sh"):
            text = file.read_text()
            for path in paths:
                text = re.sub(rf"(?<![\w/]){re.escape(path)}(?=/)", str(folder), text)
            file.chmod(0o755)
            file.write_text(text)


def of_shinka(results: Path) -> dict[str, float]:
    """Score and public metrics that a ShinkaEvolve evaluator left."""
    try:
        if not json.loads((results / "correct.json").read_text())["correct"]:
            return {}
        metrics = json.loads((results / "metrics.json").read_text())
    except (OSError, ValueError, KeyError):
        return {}
    return numbers({"combined_score": metrics["combined_score"], **(metrics.get("public") or {})})


def last_numbers(text: str) -> dict[str, float]:
    """The numbers of the last line that is a JSON object."""
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            said = json.loads(line)
            return numbers({**{"combined_score": said.get("combined_score")}, **said.get("metrics", said)})
    return {}


def numbers(values: Mapping[str, object]) -> dict[str, float]:
    """Those that are numbers."""
    return {name: float(value) for name, value in values.items() if isinstance(value, int | float)}


if __name__ == "__main__":
    sys.exit(main())
