"""What a run gains whose agents of two kinds share its tokens by what they gain for them, and by turns.

Run: `python benchmarks/kinds.py [--seeds 20] [--first-seed 0]`. The landscape is that of `benchmarks/paid.py`. Two
agents have an idea that is good in a share of moves, for so many tokens each; two others are of a kind that is better
or worse, and dearer. Each run has tokens for 60 moves of the cheaper kind. Printed: the value of the best at the end,
from the seed (0) to the best there is (1), where kinds share as they gain and where nobody waits, their difference
(sign-flip test), and the share of the tokens that the dearer kind took.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from types import SimpleNamespace

from paid import LATENCY, PARTS, VARIANTS, SimulatedLoop, World, read, task_of, title, written

from evogit.agents import Agent, Brief, Proposal
from evogit.config.run_settings import AgentSpec
from evogit.core import Entry, Evaluated, Spent
from evogit.llm import TokenUsage
from evogit.repository import Repository
from evogit.run import Run, Settings
from evogit.stats import paired_tests

MOVES = 60
"""Of the cheaper kind, that a run has tokens for."""

TOKENS = 1_000
"""Of a move of the cheaper kind."""

CASES = {
    "equal": (1 / 3, 1 / 3, 1),
    "dearer, as good": (1 / 3, 1 / 3, 10),
    "dearer, better": (1 / 3, 2 / 3, 10),
    "dearer, pays": (1 / 50, 2 / 3, 3),
    "useless": (1 / 3, 1 / 50, 1),
}
"""How often an idea of either kind is the best one for its part, and how many times as much the second kind takes."""


@dataclass
class Thinker(Agent):
    """Changes one part of what it is shown, for so many tokens."""

    world: World
    good: float
    tokens: int
    kind = "thinker"

    async def propose(self, brief: Brief, rng: random.Random) -> Proposal:
        """The best variant of a part, or one by chance."""
        assert brief.background
        assert brief.account
        shown, told = read(brief.files["parts.py"]), [each.candidate.title for each in brief.background().siblings]
        await asyncio.sleep(rng.uniform(*LATENCY))
        brief.account.check()
        model = SimpleNamespace(name=f"model of {self.tokens}", price=None, context=0)
        brief.account.charge(model, TokenUsage(prompt=self.tokens, completion=0))
        at = rng.randrange(PARTS)
        made = [[*shown[:at], variant, *shown[at + 1 :]] for variant in range(VARIANTS) if variant != shown[at]]
        new = [each for each in made if title(shown, each) not in told] or made
        variants = max(new, key=self.world.worth) if rng.random() < self.good else rng.choice(new)
        return Proposal(changes={"parts.py": written(variants)}, title=title(shown, variants))


@dataclass
class Story:
    """The best, and what the agents took."""

    seed: float = 0.0
    best: float = 0.0

    def __post_init__(self) -> None:
        self.tokens: dict[str, int] = {}

    def entry(self, entry: Entry) -> None:
        """Take in what an engine did."""
        event = entry.event
        if isinstance(event, Evaluated):
            value = event.evaluation.metrics["worth"]
            self.seed, self.best = self.seed or value, max(self.best, value)
        elif isinstance(event, Spent):
            self.tokens[event.agent] = self.tokens.get(event.agent, 0) + event.prompt

    def activity(self, agent: str, doing: str) -> None:
        """Of no interest here."""


def run(job: tuple[str, bool, int]) -> tuple[float, float]:
    """The value of the best, and the share of the tokens that the second kind took."""
    case, shares, seed = job
    world, (good, better, dearer) = World(seed), CASES[case]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        task, backend = task_of(world, folder)
        story = Story()
        two = AgentSpec("editor", "cheap", 2), AgentSpec("coder", "dear", 2)
        settings = Settings(
            population=two if shares else (AgentSpec("editor", "either", 4),), tokens=MOVES * TOKENS, seed=seed
        )
        agents = [Thinker(world, good, TOKENS) for _ in range(2)]
        agents += [Thinker(world, better, dearer * TOKENS) for _ in range(2)]
        repository = Repository.create(folder / "repository")
        evolving = Run(repository, task, "kinds", settings, story, agents=agents, backend=backend)
        with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
            runner.run(evolving.evolve())
    spent = sum(story.tokens.values())
    taken = sum(story.tokens.get(agent, 0) for agent in ("a3", "a4"))
    return (story.best - story.seed) / (world.most - story.seed), taken / spent


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=0)
    asked = parser.parse_args()
    seeds = range(asked.first_seed, asked.first_seed + asked.seeds)
    jobs = [(case, shares, seed) for case in CASES for shares in (True, False) for seed in seeds]
    with ProcessPoolExecutor() as pool:
        found = dict(zip(jobs, pool.map(run, jobs, chunksize=4), strict=True))
    print(f"{'case':<18} {'by gain':>8} {'by turns':>9} {'difference':>11} {'p':>7}   tokens of the dearer kind, %")
    for case in CASES:
        ours, theirs = ([found[case, shares, seed] for seed in seeds] for shares in (True, False))
        gains = [mine - other for (mine, _), (other, _) in zip(ours, theirs, strict=True)]
        p = paired_tests.greater(gains, random.Random(case))
        values = [fmean(value for value, _ in each) for each in (ours, theirs)]
        taken = [100 * fmean(share for _, share in each) for each in (ours, theirs)]
        print(
            f"{case:<18} {values[0]:8.3f} {values[1]:9.3f} {fmean(gains):+11.3f} {p:7.4f}   "
            f"{taken[0]:.0f} by gain, {taken[1]:.0f} by turns"
        )


if __name__ == "__main__":
    main()
