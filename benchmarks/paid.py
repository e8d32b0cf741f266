"""Which selector gets most out of paid calls: stand-ins for models of three kinds on a rugged landscape.

Run: `python benchmarks/paid.py [--seeds 20] [--first-seed 0] [--proposals 60] [--model KIND ...] [--selector SPEC]
[--step X] [--agents N] [--evaluation SECONDS --places N]`.
A program has ten parts of six variants each; what a part is worth depends on its neighbour too (an NK landscape with K
= 1, Kauffman 1989, with a seed of its own for each run). The stand-ins see briefs as a model does, and nothing else:
`improver` changes what it is shown, by an idea that is good one time in three; `needs-failures` has the same idea again
until it is told what it led to; `careless` writes the whole file anew in its own style, in a third of its replies
nothing usable. `settled` has a landscape of its own with two basins, and leaves the first one only if its brief names
what it tried in vain (`left %`). Each move counts as a call. Printed: the area under the best so far over the
proposals, from the seed (0) to the best there is (1), with its difference to `sequential` and `one-plus-lambda` (sign-
flip test), the proposals that were duplicates (`dup`), the replies that made what was there of what they were shown
(`again`: the default puts their changes where they are new), and the calls on a parent that was worse than the best by
more than half of what was gained: when the call began (`poor`, but for those that follow a tactic), and when the reply
came (`late`).
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import random
import re
import selectors
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import floor
from pathlib import Path
from statistics import fmean

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT)]

from evogit.agents import Advice, Agent, Background, Brief, NoUsableChangeError, Proposal  # noqa: E402
from evogit.agents.briefs.briefing import DIRECTIONS, direction  # noqa: E402
from evogit.config import Task, load_task  # noqa: E402
from evogit.config.run_settings import AgentSpec  # noqa: E402
from evogit.core import Duplicate, Entry, Evaluated, FailedProposal, Proposed, Status, Tactic  # noqa: E402
from evogit.history.counts import EXTENDED, MIRRORED  # noqa: E402
from evogit.repository import Repository  # noqa: E402
from evogit.run import Run, Settings  # noqa: E402
from evogit.stats import paired_tests  # noqa: E402
from evogit.testing import Asked, InMemoryBackend  # noqa: E402

PARTS, VARIANTS = 10, 6
LATENCY = 5.0, 15.0
"""Seconds that a call takes, by a clock that nobody waits for: all else takes none, so that runs repeat."""
BASIN_PARTS, BASIN_VARIANTS = 6, 4
IDEAS = 40
"""Ideas that a stand-in goes through, where it is to look first and elsewhere, for one that is new to it."""
PART = re.compile(rb"^def part(\d+)\(\):.*\n(?:    .*\n)*?    return (\d+)", re.MULTILINE)

TASK = """
name = "parts"
goal = "Find the best variant of each part."
editable = ["parts.py"]
[metrics.worth]
direction = "maximize"
[evaluator]
kind = "python"
file = "evaluator/evaluate.py"
splits = ["train"]
"""


class World:
    """What each part is worth, by its own variant and its neighbour's."""

    def __init__(self, seed: int, step: float = 0.0) -> None:
        rng = random.Random(f"parts {seed}")
        self._step = step
        self._worth = [{pair: rng.random() for pair in product(range(VARIANTS), repeat=2)} for _ in range(PARTS)]
        self.most = self._best()
        self.seed = random.Random(seed).choices(range(VARIANTS), k=PARTS)

    def worth(self, variants: Sequence[int]) -> float:
        """The sum over the parts, which stand in a row; in whole steps, if there are any."""
        return self._rounded(
            sum(self._worth[at][pair] for at, pair in enumerate(zip(variants, variants[1:], strict=False)))
        )

    def is_left(self, best: float) -> bool:
        """Whether the best has another design than the seed, of which there is none here."""
        return False

    def _best(self) -> float:
        reached = [0.0] * VARIANTS
        for worth in self._worth[: PARTS - 1]:
            reached = [max(reached[a] + worth[a, b] for a in range(VARIANTS)) for b in range(VARIANTS)]
        return self._rounded(max(reached))

    def _rounded(self, worth: float) -> float:
        return floor(worth / self._step + 1e-9) * self._step if self._step else worth


