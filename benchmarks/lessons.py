"""What a proven lesson is worth to a second, related run: `python benchmarks/lessons.py`, with a scripted model.

The model changes the method or the size at random; where its brief has a lesson that names a method, it tries that one
first. One run finds by chance which method pays, and a replay proves it. Then each of ten seeds has two runs of another
task: `--lessons-from first` and `--lessons-from none`.
"""

import asyncio
import random
import re
import tempfile
from itertools import product
from pathlib import Path
from statistics import fmean

from evogit.config import Task, load_task
from evogit.config.run_settings import AgentSpec
from evogit.llm import Account, Price, Question, TokenUsage
from evogit.repository import Repository
from evogit.review.lessons import draft_lesson, replay
from evogit.run import Run, Settings
from evogit.stats.paired_tests import greater, interval

METHODS = ("bisect", "secant", "halley", "newton", "brent", "ridders", "muller", "steffensen")
EVALUATE = """from evogit import Case\n\ndef evaluate(program, split):
    method, size = program.call("program:choice", returns=list).value
    yield Case("all", score=BONUS * (method == "newton") - abs(size - 8) / 2)\n"""
TOML = """name = "NAME"\ngoal = "Find roots quickly: NAME."\neditable = ["**"]\n[metrics.score]
direction = "maximize"\n[evaluator]\nkind = "python"\nfile = "evaluator/evaluate.py"\n"""
PROGRAM = 'METHOD = "{}"\n\n\n\nSIZE = {}\n\n\n\ndef choice():\n    return [METHOD, SIZE]\n'
MARKS = (1, 2, 4, 8, 16)  # evaluated candidates, without the seed, after which runs are compared


class Follower:
    """A model that follows a lesson of its brief, and guesses otherwise."""

    price: Price | None = Price(prompt=0, cached=0, completion=0)
    context, name = 100_000, "follower"

    def __init__(self, seed: int) -> None:
        self.seed = seed

    async def ask(self, question: Question, account: Account) -> str:
        """Change one of both: to what a lesson names unless it is there, else to a guess."""
        brief = "\n".join(message.content for message in question.messages)
        method, size = re.findall(r'METHOD = "(\w+)"', brief)[0], re.findall(r"SIZE = (\d+)", brief)[0]
        lessons = brief.partition("## Lessons of earlier runs")[2].partition("\n## ")[0]
        told = next((name for name in METHODS if name in lessons), method)
        rng = random.Random(f"{self.seed} {question.move} {question.attempt}")
        guess, size_turn = rng.choice(METHODS), rng.random() < 0.5 and told == method
        method, size = (method, str(rng.randrange(16))) if size_turn else (guess if told == method else told, size)
        account.charge(self, TokenUsage(prompt=len(brief) // 4, completion=50, estimated=True))
        return f"TITLE: use {method}\n\n<<<<<<< WRITE program.py\n{PROGRAM.format(method, size)}>>>>>>> END\n"


def evolved(folder: Path, task: Task, name: str, seed: int, source: str) -> Run:
    """A run to its end."""
    told = {"population": (AgentSpec("editor", "follower"),), "lessons_from": (source,), "deterministic": True}
    settings = Settings(evaluations=1 + MARKS[-1], proposals=80, sandbox="bubblewrap", jobs=1, **told)  # type: ignore
    run = Run(Repository.open(folder), task, name, settings, models=lambda _: Follower(seed))
    asyncio.run(run.evolve())
    return run


def task_in(folder: Path, name: str, bonus: int) -> Task:
    """A task whose best method brings so much."""
    files = {"seed/program.py": PROGRAM.format("bisect", 0), "task.toml": TOML.replace("NAME", name)}
    for place, text in {**files, "evaluator/evaluate.py": EVALUATE.replace("BONUS", str(bonus))}.items():
        (folder / name / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / name / place).write_text(text)
    return load_task(folder / name)


with tempfile.TemporaryDirectory() as scratch:
    place = Repository.create(Path(scratch, "repository")).path
    first = evolved(place, task_in(Path(scratch), "first", 5), "first", 0, "none")
    scores, graph = first.history.scores, first.history.phylogeny
    step = max(graph, key=lambda each: scores.difference(each.commit, each.parents[0])[0] if each.parents else -1.0)
    lesson, failure = asyncio.run(replay(first.context, draft_lesson(first.context, step, ""), "bubblewrap"))
    first.journal.append(lesson)
    print(f"lesson: {lesson.text}; gains {[*lesson.gains.values()]} {failure}")
    task, curves = task_in(Path(scratch), "second", 7), dict[str, list[list[float]]](none=[], first=[])
    for source, seed in product(curves, range(1, 11)):
        history = evolved(place, task, f"{source}-{seed}", seed, source).history
        values = [value for commit in history.judgements if (value := history.fitness(commit)) is not None]
        curves[source].append([max(values[: 1 + mark]) for mark in MARKS])
    for at, mark in enumerate(MARKS):
        without, told = ([curve[at] for curve in curves[source]] for source in curves)
        gains, rng = [b - a for a, b in zip(without, told, strict=True)], random.Random(0)
        low, high = interval(gains, rng)
        row = f"| {mark} | {fmean(without):.2f} | {fmean(told):.2f} | {fmean(gains):+.2f} ({low:+.2f} to {high:+.2f}) "
        print(f"{row}| {greater(gains, rng):.4f} |")
