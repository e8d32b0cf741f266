"""Histories of a few candidates, told event by event."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from evogit.agents import Agent, Brief, Proposal
from evogit.config import Task
from evogit.core import Evaluation, Evidence, Metric
from evogit.events import Evaluated, TaskChanged
from evogit.selection import Move, Selector
from evogit.testing import Answer, Asked, InMemoryBackend, RecordedHistory

METRICS = (Metric(name="m", direction="maximize", primary=True), Metric(name="n", direction="minimize"))


class Born(RecordedHistory):
    """A history; candidates are named by their numbers, the seed is 0."""

    def __init__(self, agents: Sequence[str] = ("a1",), metrics: Sequence[Metric] = METRICS, repeats: int = 0) -> None:
        super().__init__(
            metrics=tuple(metrics),
            evaluator="v1",
            agents=tuple(agents),
            population="refs/heads/evogit/r/",
            editable=(),
            repeats=repeats,
        )
        self.ids = list[str]()
        self.metrics = tuple(metrics)
        self.evaluator = "v1"

    def candidate(self, *parents: int, agent: str = "a1", **known: Any) -> int:
        """One that waits for its evaluation."""
        number = len(self.ids)
        self.ids.append(self.propose(*(self.ids[each] for each in parents), agent=agent, move=number, **known))
        return number

    def judge(
        self,
        number: int,
        value: float | None,
        other: float = 0.0,
        cases: Mapping[str, float] | None = None,
        **more: Any,
    ) -> None:
        """Judge one; None failed."""
        told = {name: {"m": each} for name, each in (cases or {}).items()}
        ok = {"status": "ok", "metrics": {"m": value, "n": other}, "cases": told}
        failed = {"status": "crashed"}
        known = {"evaluator": self.evaluator, **(ok if value is not None else failed), **more}
        self.append(Evaluated(candidate=self.ids[number], evaluation=Evaluation(**known)))

    def born(self, value: float | None, *parents: int, agent: str = "a1", **known: Any) -> int:
        """One that was evaluated."""
        number = self.candidate(*parents, agent=agent)
        self.judge(number, value, **known)
        return number

    def decide(self, kind: Any, *numbers: int, **known: Any) -> str:
        return super().decide(kind, *(self.ids[each] for each in numbers), **known)

    def adopt(self, agent: str, number: int) -> None:
        super().adopt(self.ids[number], agent)

    def change_task(self) -> None:
        """Evaluations until now rank nobody any more."""
        self.evaluator += "'"
        known: dict[str, Any] = {"task_digest": "", "split": "train", "editable": ()}
        self.append(TaskChanged(by="Ada", metrics=self.metrics, evaluator=self.evaluator, **known))

    def moves(self, selector: Selector, agent: str = "a1", times: int = 1000) -> list[Move]:
        rng = random.Random(1)
        return [selector.next_move(self.history, agent, rng) for _ in range(times)]

    def shares(self, selector: Selector, agent: str = "a1", times: int = 1000) -> dict[int, float]:
        """How often each candidate is the first parent of a mutation."""
        moves = [move for move in self.moves(selector, agent, times) if move.operator == "mutation"]
        chosen = Counter(self.ids.index(move.parents[0]) for move in moves)
        return {number: times / chosen.total() for number, times in sorted(chosen.items())}


class Scribe(Agent):
    """Adds a line of its own to one of two files."""

    kind = "scribe"

    async def propose(self, brief: Brief, rng: random.Random) -> Proposal:
        await asyncio.sleep(0)
        path = rng.choice(("program.py", "extra/notes.py"))
        text = brief.files.get(path, b"") + b"# %d\n" % rng.getrandbits(40)
        return Proposal(changes={path: text}, title="a line")


class Lottery(InMemoryBackend):
    """Evaluates by chance, but equal trees alike."""

    def __init__(self, task: Task) -> None:
        super().__init__(task, self._draw)

    def _draw(self, asked: Asked) -> Answer:
        cases = {name: {"score": -float(random.Random(asked.tree + name).randrange(20))} for name in ("x", "y", "z")}
        total = sum(values["score"] for values in cases.values())
        return Evaluation(status="ok", metrics={"score": total}, cases=cases, split=asked.split), Evidence()


CREW = (Scribe(), Scribe(), Scribe())