class Basins(World):
    """Two designs, which the last number of a program names: in the second one all is worth more, by other variants."""

    MORE = 1.4

    def __init__(self, seed: int) -> None:
        rng = random.Random(f"basins {seed}")
        self.seed = [rng.randrange(BASIN_VARIANTS) for _ in range(BASIN_PARTS)] + [0]
        self._tables = [[[rng.random() for _ in range(BASIN_VARIANTS)] for _ in range(BASIN_PARTS)] for _ in range(2)]
        self._peak = sum(map(max, self._tables[0]))
        self.most = self.MORE * sum(map(max, self._tables[1]))

    def worth(self, variants: Sequence[int]) -> float:
        """The sum over the parts, by the table of the design."""
        *parts, design = variants
        sums = sum(table[variant] for table, variant in zip(self._tables[design], parts, strict=True))
        return sums * (self.MORE if design else 1)

    def is_left(self, best: float) -> bool:
        """Whether so much can be had in the second design alone."""
        return best > self._peak


def written(variants: Sequence[int], style: str = "") -> bytes:
    """The program, with a comment in each part that shows who wrote it."""
    comment = f"    # {style}\n" if style else ""
    return "\n\n".join(
        f"def part{at}():\n{comment}    return {variant}\n" for at, variant in enumerate(variants)
    ).encode()


def title(old: Sequence[int], new: Sequence[int]) -> str:
    """What a change is called."""
    changes = [f"part{at}: {a} -> {b}" for at, (a, b) in enumerate(zip(old, new, strict=True)) if a != b]
    return ", ".join(changes) or "no change"


def read(program: bytes) -> list[int]:
    """The variants in a program; of a part that is there twice the last one counts, as in Python."""
    return [int(variant) for variant in dict(PART.findall(program)).values()]


def sides(program: bytes, parts: int) -> list[list[int]]:
    """The variants that either side of the conflicts in a program has, part by part."""
    conflict = re.compile(rb"^<{7}.*\n((?:.*\n)*?)(?:\|{7}.*\n(?:.*\n)*?)?={7}\n((?:.*\n)*?)>{7}.*\n", re.MULTILINE)
    found = [dict(PART.findall(conflict.sub(side, program))) for side in (rb"\1", rb"\2")]
    return [[int(each[b"%d" % at]) for each in found if b"%d" % at in each] or [0] for at in range(parts)]


