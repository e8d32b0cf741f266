"""The rent that each mechanism of the search pays: the area it adds to the best so far, its CPU, and its lines of code.

    python benchmarks/rent.py run RESULTS.jsonl [--variant NAME ...] [--task NAME ...] [--seeds 6] [--label TEXT]
    python benchmarks/rent.py table RESULTS.jsonl [--variant NAME ...]

A variant is the default search with one mechanism switched off (or one that is off by default switched on), by an
option where there is one, else by replacing an attribute in the process of that run. Every run has two agents and
200 evaluations. `free` runs mutate without a model; `paid` ones have two editors and the synthetic model of
`benchmarks/peers`, or on tasks of several files a scripted agent with the same edits. A call takes 5 to 15 seconds and
an evaluation one, by a simulated clock. Areas are scaled from the seed (0) to the best that any run of the task reached
(1), as `benchmarks/peers` does, and paired by seed. Results are appended as they come; a run that is there is not
repeated.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import resource
import selectors
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from types import SimpleNamespace
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "benchmarks" / "peers")]

from edits import drawn  # noqa: E402
from model import Asked as AskedModel  # noqa: E402
from model import Model  # noqa: E402
from rent_judge import Judge  # noqa: E402
from rent_variants import VARIANTS, Variant  # noqa: E402
from serving import best_so_far  # noqa: E402
from systems.evogit import CONFLICT  # noqa: E402

from evogit.agents import Agent, Brief, Proposal  # noqa: E402
from evogit.config import Task, load_task  # noqa: E402
from evogit.config.run_settings import AgentSpec  # noqa: E402
from evogit.events import Entry, Evaluated, Spent  # noqa: E402
from evogit.llm import Account, Price, Question, TokenUsage  # noqa: E402
from evogit.repository import Repository  # noqa: E402
from evogit.run import Run, Settings  # noqa: E402
from evogit.stats import paired_tests  # noqa: E402
from evogit.testing import InMemoryBackend  # noqa: E402

EVALUATIONS, AGENTS = 200, 2
LATENCY_S, EVALUATION_S = (5.0, 15.0), 1.0
CPU_S, MEMORY_BYTES = 120, 4 << 30
"""Limits of a run."""
RENT = 0.02
"""The gain in area that a mechanism must show on a task that was not written for it."""
PEERS = ("gears", "greedy", "sequence", "staircase", "thermostat")
LANDSCAPES = ("curve_fit", "two_modules", "secret_target")
GALLERY = ("circle_packing", "online_bin_packing", "bin_packing", "tiny_ml")
"""The gallery's tasks whose evaluation takes under 0.03 s."""
TASKS = {"free": (*PEERS, *GALLERY, *LANDSCAPES), "paid": (*PEERS, "two_modules", "secret_target")}
TASK = """
name = "program"
editable = ["program.py"]
[metrics.score]
direction = "maximize"
aggregate = "mean"
[evaluator]
kind = "python"
file = "evaluator/evaluate.py"
splits = ["train"]
"""


# --- tasks --------------------------------------------------------------------------------------------------------


def opened(name: str, folder: Path) -> tuple[Task, Path]:
    """Load a task; returns also where its evaluator or score is."""
    if name not in PEERS:
        place = ROOT / ("tasks" if name in GALLERY else "benchmarks/landscapes") / name
        return load_task(place), place / "evaluator"
    place = ROOT / "benchmarks/peers/landscapes" / name
    (folder / "seed").mkdir(parents=True)
    (folder / "evaluator").mkdir()
    (folder / "seed/program.py").write_text((place / "program.py").read_text())
    (folder / "evaluator/evaluate.py").write_text("def evaluate(program, split):\n    yield\n")
    (folder / "goal.md").write_text((place / "goal.md").read_text())
    (folder / "task.toml").write_text(TASK)
    return load_task(folder), place


# --- agents that cost calls, by a simulated clock -----------------------------------------------------------------


class Clock(selectors.DefaultSelector):
    """The selector of an event loop whose time moves on where it would sleep."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return what is ready by now."""
        ready = super().select(0 if timeout else timeout)
        self.now += 0 if ready else timeout or 0
        return ready


class SimulatedLoop(asyncio.SelectorEventLoop):
    """An event loop in which sleeping takes no time."""

    def __init__(self) -> None:
        self._clock = Clock()
        super().__init__(self._clock)

    def time(self) -> float:
        """Return the seconds of the simulated clock."""
        return self._clock.now


