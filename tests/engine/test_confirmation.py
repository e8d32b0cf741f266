"""Noisy runs of the real engine: would-be bests are evaluated again, leaders told apart, whatever happens meanwhile."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from statistics import NormalDist
from typing import Any, cast

import pytest
from msgspec.structs import replace

from evogit.agents import Brief, Proposal
from evogit.config import Task
from evogit.core import Cost, Evaluation, Evidence, EvoGitError, Status
from evogit.events import Decision
from evogit.history import History
from evogit.history.context import StoredRun
from evogit.history.leaders import contender, tied
from evogit.repository import Repository
from evogit.run import Run, Settings
from evogit.testing import Answer, Asked, InMemoryBackend, ScriptedAgent

pytestmark = pytest.mark.slow

MakeTask = Callable[..., Task]


def counting(first: int, step: int) -> ScriptedAgent:
    """An agent that proposes the numbers from `first` on, `step` apart."""
    numbers = count(first, step)

    def think(brief: Brief, rng: random.Random) -> Proposal:
        number = next(numbers)
        return Proposal(changes={"program.py": b"# %d\n" % number}, title=f"number {number}")

    return ScriptedAgent(think)


class Draws(InMemoryBackend):
    """Candidate i is worth `truth[i]`, give or take; `fails` may say how a repeat ends."""

    def __init__(
        self,
        task: Task,
        truth: Sequence[float],
        sd: float,
        seed: int = 0,
        fails: Callable[[int, int], Status] = lambda number, repeat: "ok",
        before: Callable[[int], Any] = lambda evaluations: None,
        cost: Cost = Cost(wall=0.5),  # noqa: B008 (it is frozen)
    ) -> None:
        super().__init__(task, self._draw)
        self.drawn: list[tuple[int, int]] = []
        self._truth = truth
        self._sd = sd
        self._seed = seed
        self._fails = fails
        self._before = before
        self._cost = cost

    def _draw(self, asked: Asked) -> Answer:
        found = re.search(rb"# (\d+)\n", asked.files.changed)
        number = int(found[1]) if found else 0
        self.drawn.append((number, asked.repeat))
        self._before(asked.number)
        status = self._fails(number, asked.repeat)
        draw = random.Random(f"{self._seed} {number} {asked.repeat} {asked.split}").gauss(0, self._sd)
        metrics = {"score": self._truth[number % len(self._truth)] + draw} if status == "ok" else {}
        about: dict[str, Any] = {"split": asked.split, "repeat": asked.repeat}
        about["key"] = self.key(asked.tree, asked.split, asked.repeat)
        return Evaluation(status=status, metrics=metrics, cost=self._cost, **about), Evidence()


def engine(path: Path, task: Task, draws: Draws, agents: int = 1, first: int = 1, **options: Any) -> Run:
    repository = Repository.open(path) if path.exists() else Repository.create(path)
    crew = [counting(first + lane, agents) for lane in range(agents)]
    return Run(repository, task, "r", Settings(**options), agents=crew, backend=draws)


async def evolved(path: Path, task: Task, draws: Draws, **options: Any) -> History:
    run = engine(path, task, draws, **options)
    await run.evolve()
    return run.history


def number(history: History, commit: str | None) -> int:
    """Which of the numbers a candidate is."""
    title = history.phylogeny[commit or ""].title
    return int(title.removeprefix("number ")) if title.startswith("number ") else 0


@pytest.fixture
def noisy(tiny: MakeTask) -> Task:
    return replace(tiny(), repeats=3)


TRUTH = [0.0, -2.0, 1.0, -3.0, 0.9, 3.0, -5.0, 2.9]


async def test_a_would_be_best_is_judged_again_and_the_leaders_at_the_end(path: Path, noisy: Task) -> None:
    draws = Draws(noisy, TRUTH, 0.5)
    run = engine(path, noisy, draws, evaluations=8)
    await run.evolve()
    history = run.history
    assert draws.drawn[:5] == [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0)], "the seed tells how noisy scores are"
    assert (number(history, history.best), history.counts.evaluated) == (5, 8)
    assert history.counts.repeated == len([each for each in draws.drawn if each[1]]) - 2 * noisy.repeats  # the holdout
    assert history.counts.repeated_seconds == history.counts.repeated * 0.5
    assert history.counts.repeated <= 40 + 48
    assert not [commit for commit in tied(history) if TRUTH[number(history, commit)] < 2.5]
    assert history.scores.repeated(history.best or "", "holdout") == noisy.repeats
    again = engine(path, noisy, Draws(noisy, TRUTH, 0.5), evaluations=8)
    await again.evolve()
    assert again.history.counts.repeated == history.counts.repeated, "what is confirmed is not confirmed again"


async def test_limits_on_repeats_hold(path: Path, tmp_path: Path, noisy: Task) -> None:
    ties = [0.0] * 12
    draws = Draws(noisy, ties, 1.0)
    run = engine(path, noisy, draws, evaluations=12, confirmations=10)
    await run.evolve()
    assert run.history.counts.repeated == 10
    assert tied(run.history)
    asked = draws.drawn[: draws.drawn.index((11, 0))]
    assert sum(repeat > 0 for _, repeat in asked) == 5, "half of the limit is kept for the end"
    counted = engine(tmp_path / "c", noisy, Draws(noisy, ties, 1.0), agents=3, evaluations=12, count_repeats=True)
    stopped = await counted.evolve()
    counts = counted.history.counts
    assert (stopped.reason, counts.evaluated + counts.repeated) == ("evaluations", 12)


async def test_whoever_fails_in_a_repeat_is_flaky_and_not_the_best(path: Path, noisy: Task) -> None:
    draws = Draws(noisy, TRUTH, 0.1, fails=lambda number, repeat: "crashed" if (number, repeat) == (5, 2) else "ok")
    history = await evolved(path, noisy, draws, evaluations=8)
    assert number(history, history.best) == 7
    flaky = [number(history, each.commit) for each in history.phylogeny if _status(history, each.commit) == "flaky"]
    assert flaky == [5]


def _status(history: History, commit: str) -> str:
    told = history.evaluation(commit)
    return told.status if told else ""


async def test_a_flaky_seed_ends_the_run_with_a_sentence(path: Path, noisy: Task) -> None:
    draws = Draws(noisy, TRUTH, 0.1, fails=lambda number, repeat: "timeout" if repeat == 2 else "ok")
    with pytest.raises(EvoGitError, match=r"the seed of .* itself fails \(flaky: failed 1 of 3 times \(timeout"):
        await engine(path, noisy, draws, evaluations=8).evolve()


@pytest.mark.slow
@pytest.mark.parametrize("killed_at", [3, 7, 12])
async def test_what_a_killed_engine_left_is_judged_again_by_the_next(path: Path, noisy: Task, killed_at: int) -> None:
    class KilledError(BaseException):
        pass

    def die(evaluations: int) -> None:
        if evaluations == killed_at:
            raise KilledError

    truth = [0.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0]
    with pytest.raises((KilledError, BaseExceptionGroup)):
        await engine(path, noisy, Draws(noisy, truth, 2.0, before=die), evaluations=6).evolve()
    run = engine(path, noisy, Draws(noisy, truth, 2.0), first=7, evaluations=6)
    await run.evolve()
    assert run.history.counts.evaluated == 6
    assert contender(run.history) is None
    assert run.history.best == max(run.history.scores.known(), key=lambda each: run.history.fitness(each) or 0.0)


@pytest.mark.slow
async def test_deterministic_runs_agree_with_repeats_in_them(tmp_path: Path, noisy: Task) -> None:
    truth, facts = [random.Random(i).uniform(0, 1) for i in range(60)], []
    for name in ("one", "two"):
        run = engine(
            tmp_path / name, noisy, Draws(noisy, truth, 0.5), agents=3, evaluations=20, deterministic=True, seed=3
        )
        await run.evolve()
        history = run.history
        facts.append(
            ([each.commit for each in history.phylogeny], history.best, history.heads, history.counts.repeated)
        )
    assert facts[0] == facts[1]


def blom(amount: int) -> list[float]:
    """Normal scores, the expected order statistics of a normal sample, lowest first (Blom, 1958)."""
    return [NormalDist().inv_cdf((rank - 3 / 8) / (amount + 1 / 4)) for rank in range(1, amount + 1)]


@pytest.mark.slow
async def test_the_best_of_two_hundred_is_found_though_the_noise_is_as_large_as_its_lead(
    tmp_path: Path, noisy: Task
) -> None:
    right, rng = 0, random.Random(7)
    for seed in range(3):
        truth = blom(200)
        gap = truth[-1] - truth[-2]
        rng.shuffle(truth)
        draws = Draws(noisy, truth, gap, seed)
        run = engine(tmp_path / str(seed), noisy, draws, evaluations=200, confirmations=200)
        await run.evolve()
        assert run.history.counts.repeated <= 200
        right += truth[number(run.history, run.history.best)] == max(truth)
    assert right >= 2


@pytest.mark.slow
async def test_engines_that_join_agree_on_what_is_believed(path: Path, noisy: Task) -> None:
    truth = [random.Random(i).uniform(0, 1) for i in range(60)]
    first = engine(path, noisy, Draws(noisy, truth, 0.3), agents=2, evaluations=30)

    async def join() -> None:
        await asyncio.sleep(0.1)
        second = engine(path, noisy, Draws(noisy, truth, 0.3), agents=2, first=30, evaluations=30, join=True)
        await second.evolve()

    await asyncio.gather(first.evolve(), join())
    first.journal.refresh()
    told = StoredRun.open(Repository.open(path), "r").history
    assert (told.best, told.records, told.heads) == (first.history.best, first.history.records, first.history.heads)
    assert told.counts.evaluated == 30
    assert contender(told) is None


@pytest.mark.slow
async def test_who_follows_a_pruned_best_is_judged_again_before_it_leads(path: Path, noisy: Task) -> None:
    run: Run

    def prune(evaluations: int) -> None:
        history = run.history
        if history.best not in (None, history.seed) and not history.decisions:
            run.journal.append(Decision(kind="prune", by="Ada", candidates=(history.best or "",)))

    run = engine(path, noisy, Draws(noisy, TRUTH, 0.3, before=prune), evaluations=8)
    await run.evolve()
    history = run.history
    assert history.best not in history.pruned
    assert contender(history) is None
    assert history.scores.believed(history.best or "")


async def test_an_interruption_while_the_leaders_are_told_apart_leaves_the_rest_to_the_next(
    path: Path, noisy: Task
) -> None:
    run: Run

    def interrupt(evaluations: int) -> None:
        if run.history.counts.evaluated == 4 and run.history.counts.repeated > 15:
            run.stop("interrupted")

    limits = {"evaluations": 4, "confirmations": 60}
    run = engine(path, noisy, Draws(noisy, [0.0, 0.1, 0.0, 0.1], 1.0, before=interrupt), **limits)
    stopped = await run.evolve()
    assert stopped.reason == "interrupted"
    assert run.history.counts.repeated <= 18
    again = engine(path, noisy, Draws(noisy, [0.0, 0.1, 0.0, 0.1], 1.0), **limits)
    assert (await again.evolve()).reason == "evaluations"
    assert again.history.counts.repeated > 40


async def test_a_short_run_repeats_no_more_at_its_end_than_it_judged(path: Path, noisy: Task) -> None:
    history = await evolved(path, noisy, Draws(noisy, [0.0, 0.0, 0.0, 0.0], 1.0), evaluations=4)
    assert history.counts.repeated <= 4 * history.repeats + 4


class Shared(Draws):
    """The same, but repeat k adds the same to all, as where evaluators draw their inputs from `rng`."""

    def _draw(self, asked: Asked) -> Answer:
        evaluation, evidence = cast(tuple[Evaluation, Evidence], super()._draw(asked))
        drawn = random.Random(f"{asked.repeat} {asked.split}").gauss(0, 5)
        return replace(evaluation, metrics={"score": evaluation.metrics["score"] + drawn}), evidence


async def test_what_draws_the_same_inputs_is_told_apart_with_few_repeats(path: Path, noisy: Task) -> None:
    truth = [rank / 10 for rank in random.Random(1).sample(range(40), 40)]
    draws = Shared(noisy, truth, 0.001)
    history = await evolved(path, noisy, draws, evaluations=40)
    assert truth[number(history, history.best)] == max(truth)
    assert tied(history) == []
    assert history.counts.repeated <= noisy.repeats * (1 + len(history.records))


async def test_equals_on_the_same_inputs_are_a_tie_at_once(path: Path, noisy: Task) -> None:
    history = await evolved(path, noisy, Shared(noisy, [1.0, 2.0, 2.0, 0.5], 0.0), evaluations=4)
    assert len(tied(history)) == 1
    assert history.counts.repeated <= 3 * noisy.repeats


async def test_an_exact_task_that_says_it_is_noisy_pays_for_the_seed_and_two_bests_alone(
    path: Path, noisy: Task
) -> None:
    draws = Draws(noisy, [1.0, 1.5, 0.5, *(2.0 + number / 10 for number in range(7)), 1.0], 0.0)
    run = engine(path, noisy, draws, evaluations=11)
    await run.evolve()
    history, on_train = run.history, [each for each in run.backend.asked if each.split == "train"]  # type: ignore[union-attr]
    assert (history.counts.evaluated, history.repeats, tied(history)) == (11, 0, [])
    assert number(history, history.best) == 9
    assert len(on_train) <= 11 + noisy.repeats + 2 + 1, "the last best is looked at when the run ends"


CLOCK = Cost(wall=6.1, cpu=6.0, call_wall=6.1, call_cpu=6.0, call_share=0.75)
"""What a search used that works for six seconds, of eight that it may."""


async def test_bests_of_a_search_that_a_clock_ends_are_judged_again_though_the_task_is_exact(
    task: Task, path: Path
) -> None:
    truth = [2.0, *(2.6 + number / 1000 for number in range(9))]
    run = engine(path, task, Draws(task, truth, 0.01, cost=CLOCK), evaluations=10)
    await run.evolve()
    history = run.history
    assert (history.repeats, contender(history)) == (3, None)
    asked = [each for each in run.backend.asked if each.split == "train"]  # type: ignore[union-attr]
    first = next(place for place, each in enumerate(asked) if each.repeat)
    assert first < 6, "long before the run ends"
    assert len(tied(history)) >= 3
    assert not any(history.surely_fitter(history.best or "", commit) for commit in tied(history))
    told = StoredRun.open(Repository.open(path), "r").history
    assert (told.repeats, told.best, told.scores.again()) == (3, history.best, history.scores.again())


async def test_an_exact_search_that_uses_as_much_cpu_each_time_is_judged_again_twice_at_most(
    task: Task, path: Path
) -> None:
    history = await evolved(path, task, Draws(task, list(range(12)), 0.0, cost=CLOCK), evaluations=12)
    assert (history.repeats, history.counts.repeated) == (0, 2)
    assert number(history, history.best) == 11
