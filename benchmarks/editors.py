"""What editors cost, and what becomes of their attempts, where the model answers at once and evaluating takes little.

The task is the landscape curve_fit, evaluated in real sandboxes (bubblewrap). The model makes one random typed edit of
the parent in the prompt, and settles each conflict by a coin; its reply depends on its seed, the parent's text, and how
often it was asked of that text, so that whatever differs between two versions of EvoGit is EvoGit's own.
"""

from __future__ import annotations

import ast
import asyncio
import random
import re
from collections import Counter
from pathlib import Path

from meter import Meter, cpu_ms

from evogit.config import load_task
from evogit.config.run_settings import AgentSpec
from evogit.llm import Account, Price, Question, TokenUsage, estimate_tokens
from evogit.repository import Repository
from evogit.run import Run, Settings

TASK = Path(__file__).parent / "landscapes" / "curve_fit"
FILE = re.compile(r"^File model\.py:\n(`{3,})\n(.*?)^\1$", re.DOTALL | re.MULTILINE)
CONFLICT = re.compile(r"^<{7,} ours\n(.*?)^\|{7,} base\n.*?^={7,}\n(.*?)^>{7,} theirs\n", re.DOTALL | re.MULTILINE)
OPERATORS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add}
LARGER_STEP = 0.2
"""Chance that a number is moved by up to one or so, instead of by a share of itself."""
SWAP = 0.1
"""Chance that an operator is swapped, instead of a number changed."""


class TypedEdits:
    """A model that answers at once, with a change that it makes without understanding anything."""

    price: Price | None = Price(prompt=0, cached=0, completion=0)
    context: int = 100_000
    name = "instant"

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._asked: Counter[str] = Counter()

    async def ask(self, question: Question, account: Account) -> str:
        """The n-th reply to questions with this parent."""
        account.check()
        await asyncio.sleep(0)
        prompt = "\n".join(message.content for message in question.messages)
        found = FILE.search(prompt)
        assert found, f"expected the file in the prompt, got {prompt}"
        text = found[2]
        self._asked[text] += 1
        rng = random.Random(f"{self._seed} {self._asked[text]} {text}")
        changed, done = settled(text, rng) if CONFLICT.search(text) else edited(text, rng)
        reply = f"One more try.\n\nTITLE: {done}\n\n<<<<<<< WRITE model.py\n{changed}\n>>>>>>> END\n"
        usage = TokenUsage(prompt=estimate_tokens(prompt), completion=estimate_tokens(reply), estimated=True)
        account.charge(self, usage)
        return reply


def settled(text: str, rng: random.Random) -> tuple[str, str]:
    """The text with one side of each conflict."""
    return CONFLICT.sub(lambda found: rng.choice([found[1], found[2]]), text).rstrip("\n"), "settle what differs"


def edited(text: str, rng: random.Random) -> tuple[str, str]:
    """The text with one number or one operator changed."""
    nodes = list(ast.walk(ast.parse(text)))
    numbers = [node for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, int | float)]
    formulas = [node for node in nodes if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS]
    if formulas and (rng.random() < SWAP or not numbers):
        formula = rng.choice(formulas)
        formula.op = OPERATORS[type(formula.op)]()
        return replaced(text, formula, ast.unparse(formula)), "swap an operator"
    number = rng.choice(numbers)
    before = float(number.value)  # type: ignore[arg-type]  # that is what was looked for
    wide = before == 0 or rng.random() < LARGER_STEP
    after = round(before + rng.gauss(0, 1) if wide else before * (1 + rng.gauss(0, 0.2)), 4)
    return replaced(text, number, f"{after!r}"), f"{before:g} becomes {after:g}"


def replaced(text: str, node: ast.expr, by: str) -> str:
    """The text with other source in the place of a node; without the last line's end."""
    lines = text.splitlines()
    last = (node.end_lineno or node.lineno) - 1
    rest = lines[last][node.end_col_offset :]
    lines[node.lineno - 1 : last + 1] = [lines[node.lineno - 1][: node.col_offset] + by + rest]
    return "\n".join(lines)


def work(folder: Path, *, editors: int, seed: int, evaluations: int, proposals: int | None = None) -> Meter:
    """Let the editors work; readings at the start, with the last evaluation, and at the end."""
    model, meter = TypedEdits(seed), Meter([evaluations])
    meter.read()
    settings = Settings(
        population=(AgentSpec("editor", model.name, editors),),
        evaluations=evaluations,
        proposals=proposals,
        jobs=2,
        seed=seed,
        sandbox="bubblewrap",
    )
    repository = Repository.create(folder / "repository")
    run = Run(repository, load_task(TASK), "editors", settings, meter, models=lambda name: model)
    asyncio.run(run.evolve())
    meter.read()
    return meter


def own_cpu_ms(meter: Meter) -> float:
    """Milliseconds of CPU per candidate, of the engine and evaluator processes, the start of all included."""
    first, last = meter.readings[:2]
    return cpu_ms(first, last) - 1000 * last.nested / last.evaluated


def supervisors_cpu_ms(meter: Meter) -> float:
    """Milliseconds of CPU per candidate of what the sandboxes used: all of theirs but what candidates did."""
    last = meter.readings[1]
    return 1000 * (last.nested - meter.candidates_cpu) / last.evaluated
