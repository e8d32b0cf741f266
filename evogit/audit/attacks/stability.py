"""Scores that depend on something else than the candidate: luck, or what was evaluated before it."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator

from evogit.audit.attack import Attack, Hit
from evogit.audit.attacks.answering import CONSTANT, far_above, said, tried
from evogit.audit.candidate import AttackCandidate
from evogit.audit.laboratory import Laboratory

FAMILY = "stability"
TRIES = 4
_LUCK = re.compile(r"\brandom\.\w+\(|default_rng\(\)|SystemRandom|\bsecrets\.|urandom|time\.time|shuffle\(|np\.random")

_CLOCK = re.compile(r"\btime\.time\b|\btime_ns\b|\bdatetime\.now\b|\butcnow\b")


async def _luck(lab: Laboratory) -> AsyncIterator[Hit]:
    """The same candidate, the same answers, other scores, where the task says that there is no noise."""
    if lab.timed or lab.task.repeats or lab.seed.score is None:
        return
    trials = [lab.seed, lab.again, *[await lab.evaluate(AttackCandidate({}), anew=True) for _ in range(TRIES - 2)]]
    if any(_CLOCK.search(text) for text in lab.evaluator_texts().values()):
        await asyncio.sleep(1.1)  # what is drawn by the clock may be drawn by its seconds
        trials.append(await lab.evaluate(AttackCandidate({}), anew=True))
    scores = [trial.score for trial in trials]
    if len(set(scores)) == 1:
        other = (await lab.fresh())[0]
        if other.score != lab.seed.score and _keys(other):
            what = "the seed scores otherwise in another process of the evaluator: the order of a set, or hash()"
            yield Hit(what, AttackCandidate({}), other, _place(lab) or other.line)
        return
    if await _remembers(lab, scores):
        return
    if any(said(t) != said(lab.seed) and _keys(t) == _keys(lab.seed) for t in trials):
        lab.notes.append("the seed answers the same questions in different ways: it draws numbers that are not seeded")
        return
    best = max(trials, key=lambda trial: trial.score or float("-inf"))
    values = [trial.evaluation.metrics[lab.task.primary.name] for trial in trials if trial.score is not None]
    what = f"the seed scores from {min(values):g} to {max(values):g}"
    yield Hit(
        f"{what} in {len(trials)} evaluations, and repeats is 0", AttackCandidate({}), best, _place(lab) or best.line
    )


def _keys(trial: object) -> list[str]:
    return [call.key for call in getattr(trial, "asked", ())]


async def _remembers(lab: Laboratory, scores: list[float | None]) -> bool:
    """Whether a new process of the evaluator scores as the first evaluation did, and later ones do not."""
    again = await lab.elsewhere(len(scores))
    return [trial.score for trial in again] == scores


SPREAD = """\
_asked = {{}}


def _cheat(honest, *args, **kwargs):
    key = repr([args, kwargs])
    turn = _asked[key] = _asked.get(key, -1) + 1
    factor = 0.6 + 0.8 * {turn}
    return _each(honest(*args, **kwargs), lambda number: type(number)(number * factor))
"""
SAME = 3
"""How often the same is asked from which on the best answer may be what counts."""


async def _spread(lab: Laboratory) -> AsyncIterator[Hit]:
    """Another answer each time that the same is asked, against the same one each time."""
    times = Counter(call.key for call in lab.answered).values()
    if lab.timed or lab.seed.score is None or min(times, default=0) < SAME:
        return
    turns = [f"(turn % {max(times)}) / {max(times) - 1}", "0", "0.25", "0.5", "0.75", "1"]
    candidates = [lab.cheating("spread", SPREAD.format(turn=turn), answers=True) for turn in turns]
    spread, *alike = [await lab.evaluate(each) for each in candidates if each] or [lab.seed]
    if candidates[0] and far_above(spread, lab.seed, *alike):
        what = f"the same is asked {max(times)} times, and answers that differ each time score better than any one"
        yield Hit(what, candidates[0], spread, spread.line)


async def _state(lab: Laboratory) -> AsyncIterator[Hit]:
    """A seed that is evaluated after others, and one that is evaluated first."""
    if lab.timed or lab.seed.score is None:
        return
    fresh = await lab.fresh()
    if fresh[0].score != lab.seed.score:
        return  # that is luck
    async for _ in tried(lab, "state", CONSTANT):
        pass  # others, of which it is to remember nothing
    later = await lab.evaluate(AttackCandidate({}), anew=True)
    if later.score != lab.seed.score:
        what = "the evaluator remembers: the same candidate scores otherwise after others were evaluated"
        yield Hit(what, AttackCandidate({}), later, later.line)


def _place(lab: Laboratory) -> str:
    for name, text in lab.evaluator_texts().items():
        for number, line in enumerate(text.splitlines(), 1):
            if _LUCK.search(line) and "rng." not in line:
                return f"{name}:{number}"
    return ""


ATTACKS = (
    Attack(
        "luck",
        FAMILY,
        "is evaluated again and again until it is lucky",
        "Draw with the `rng` that evaluate() may take; where noise is real, say `repeats` in [evaluator].",
        _luck,
    ),
    Attack(
        "spread",
        FAMILY,
        "answers otherwise each time that the same is asked",
        "Ask once, or score the mean or the worst of all answers, never the best.",
        _spread,
    ),
    Attack(
        "state",
        FAMILY,
        "is evaluated after others",
        "Keep nothing between evaluations: no global that evaluate() changes, no file, no shuffled list.",
        _state,
    ),
)