@dataclass
class StandIn(Agent):
    """What the stand-ins share: an idea for one part of what they are shown, good one time in three."""

    world: World
    story: Story
    kind = "stand-in"

    async def propose(self, brief: Brief, rng: random.Random) -> Proposal:
        """Change a part of the parent, or settle a conflict by a coin for each part; all it knows is in the brief."""
        assert brief.background
        background = brief.background()
        if not brief.conflicts and not background.tactic:
            self.story.ask(self.world.worth(read(brief.files["parts.py"])))
        place = direction(brief, background)
        if brief.claims and place:
            brief.claims.make(place)
        await asyncio.sleep(rng.uniform(*LATENCY))
        if brief.conflicts:
            either = sides(brief.files["parts.py"], len(self.world.seed))
            return self._proposal([first for first, *_ in either], [rng.choice(each) for each in either])
        proposal = self.think(brief, background, place, rng)
        self.story.reply(self.world.worth(read(proposal.changes["parts.py"] or b"")))
        return proposal

    def think(self, brief: Brief, background: Background, place: str, rng: random.Random) -> Proposal:
        """An idea that the brief does not tell of, neither as tried nor as being tried, and that undoes none before."""
        shown = read(brief.files["parts.py"])
        told = [each.candidate.title for each in background.siblings] + [*background.others]
        undone = [each.candidate.title for each in background.lineage]
        places = [place] * IDEAS + [""] * IDEAS
        ideas = [self._changed(shown, place, rng) for place in places]
        new = (
            idea
            for idea in ideas
            if not any(title(shown, idea) in each for each in told)
            and not any(title(idea, shown) in each for each in undone)
        )
        return self._proposal(shown, next(new, ideas[0]))

    async def advise(self, brief: Brief, rng: random.Random) -> Advice:
        """Name what was tried in vain."""
        await asyncio.sleep(rng.uniform(*LATENCY))
        assert brief.background
        tried = [each.candidate.title for each in brief.background().siblings]
        return Advice(text=f"Tried in vain: {'; '.join(tried[-5:])}. Leave this design.")

    def _changed(self, shown: list[int], place: str, rng: random.Random) -> list[int]:
        """What it is shown with one part changed, one of those where the brief says to look first."""
        at = rng.choice([at for at in range(PARTS) if DIRECTIONS[at % len(DIRECTIONS)] in place] or range(PARTS))
        made = [[*shown[:at], variant, *shown[at + 1 :]] for variant in range(VARIANTS) if variant != shown[at]]
        return max(made, key=self.world.worth) if rng.random() < 1 / 3 else rng.choice(made)

    def _proposal(self, shown: list[int], variants: list[int], style: str = "") -> Proposal:
        return Proposal(changes={"parts.py": written(variants, style)}, title=title(shown, variants))


class NeedsFailures(StandIn):
    """Has one idea for what it is shown, and the next one only when it is told of the first."""

    def think(self, brief: Brief, background: Background, place: str, rng: random.Random) -> Proposal:
        """The first idea that the brief does not tell of; where it is to look somewhere first, another one."""
        asked = brief.files["parts.py"] + place.encode()
        ideas = random.Random(hashlib.sha256(asked).digest())
        return super().think(brief, background, place, ideas)


class Careless(StandIn):
    """Rewrites the file in a style of the day, and writes what cannot be used one time in three."""

    def think(self, brief: Brief, background: Background, place: str, rng: random.Random) -> Proposal:
        """A rewrite, or nothing."""
        if rng.random() < 1 / 3:
            raise NoUsableChangeError("the reply has no block that fits")
        shown = read(brief.files["parts.py"])
        return self._proposal(shown, self._changed(shown, "", rng), f"style {rng.getrandbits(30)}")


class Settled(StandIn):
    """Keeps to the design that it is shown, unless a tactic names what was tried in vain: then it begins anew."""

    def think(self, brief: Brief, background: Background, place: str, rng: random.Random) -> Proposal:
        """Another variant of one part, or another design."""
        *parts, design = shown = read(brief.files["parts.py"])
        if not design and any(each.candidate.title in background.tactic for each in background.siblings):
            return self._proposal(shown, [*(rng.randrange(BASIN_VARIANTS) for _ in parts), 1])
        at = rng.randrange(BASIN_PARTS)
        variant = rng.choice([each for each in range(BASIN_VARIANTS) if each != parts[at]])
        return self._proposal(shown, [*parts[:at], variant, *parts[at + 1 :], design])


MODELS: dict[str, type[StandIn]] = {"improver": StandIn, "needs-failures": NeedsFailures, "careless": Careless}
LANDSCAPES = {**MODELS, "settled": Settled}
COMPARED = ("elitist", "sequential", "one-plus-lambda")
"""The default, and what it should be no worse than."""


