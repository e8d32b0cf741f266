"""What a paid call is told, and what that costs: tokens of the questions of whole runs, by section of the brief.

Run: `python benchmarks/brief_tokens.py [--proposals 60] [--folder DIR] [--json FILE]`. Three runs with one scripted
model behind two editors: `small`, a module of 20 lines, which it rewrites whole; `large`, one of 2,000 lines, of which
it changes the function that the profile in the feedback names; `blind`, the same without a profile. It knows only what
its question says: of a function that is not shown it asks to READ more. Scores follow from what it wrote; every fourth
idea fails a test, whose report is the feedback. Each question is counted, answers to READ and repairs too. In DIR each
question is kept, to be read. To compare with an older commit: copy this file into `benchmarks/` of a worktree of it,
and run it there.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT)]

from evogit.agents.editor import Editor  # noqa: E402
from evogit.config import load_task  # noqa: E402
from evogit.config.run_settings import AgentSpec  # noqa: E402
from evogit.core import Cost, Evaluation, Evidence  # noqa: E402
from evogit.llm import Account, Price, Question, TokenUsage, estimate_tokens  # noqa: E402
from evogit.repository import Repository  # noqa: E402
from evogit.run import Run, Settings  # noqa: E402
from evogit.testing import Asked, InMemoryBackend  # noqa: E402

TASK = """
name = "{name}"
goal = "Make the functions of {path} faster: the profile says which one takes longest. Results must stay the same."
editable = ["src/*.py"]
[metrics.speed]
direction = "maximize"
[evaluator]
kind = "python"
file = "evaluator/evaluate.py"
splits = ["train"]
"""

PARTS = 154
"""Functions of the large module."""

PASSING = "\n".join(f"tests/test_part{number}.py {'.' * 60} [{number * 5:3}%]" for number in range(20))
"""What a test runner prints of tests that pass."""


# --- the modules ----------------------------------------------------------------------------------------------------


def function(number: int, idea: int, lines: int) -> str:
    """A function of so many lines; `idea` is how it does what it does."""
    head = [f"def work_{number}(values):", f'    """Part {number} of the work."""', f"    total = {idea}"]
    body = [f"    total += sum(value * {step + idea % 7} for value in values[{step}:])" for step in range(lines - 5)]
    return "\n".join([*head, *body, "    return total", ""])


def small(rng: random.Random, growth: int) -> str:
    """A module of 20 lines, or what became of it: whole rewrites get longer."""
    return '"""One part."""\n\n\n' + function(0, rng.randrange(10**6), 16 + growth)


def large() -> str:
    """A module of 2,000 lines."""
    return '"""Many parts."""\n\n' + "\n\n".join(f"\n{function(number, 0, 10)}" for number in range(PARTS))


# --- the model ------------------------------------------------------------------------------------------------------

SHOWN = re.compile(r"^def (work_\d+)\(values\):\n(?:    .*\n)+?    return total$", re.MULTILINE)
HOT = re.compile(r"seconds in (work_\d+)")


@dataclass
class Reading:
    """The model: it changes what it is shown, and asks for what it is not shown."""

    whole: bool
    folder: Path | None
    name: str = "reading"
    price: Price | None = None
    context: int = 100_000
    asked: list[tuple[int, Counter[str]]] = field(default_factory=list)

    async def ask(self, question: Question, account: Account) -> str:
        """Answer, and count what was asked."""
        texts = [message.content for message in question.messages]
        self.asked.append((question.attempt, Counter(dict(sections(texts)))))
        if self.folder:
            told = "\n\n".join(f"# {each.role}\n\n{each.content}" for each in question.messages)
            (self.folder / f"{len(self.asked):03}-move{question.move}-{question.attempt}.md").write_text(told)
        await asyncio.sleep(0.001)
        account.charge(self, TokenUsage(prompt=sum(map(estimate_tokens, texts)), completion=100))
        return self._answer(texts, random.Random(question.move))

    def _answer(self, texts: list[str], rng: random.Random) -> str:
        if self.whole:
            return self._edit("WRITE src/part.py", small(rng, rng.randrange(40)), "END")
        told = "\n".join(texts[1:])
        hot = HOT.findall(told)
        shown = {found[1]: found[0] for found in SHOWN.finditer(told)}
        name = hot[0] if hot else f"work_{rng.randrange(PARTS)}"
        if name in shown:
            new = function(int(name.removeprefix("work_")), rng.randrange(10**6), 9 + rng.randrange(3))
            return self._edit("SEARCH src/parts.py", f"{shown[name]}\n=======\n{new.rstrip()}\n", "REPLACE")
        return f"<<<<<<< READ src/parts.py:{name}\n"

    def _edit(self, kind: str, text: str, end: str) -> str:
        title = f"one pass over the values of {re.findall('work_[0-9]+', text)[0]}"
        return f"Fewer passes.\n\nTITLE: {title}\n\n<<<<<<< {kind}\n{text}>>>>>>> {end}\n"


def sections(texts: list[str]) -> Iterator[tuple[str, int]]:
    """Heading -> tokens of a question."""
    yield "Rules", estimate_tokens(texts[0])
    for part in re.split(r"^(?=## )", texts[1], flags=re.MULTILINE):
        yield part.partition("\n")[0].lstrip("# "), estimate_tokens(part)
    yield "(second turns)", sum(map(estimate_tokens, texts[2:]))


# --- the evaluator --------------------------------------------------------------------------------------------------


def judged(text: str, *, profiled: bool) -> tuple[Evaluation, Evidence]:
    """A test fails for every fourth idea; of the others some are faster; a profile names the slowest function."""
    ideas = [int(found) for found in re.findall(r"^    total = (\d+)$", text, re.MULTILINE)]
    bad = [number for number, idea in enumerate(ideas) if idea % 4 == 1]
    cost = Cost(wall=1.5, cpu=1.2, memory=40_000_000)
    if bad:
        said = f"E       assert work_{bad[0]}([1, 2, 3]) == 11\nE       AssertionError: got {ideas[bad[0]] % 97}"
        log = f"{PASSING}\n{said}\nFAILED tests/test_part.py::test_{bad[0]} - assert 11\n"
        return Evaluation(status="invalid", reason="1 of 1,200 tests failed", cost=cost), Evidence(log=log)
    speeds = [idea % 1000 / 10 for idea in ideas]
    slowest = min(range(len(speeds)), key=speeds.__getitem__)
    profile = f"{1.5:.2f} seconds in work_{slowest}"
    metrics = {"speed": sum(speeds)}
    evaluation = Evaluation(status="ok", metrics=metrics, cases={"profile": metrics}, cost=cost)
    return evaluation, Evidence(
        log=f"{PASSING}\n1200 passed in 1.31s\n", feedback={"profile": profile} if profiled else {}
    )


# --- runs -----------------------------------------------------------------------------------------------------------


def run(name: str, path: str, seed: str, model: Reading, proposals: int, folder: Path) -> dict[str, float]:
    """One run; what its questions cost."""
    task_folder = folder / "task"
    (task_folder / "seed" / "src").mkdir(parents=True)
    (task_folder / "evaluator").mkdir()
    (task_folder / "task.toml").write_text(TASK.format(name=name, path=path))
    (task_folder / "evaluator" / "evaluate.py").write_text("def evaluate(program, split):\n    yield\n")
    (task_folder / "seed" / path).write_text(seed)
    task = load_task(task_folder)

    def judge(asked: Asked) -> tuple[Evaluation, Evidence]:
        return judged(asked.changed[path].decode() if asked.changed else seed, profiled=name != "blind")

    run = Run(
        Repository.create(folder / "repository"),
        task,
        name,
        Settings(population=(AgentSpec("editor", "reading", 2),), proposals=proposals, seed=1, deterministic=True),
        agents=[Editor(model), Editor(model)],
        backend=InMemoryBackend(task, judge),
    )
    asyncio.run(run.evolve())
    counted = sum((sections for _, sections in model.asked), Counter[str]())
    briefs = sum(attempt == 0 for attempt, _ in model.asked)
    scores = run.history.scores
    best = scores.fitness(run.history.best or "") or 0.0
    row = {"briefs": briefs, "questions": len(model.asked), "tokens": sum(counted.values()), "best": best}
    row["gain per 1,000 tokens"] = (best - (scores.fitness(run.history.seed or "") or 0.0)) / row["tokens"] * 1000
    row["tokens a move"] = row["tokens"] / briefs
    return row | {heading: tokens / briefs for heading, tokens in counted.items()}


def main() -> None:
    """Run both, print what a move cost and where it went, and write JSON where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--proposals", type=int, default=60)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    rows = {}
    for name, path, seed in (
        ("small", "src/part.py", small(random.Random(1), 0)),
        ("large", "src/parts.py", large()),
        ("blind", "src/parts.py", large()),
    ):
        kept = asked.folder / name if asked.folder else None
        if kept:
            kept.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            model = Reading(name == "small", kept)
            rows[name] = run(name, path, seed, model, asked.proposals, Path(folder))
    print(f"{'':45}" + "".join(f"{name:>12}" for name in rows))
    for heading in dict.fromkeys(heading for row in rows.values() for heading in row):
        print(f"{heading[:44]:45}" + "".join(f"{row.get(heading, 0):12,.2f}" for row in rows.values()))
    if asked.json:
        asked.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
