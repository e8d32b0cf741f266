"""What briefs cost: tokens and time by the size of the repository, what a prompt cache saves, and each kind's pace.

Run: `python benchmarks/agents.py --table briefs|prefixes|caches|kinds`. Tokens are a quarter of the bytes, as EvoGit
estimates them. The endpoint is a local server; its prompt cache takes beginnings of a prompt that it has seen, in
blocks of 128 tokens from 1,024 on, as OpenAI documents (platform.openai.com/docs/guides/prompt-caching), and forgets
none: so the cached shares are the most that such a cache can save. They are what the run itself accounts for.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from engine import NullAgent, NullExecutor

from evogit.agents import Brief, Proposal, coder
from evogit.agents.briefs import briefing
from evogit.agents.programs.registry import Programs
from evogit.breeding.breeder import Breeder
from evogit.config import Task, load_task
from evogit.config.run_settings import AgentSpec
from evogit.config.user_settings import CommandTable, ModelTable, UserSettings
from evogit.core import Evaluation, Evidence, Files
from evogit.history import History
from evogit.llm.registry import OpenModels
from evogit.repository import Repository
from evogit.run import Run, Settings
from tests.openai_server import Behaviour, Request, reply, serve

SIZES = (1, 10, 100, 1_000, 5_000)
BLOCK, LEAST = 4 * 128, 4 * 1024
"""Bytes of a block of the cache, and of the shortest beginning that it keeps."""
AGENTS = 4
PROGRAM = CommandTable(argv=("sh", "-c", 'echo "SEEN = $(od -An -N8 -tu8 /dev/urandom)" >> src/package0/module0.py'))
FUNCTION = '''

def work_{file}_{number}(values, factor={factor}):
    """Sum what is larger than the factor, each value times its place."""
    total = 0
    for place, value in enumerate(values):
        if value > factor:
            total += place * value
    return total
'''
GOAL = "Make src/package0/module0.py faster; what its functions return must stay the same."


def module(number: int, rng: random.Random) -> str:
    """About 1.1 kB of Python whose first line is unlike any other."""
    functions = (FUNCTION.format(file=number, number=each, factor=rng.randrange(10_000)) for each in range(4))
    return f"VERSION_{number} = {rng.getrandbits(40)}\n" + "".join(functions)


def path_of(number: int) -> str:
    """Twenty files to a folder."""
    return f"src/package{number // 20}/module{number}.py"


def project(folder: Path, files: int) -> Task:
    """A task with so many files."""
    rng = random.Random(1)
    (folder / "evaluator").mkdir(parents=True)
    (folder / "evaluator" / "evaluate.py").write_text("def evaluate(program, split):\n    yield\n")
    (folder / "task.toml").write_text(
        f'name = "project"\ngoal = "{GOAL}"\neditable = ["src/**"]\n[metrics.score]\ndirection = "maximize"\n'
        '[evaluator]\nkind = "python"\nfile = "evaluator/evaluate.py"\nsplits = ["train"]\n'
    )
    for number in range(files):
        path = folder / "seed" / path_of(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(module(number, rng))
    return load_task(folder)


class Executor(NullExecutor):
    """Judges at once: a score that rises slowly among much noise, and a few lines of feedback."""

    async def evaluate(self, tree: str, files: Files, *, split: str, repeat: int = 0) -> tuple[Evaluation, Evidence]:
        """Scores depend on the tree alone, but for the trend."""
        self._score += 1
        rng = random.Random(tree)
        said = "\n".join(f"values={rng.randrange(10**6)}: {rng.random():.4f} s" for _ in range(20))
        evaluation = Evaluation(
            status="ok",
            metrics={"score": self._score / 50 + rng.gauss(0, 1)},
            cases={"speed": {"score": rng.random()}},
            split=split,
            key=tree,
        )
        return evaluation, Evidence(feedback={"speed": said})


class Editing(NullAgent):
    """Changes a file of the first ten at once."""

    async def propose(self, brief: Brief, rng: random.Random) -> Proposal:
        """A new first line."""
        path = path_of(rng.randrange(min(10, len(brief.files))))
        rest = brief.files[path].partition(b"\n")[2]
        return Proposal(changes={path: b"VERSION = %d\n%b" % (rng.getrandbits(40), rest)}, title=f"touch {path}")


# --- tokens and time ------------------------------------------------------------------------------------------------


def _grow(repository: Repository, task: Task, evaluations: int, executor: Executor) -> History:
    """The history of a run without models, of so many evaluations."""
    agents = [Editing() for _ in range(AGENTS)]
    run = Run(repository, task, "briefs", Settings(evaluations=evaluations), agents=agents, backend=executor)
    asyncio.run(run.evolve())
    return run.history


def briefs(sizes: Sequence[int] = SIZES) -> list[dict[str, Any]]:
    """Tokens and milliseconds of a brief of the best of 30 candidates, by the number of files."""
    rows = []
    for files in sizes:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            repository, task = Repository.create(folder / "repository"), project(folder / "task", files)
            history = _grow(repository, task, 30, Executor())
            rows += [_brief(repository, task, history, kind, files) for kind in ("editor", "coder")]
    return rows


def prefixes(sizes: Sequence[int] = SIZES[:-1]) -> list[dict[str, Any]]:
    """Tokens that two briefs of an editor have in common at their beginning, after 60 evaluations."""
    rows = []
    for files in sizes:
        with tempfile.TemporaryDirectory() as name:
            folder, executor = Path(name), Executor()
            repository, task = Repository.create(folder / "repository"), project(folder / "task", files)

            def of(commits: Sequence[str], history: History) -> list[str]:
                breeder = Breeder(repository, task, history)  # noqa: B023  it is called in this round alone
                told = [breeder.brief(history.phylogeny[commit], None) for commit in commits]
                written = [briefing.write(each, each.background(), 100_000) for each in told if each.background]
                return [each.rules + each.text for each in written]

            history = _grow(repository, task, 60, executor)
            heads = list(dict.fromkeys(history.heads.values()))
            child = next(each.commit for each in reversed(list(history.phylogeny)) if each.parents)
            before, next_one = of([history.phylogeny[child].parents[0], child], history)
            others = of(heads[:2], history)
            (later,) = of([history.phylogeny[child].parents[0]], _grow(repository, task, 62, executor))
            pairs = {"same parent": (before, later), "its child": (before, next_one), "two agents": tuple(others)}
            row: dict[str, Any] = {"files": files, "tokens": len(before) // 4}
            for situation, (one, other) in ((name, pair) for name, pair in pairs.items() if len(pair) == 2):
                shared = len(os.path.commonprefix([one, other])) // 4
                row |= {situation: shared, f"{situation}, share": round(4 * shared / len(other), 3)}
            rows.append(row)
    return rows


def _brief(repository: Repository, task: Task, history: History, kind: str, files: int) -> dict[str, Any]:
    breeder = Breeder(repository, task, history)
    write: Callable[..., briefing.Written] = coder.write if kind == "coder" else briefing.write
    best = history.phylogeny[history.best or history.seed or ""]
    took = []
    for _ in range(11):
        began = time.perf_counter()
        told = breeder.brief(best, None)
        assert told.background
        written = write(told, told.background(), 100_000)
        took.append(1000 * (time.perf_counter() - began))
    tokens = written.tokens
    code = tokens.get("Code", 0) + tokens.get("Files that are not shown", 0)
    return {
        "files": files,
        "kind": kind,
        "rules": tokens["Rules"],
        "code": code,
        "other": sum(tokens.values()) - tokens["Rules"] - code,
        "total": sum(tokens.values()),
        "first_ms": round(took[0], 1),
        "next_ms": round(statistics.median(took[1:]), 1),
    }


# --- a prompt cache -------------------------------------------------------------------------------------------------


class PromptCache:
    """What an endpoint that caches beginnings of prompts has seen."""

    def __init__(self) -> None:
        self._seen: set[bytes] = set()

    def cached(self, prompt: bytes) -> int:
        """Tokens of the prompt that were there already; now all of it is."""
        digest, known, going = hashlib.sha256(), 0, True
        for end in range(BLOCK, len(prompt) + 1, BLOCK):
            digest.update(prompt[end - BLOCK : end])
            key = digest.digest()
            going = going and key in self._seen
            known = end if going else known
            self._seen.add(key)
        return known // 4 if known >= LEAST else 0


def editing(rng: random.Random, files: int) -> str:
    """A whole new file of the first ten."""
    number = rng.randrange(min(10, files))
    block = f"<<<<<<< WRITE {path_of(number)}\n{module(number, rng)}>>>>>>> END\n"
    return f"One more try.\n\nTITLE: rewrite module {number}\n\n{block}"


def session(turn: int, rng: random.Random, files: int) -> str:
    """What a coder says in its session."""
    number = rng.randrange(min(10, files))
    if turn == 0:
        return f"PLAN: rewrite module {number}\n\n<<<<<<< READ {path_of(number)}\n<<<<<<< LIST src/package0\n"
    if turn == 1:
        return f"<<<<<<< GREP work_{number}_1\n"
    if turn == 2:
        return f"<<<<<<< WRITE {path_of(number)}\n{module(number, rng)}>>>>>>> END\n"
    return f"<<<<<<< FINISH rewrite module {number}\n"


def answering(files: int, latency: float, firsts: list[tuple[int, int]]) -> Callable[[Request], Behaviour]:
    """An endpoint with a cache that plays editors and coders; one reply of eight has to be mended.

    `firsts` gets, of every question that begins a move, its tokens and those that the cache had.
    """
    cache, rng = PromptCache(), random.Random(2)

    def answer(request: Request) -> Behaviour:
        messages = request.body["messages"]
        prompt = "".join(f"{each['role']}\n{each['content']}\n" for each in messages).encode()
        turn = sum(each["role"] == "assistant" for each in messages)
        if "<<<<<<< FINISH" in messages[0]["content"]:
            text = session(turn, rng, files)
        else:
            text = "I would rather talk." if turn == 0 and rng.random() < 1 / 8 else editing(rng, files)
        tokens, cached = len(prompt) // 4, cache.cached(prompt)
        if turn == 0:
            firsts.append((tokens, cached))
        return reply(text, prompt=tokens, cached=cached, completion=50, latency=latency)

    return answer


def _evolve(
    folder: Path, kind: str, files: int, evaluations: int, latency: float, firsts: list[tuple[int, int]]
) -> Run:
    population = (AgentSpec(kind, "m" if kind != "mutator" else "", AGENTS),)
    with serve([answering(files, latency, firsts)]) as server:
        user = UserSettings(models={"m": ModelTable(base_url=server.url)}, commands={"program": PROGRAM})
        models = OpenModels(user, random.Random(3))
        run = Run(
            Repository.create(folder / "repository"),
            project(folder / "task", files),
            "caches",
            Settings(population=population, evaluations=evaluations),
            models=models.get,
            programs=Programs(models, user.commands).make_agents,
            backend=Executor(),
        )
        evolve(run, models)
    return run


def evolve(run: Run, models: OpenModels) -> None:
    """Let a run evolve, and close its models in the same loop."""

    async def live() -> None:
        try:
            await run.evolve()
        finally:
            await models.close()

    asyncio.run(live())


def caches(sizes: Sequence[int] = SIZES[:-1], evaluations: int = 150, repeats: int = 3) -> list[dict[str, Any]]:
    """The cached share of the prompts of whole runs, and of the questions that begin a move; medians."""
    rows = []
    for files, kind in itertools.product(sizes, ("editor", "coder")):
        runs = []
        for _ in range(repeats):
            firsts: list[tuple[int, int]] = []
            with tempfile.TemporaryDirectory() as folder:
                spent = _evolve(Path(folder), kind, files, evaluations, 0.02, firsts).history.spent
            first = sum(cached for _, cached in firsts) / sum(tokens for tokens, _ in firsts)
            runs.append((spent.calls, spent.prompt // spent.calls, spent.cached / spent.prompt, first))
        calls, per_call, share, first = (statistics.median(each) for each in zip(*runs, strict=True))
        row = {"files": files, "kind": kind, "calls": calls, "prompt tokens a call": per_call}
        rows.append(row | {"cached": round(share, 3), "cached of first questions": round(first, 3)})
    return rows


# --- kinds ----------------------------------------------------------------------------------------------------------


def kinds(repeats: int = 3) -> list[dict[str, Any]]:
    """Candidates a second of each kind where model and judge answer at once: what EvoGit itself lets through.

    A program takes a line of shell and asks nobody: what it costs is its container, its repository, reading it back.
    """
    rows = []
    for kind, evaluations in (("mutator", 200), ("editor", 200), ("coder", 200), ("program", 40)):
        rates, cpu = [], []
        for _ in range(repeats):
            with tempfile.TemporaryDirectory() as folder:
                began, used = time.perf_counter(), time.process_time()
                run = _evolve(Path(folder), kind, 10, evaluations, 0.0, [])
                rates.append(evaluations / (time.perf_counter() - began))
                cpu.append(1000 * (time.process_time() - used) / evaluations)
        rows.append(
            {
                "kind": kind,
                "agents": AGENTS,
                "calls_per_candidate": round(run.history.spent.calls / evaluations, 2),
                "candidates_per_s": round(statistics.median(rates), 1),
                "cpu_ms_per_candidate": round(statistics.median(cpu), 1),
            }
        )
    return rows


TABLES = {"briefs": briefs, "prefixes": prefixes, "caches": caches, "kinds": kinds}


def show(rows: Sequence[dict[str, Any]]) -> None:
    """As Markdown, with the load of the machine."""
    print("| " + " | ".join(rows[0]) + " |\n|" + "---|" * len(rows[0]))
    for row in rows:
        cells = (f"{cell:,}" if isinstance(cell, int | float) else cell for cell in row.values())
        print("| " + " | ".join(cells) + " |")
    print(f"\nload averages {' '.join(f'{each:.1f}' for each in os.getloadavg())}, {os.cpu_count()} cores")