class Clock(selectors.DefaultSelector):
    """What an event loop waits with: where it would sleep, its time moves on."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """What is ready by now."""
        found = super().select(0 if timeout else timeout)
        self.now += 0 if found else timeout or 0
        return found


class SimulatedLoop(asyncio.SelectorEventLoop):
    """An event loop in which sleeping takes no time."""

    def __init__(self) -> None:
        self._clock = Clock()
        super().__init__(self._clock)

    def time(self) -> float:
        """Seconds by the simulated clock."""
        return self._clock.now


@dataclass
class Story:
    """What came of a run, proposal by proposal."""

    world: World
    seed: float = 0.0
    best: float = 0.0
    poor: int = 0
    late: int = 0
    duplicates: int = 0
    again: int = 0

    def __post_init__(self) -> None:
        self.curve: list[float] = []
        self._worth: dict[str, float] = {}

    def entry(self, entry: Entry) -> None:
        """Take in what an engine did."""
        event = entry.event
        if isinstance(event, Evaluated):
            self._worth[event.candidate] = value = event.evaluation.metrics.get("worth", 0.0)
            self.seed = self.seed or value
            self.best = max(self.best, value)
        elif isinstance(event, Tactic):
            self.curve.append(self.best)
        elif isinstance(event, Proposed | Duplicate | FailedProposal) and event.operator != "seed":
            asked = event.operator == "mutation" and event.strategy not in (EXTENDED, MIRRORED)
            if asked or event.strategy == "model":
                self.duplicates += isinstance(event, Duplicate)
                self.curve.append(self.best)
            if asked and event.parents:
                self.late += self._is_poor(self._worth[event.parents[0]])

    def ask(self, worth: float) -> None:
        """Take in that a call begins, on a parent that is worth so much."""
        self.poor += self._is_poor(worth)

    def reply(self, worth: float) -> None:
        """Take in that a reply made what is worth so much of what it was shown: equal worth means equal variants."""
        self.again += worth in self._worth.values()

    def _is_poor(self, worth: float) -> bool:
        return self.best > self.seed and self.best - worth > (self.best - self.seed) / 2

    def activity(self, agent: str, doing: str) -> None:
        """Of no interest here."""

    def area(self, proposals: int) -> float:
        """The mean of the best so far, where the seed is 0 and the best there is 1."""
        curve = [*self.curve[:proposals], *[self.best] * (proposals - len(self.curve))]
        return (fmean(curve) - self.seed) / (self.world.most - self.seed)


@dataclass(frozen=True)
class Outcome:
    """Of one run: the area, and the shares of its calls that made what was there, or worked on a poor parent.

    `again` counts what replies made of what they were shown, `poor` parents as they were when the call began, `late`
    when its result came.
    """

    area: float
    duplicates: float
    again: float
    poor: float
    late: float
    left: bool
    """Whether the best has another design than the seed, in a world that has two."""


def task_of(world: World, folder: Path, evaluation: float, places: int | None) -> tuple[Task, InMemoryBackend]:
    """The task in which the world is explored, in a folder, and what evaluates it: so long, so many at a time."""
    (folder / "task" / "seed").mkdir(parents=True)
    (folder / "task" / "evaluator").mkdir()
    (folder / "task" / "task.toml").write_text(TASK)
    (folder / "task" / "seed" / "parts.py").write_bytes(written(world.seed))
    (folder / "task" / "evaluator" / "evaluate.py").write_text("def evaluate(program, split):\n    yield\n")
    task = load_task(folder / "task")

    def judge(asked: Asked) -> float | Status:
        try:
            return world.worth(read(asked.changed["parts.py"]) if asked.changed else world.seed)
        except (KeyError, IndexError, ValueError):  # a step led to a variant that is none
            return "invalid"

    return task, InMemoryBackend(task, judge, pause=evaluation, jobs=places)


def run(
    job: tuple[str, str, int], proposals: int, agents: int, step: float, evaluation: float, places: int | None
) -> Outcome:
    """One run of a selector with a kind of model and a seed."""
    selector, model, seed = job
    world = Basins(seed) if model == "settled" else World(seed, step)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        task, backend = task_of(world, folder, evaluation, places)
        story = Story(world)
        amount = 1 if selector == "sequential" else agents
        settings = Settings(
            population=(AgentSpec("editor", "stand-in", amount),),
            selector=selector,
            proposals=proposals,
            seed=seed,
        )
        evolving = Run(
            Repository.create(folder / "repository"),
            task,
            "paid",
            settings,
            story,
            agents=[LANDSCAPES[model](world, story) for _ in range(amount)],
            backend=backend,
        )
        with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
            runner.run(evolving.evolve())
    calls = max(1, len(story.curve))
    shares = (count / calls for count in (story.duplicates, story.again, story.poor, story.late))
    return Outcome(story.area(proposals), *shares, left=world.is_left(story.best))


def table(
    models: Sequence[str], selectors: Sequence[str], seeds: range, work: Callable[[tuple[str, str, int]], Outcome]
) -> list[dict]:
    """A row for each model and selector."""
    jobs = [(selector, model, seed) for model in models for selector in selectors for seed in seeds]
    with ProcessPoolExecutor() as pool:
        found = dict(zip(jobs, pool.map(work, jobs, chunksize=4), strict=True))
    rows = []
    for model in models:
        areas = {selector: [found[selector, model, seed].area for seed in seeds] for selector in selectors}
        for selector in selectors:
            outcomes = [found[selector, model, seed] for seed in seeds]
            row = {
                "model": model,
                "selector": selector,
                "area": fmean(areas[selector]),
                "duplicates": fmean(each.duplicates for each in outcomes),
                "again": fmean(each.again for each in outcomes),
                "poor": fmean(each.poor for each in outcomes),
                "late": fmean(each.late for each in outcomes),
                "left": fmean(each.left for each in outcomes),
            }
            for control in COMPARED[1:]:
                if control in areas and control != selector:
                    gains = [mine - theirs for mine, theirs in zip(areas[selector], areas[control], strict=True)]
                    row[f"over {control}"] = fmean(gains)
                    row[f"p better than {control}"] = paired_tests.greater(gains, random.Random(f"{model} {control}"))
                    row[f"p worse than {control}"] = paired_tests.greater(
                        [-gain for gain in gains], random.Random(f"{control} {model}")
                    )
            rows.append(row)
    return rows


def main() -> None:
    """Measure, print a table, and write JSON where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--proposals", type=int, default=60)
    parser.add_argument("--agents", type=int, default=4, help="but for `sequential`, which has one")
    parser.add_argument("--step", type=float, default=0.0, help="round what a program is worth down to steps: plateaus")
    parser.add_argument("--evaluation", type=float, default=0.0, help="seconds of an evaluation; a call takes 5 to 15")
    parser.add_argument("--places", type=int, help="evaluations at a time; as many as there are")
    parser.add_argument("--selector", action="append", default=[], help="beside the default and the controls")
    parser.add_argument("--model", action="append", default=[], choices=LANDSCAPES, help="instead of the three")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    seeds = range(asked.first_seed, asked.first_seed + asked.seeds)
    work = partial(run, proposals=asked.proposals, agents=asked.agents, step=asked.step)
    work = partial(work, evaluation=asked.evaluation, places=asked.places)
    rows = table(asked.model or [*MODELS], [*COMPARED, *asked.selector], seeds, work)
    print(
        f"{'model':<15} {'selector':<24} {'area':>6} {'dup %':>6} {'again %':>7} {'poor %':>6} {'late %':>6} "
        f"{'left %':>6}  over sequential   over one-plus-lambda"
    )
    for row in rows:
        told = [
            f"{row[f'over {control}']:+.3f} (p {row[f'p better than {control}']:.4f})"
            if f"over {control}" in row
            else ""
            for control in COMPARED[1:]
        ]
        print(
            f"{row['model']:<15} {row['selector']:<24} {row['area']:6.3f} {100 * row['duplicates']:6.1f} "
            f"{100 * row['again']:7.1f} {100 * row['poor']:6.1f} {100 * row['late']:6.1f} "
            f"{100 * row['left']:6.1f}  {told[0]:<17} {told[1]}"
        )
    if asked.json:
        asked.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