class Synthetic:
    """The model of `benchmarks/peers` that reads its briefs, in this process."""

    price: Price | None = Price(prompt=0, cached=0, completion=0)
    context, name = 100_000, "synthetic"

    def __init__(self, seed: int) -> None:
        self._run = AskedModel(seed, "reading")
        self._latency = random.Random(f"latency {seed}")

    async def ask(self, question: Question, account: Account) -> str:
        """Reply after a while."""
        account.check()
        prompt = "\n\n".join(message.content for message in question.messages)
        await asyncio.sleep(self._latency.uniform(*LATENCY_S))
        reply, (prompted, completed) = Model().reply(self._run, "evogit", prompt)
        account.charge(self, TokenUsage(prompt=prompted, completion=completed, estimated=True))
        return reply


class Scripted(Agent):
    """An agent for several files: one edit of the synthetic model in one of them, not told to have been tried."""

    kind = "scripted"

    async def propose(self, brief: Brief, rng: random.Random) -> Proposal:
        """Change a number or an operator, or settle conflicts by a coin for each."""
        assert brief.background
        assert brief.account
        told = [*(each.candidate.title for each in brief.background().siblings), *brief.background().others]
        await asyncio.sleep(rng.uniform(*LATENCY_S))
        usage = TokenUsage(prompt=1000, completion=100)
        brief.account.charge(SimpleNamespace(name="scripted", price=None, context=0), usage)
        if brief.conflicts:
            texts = {path: brief.files[path].decode() for path in brief.conflicts}
            done = {path: CONFLICT.sub(lambda sides: sides[rng.choice((1, 2))], text) for path, text in texts.items()}
            return Proposal(changes={path: text.encode() for path, text in done.items()}, title="settle conflicts")
        for _ in range(20):
            path = rng.choice(sorted(brief.files))
            edit = drawn(brief.files[path].decode(), rng)
            title = f"{path}: {edit.title}"
            if not any(title in other for other in told):
                break
        return Proposal(changes={path: edit.text.encode()}, title=title)


# --- runs ---------------------------------------------------------------------------------------------------------


@dataclass
class Story:
    """The scores of a run in the order of its evaluations, and its tokens."""

    metric: str
    scores: list[float | None] = field(default_factory=list)
    tokens: int = 0
    events: Counter[str] = field(default_factory=Counter)

    def entry(self, entry: Entry) -> None:
        """Take in an event of the journal."""
        event = entry.event
        self.events[type(event).__name__] += 1
        if isinstance(event, Evaluated) and event.evaluation.repeat == 0:
            self.scores.append(event.evaluation.metrics.get(self.metric))
        elif isinstance(event, Spent):
            self.tokens += event.prompt + event.completion

    def activity(self, agent: str, doing: str) -> None:
        """Ignore what agents do."""


Job = tuple[str, str, int]
"""Variant, task, seed."""


def run(job: Job) -> dict[str, Any]:
    """Run a variant once, in a process of its own."""
    variant, name, seed = VARIANTS[job[0]], job[1], job[2]
    variant.apply()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
        folder = Path(place)
        task, judging = opened(name, folder / "task")
        task = variant.task(task)
        paid = variant.field == "paid"
        story = Story(task.primary.name)
        settings = Settings(
            population=(AgentSpec("editor", "synthetic", AGENTS) if paid else AgentSpec("mutator", "", AGENTS),),
            selector=variant.selector,
            evaluations=EVALUATIONS,
            proposals=(4 if paid else 10) * EVALUATIONS,
            seed=seed,
        )
        agents = [Scripted() for _ in range(AGENTS)] if paid and name not in PEERS else ()
        model = Synthetic(seed)
        judge = Judge(task, judging)
        evolving = Run(
            Repository.create(folder / "repository"),
            task,
            "rent",
            settings,
            story,
            models=lambda _: model,
            agents=agents,
            backend=InMemoryBackend(task, judge, pause=EVALUATION_S if paid else 0.0, jobs=AGENTS),
        )
        began = cpu()
        with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
            runner.run(evolving.evolve())
    sign = task.primary.sign
    scores = [None if score is None else sign * score for score in story.scores[:EVALUATIONS]]
    return {
        "variant": job[0], "task": name, "seed": seed, "scores": scores,
        "cpu": cpu() - began - judge.cpu, "tokens": story.tokens, "events": story.events,
    }  # fmt: skip


def cpu() -> float:
    """Return the seconds of CPU of this process and of those that it has waited for, which are Git's alone."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def measure(file: Path, jobs: Sequence[Job], label: str) -> None:
    """Run what is not in the file yet; `label` is appended to the names of variants."""
    done = {(row["variant"], row["task"], row["seed"]) for row in read(file)}
    todo = [job for job in jobs if (job[0] + label, *job[1:]) not in done]
    for number, job in enumerate(todo, 1):
        if not (child := os.fork()):
            resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
            row = run(job)
            with file.open("a") as out:
                out.write(json.dumps({**row, "variant": row["variant"] + label}) + "\n")
            os._exit(0)
        failed = os.waitpid(child, 0)[1]
        print(time.strftime("%T"), f"{number}/{len(todo)}", *job, "failed" if failed else "", flush=True)


def read(file: Path) -> list[dict[str, Any]]:
    """Return all results of a file."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


# --- the table ----------------------------------------------------------------------------------------------------


def areas(rows: Sequence[dict[str, Any]]) -> dict[str, dict[tuple[str, int], float]]:
    """Return variant -> task and seed -> area under the best so far, on a scale that all runs of a task share."""
    scales: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        scales[row["task"]] += [row["scores"][0], max(score for score in row["scores"] if score is not None)]
    result: dict[str, dict[tuple[str, int], float]] = defaultdict(dict)
    for row in rows:
        seed, best = row["scores"][0], max(scales[row["task"]])
        curve = best_so_far([seed if score is None else score for score in row["scores"]])
        scaled = [paired_tests.normalised(value, seed, best) for value in curve]
        result[row["variant"]][row["task"], row["seed"]] = paired_tests.area(scaled, EVALUATIONS)
    return result


def gains_of(area: Mapping[str, Mapping[tuple[str, int], float]], variant: Variant) -> dict[str, list[float]]:
    """Return task -> what the mechanism gains, seed by seed."""
    base, other = area[f"default {variant.field}"], area[variant.name]
    gains: dict[str, list[float]] = defaultdict(list)
    for cell in sorted(base.keys() & other.keys()):
        gains[cell[0]].append((base[cell] - other[cell]) * (-1 if variant.adds else 1))
    return gains


def table(rows: Sequence[dict[str, Any]], names: Sequence[str]) -> Iterator[str]:
    """Yield the rent table as Markdown; p of the tasks are corrected after Holm over all tests of the table."""
    area, cpus = areas(rows), defaultdict(list)
    for row in rows:
        cpus[row["variant"]].append(1000 * row["cpu"] / len(row["scores"]))
    tests, gains = {}, {}
    for name in names:
        gains[name] = gains_of(area, VARIANTS[name])
        for task, values in gains[name].items():
            if task not in VARIANTS[name].written_for:
                tests[name, task] = paired_tests.greater(values, random.Random(f"{name} {task}"))
    corrected = paired_tests.holm({f"{name} {task}": p for (name, task), p in tests.items()})
    yield "| mechanism | runs | gain, all other tasks | best other task | p | ms | lines | tasks written for it |"
    yield "|---|---|---|---|---|---|---|---|"
    for name in names:
        variant = VARIANTS[name]
        others = {task: values for task, values in gains[name].items() if task not in variant.written_for}
        if not others:
            continue
        gain = fmean(map(fmean, others.values()))
        low, high = paired_tests.interval([each for values in others.values() for each in values], random.Random(name))
        best = max(others, key=lambda task: fmean(others[task]))
        own = ", ".join(f"{task} {fmean(gains[name][task]):+.3f}" for task in variant.written_for if gains[name][task])
        extra = (fmean(cpus[f"default {variant.field}"]) - fmean(cpus[name])) * (-1 if variant.adds else 1)
        yield (
            f"| {name} | {sum(map(len, gains[name].values()))} | {gain:+.3f} ({low:+.3f}, {high:+.3f}) "
            f"| {best} {fmean(others[best]):+.3f} | {corrected[f'{name} {best}']:.2f} | {extra:+.1f} "
            f"| {variant.lines(ROOT)} | {own} |"
        )
    yield f"\n{len(tests)} tests (mechanism and task), p corrected after Holm (1979)."


def main() -> None:
    """Measure, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["run", "table"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--variant", action="append", default=[], choices=VARIANTS)
    parser.add_argument("--task", action="append", default=[])
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--agents", type=int, default=AGENTS)
    parser.add_argument("--label", default="", help="appended to the names, such as ' after', to compare two versions")
    asked = parser.parse_args()
    globals()["AGENTS"] = asked.agents
    names = asked.variant or [*VARIANTS]
    if asked.action == "table":
        print("\n".join(table(read(asked.file), [name for name in names if not name.startswith("default")])))
        return
    seeds = range(asked.first_seed, asked.first_seed + asked.seeds)
    tasks = {
        name: [task for task in TASKS[VARIANTS[name].field] if task in (asked.task or TASKS["free"])] for name in names
    }
    measure(asked.file, [(name, task, seed) for seed in seeds for name in names for task in tasks[name]], asked.label)


if __name__ == "__main__":
    main()
