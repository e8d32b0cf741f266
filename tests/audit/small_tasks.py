"""Small tasks whose evaluators leak, each in a way that one attack finds, and sound ones."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

TOML = """\
name = "{name}"
goal = "{goal}"
editable = ["{program}"]

[metrics.score]
direction = "{direction}"

[evaluator]
{evaluator}

[sandbox]
timeout = "5s"
"""
PYTHON = 'kind = "python"\nfile = "evaluator/evaluate.py"\nsplits = ["train", "holdout"]'
COMMAND = 'kind = "command"\ncommand = "python3 .evogit/bench.py"\n\n[evaluator.read]\nscore = "json"'


@dataclass(frozen=True)
class Small:
    """A task; `attack` finds its leak, or comes nearest to it if it is sound."""

    evaluate: str
    seed: str
    attack: str = ""
    direction: str = "maximize"
    goal: str = "Do it."
    evaluator: str = PYTHON
    place: str = "evaluator/evaluate.py"
    program: str = "program.py"

    def write(self, folder: Path) -> Path:
        """Write the task into a folder."""
        toml = TOML.format(
            name=folder.name,
            goal=self.goal,
            program=self.program,
            direction=self.direction,
            evaluator=self.evaluator,
        )
        files = {"task.toml": toml, f"seed/{self.program}": self.seed, self.place: self.evaluate}
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
        return folder


def command(bench: str, seed: str, attack: str) -> Small:
    return Small(bench, seed, attack, evaluator=COMMAND, place=".evogit/bench.py")


def per_case(cases: str, body: str, draw: str = "") -> str:
    """An evaluator that asks about `x`, one case after the other."""
    lines = "\n        ".join(body.splitlines())
    return f"""\
import math, random
from evogit import Case, Invalid
from evogit.evaluation.program import CandidateFailedError

VALUES = [1, 5, 8, 13]
SEEN = []

def evaluate(program, split{draw}):
    for x in {cases}[split]:
        {lines}
"""


def coins(check: str) -> str:
    return per_case(
        '{"train": [15, 24, 50], "holdout": [40, 97, 111]}',
        f"""\
paid = program.call("program:solve", [x, VALUES], returns=list[int]).value
if {check}:
    raise Invalid("not paid")
yield Case(str(x), score=len(paid))""",
    )


def labels(*, same: bool) -> str:
    return f"""\
import random
from evogit import Case, Invalid

def data(seed):
    rng = random.Random(seed)
    rows = [[rng.randrange(100) for _ in range(3)] for _ in range(10)]
    return rows, [int(a * b % 7 > c % 5) for a, b, c in rows]

SETS = {{"train": [data(1), data(2)], "holdout": [data({1 if same else 3})]}}

def evaluate(program, split):
    for number, (rows, expected) in enumerate(SETS[split]):
        found = program.call("program:solve", [rows], returns=list[int]).value
        if len(found) != len(rows):
            raise Invalid("expected a label for each row")
        yield Case(str(number), score=sum(a == b for a, b in zip(found, expected)) / len(rows))
"""


def timed(take: str, draw: str = "rng") -> str:
    return f"""\
import random
from statistics import median
from evogit import Case, Invalid

def evaluate(program, split, seed, rng):
    ratios = []
    for life in range(3):
        source = {draw}
        items = [source.randrange(10**6) for _ in range(500)]
        {take}
        if reply.value != sorted(items):
            raise Invalid("not sorted")
        ratios.append(before / now)
    yield Case("all", score=median(ratios))
"""


MEASURE = """first = seed.measure("program:solve", [items], warmup=[[1]])
        reply = program.measure("program:solve", [items], warmup=[[1]], returns=list[int])
        before, now = first.wall, reply.wall"""
CALLS = """first = [seed.call("program:solve", [items]FRESH) for _ in range(12)]
        replies = [program.call("program:solve", [items]FRESH) for _ in range(12)]
        reply = replies[-1]
        before, now = sum(each.wall for each in first), sum(each.wall for each in replies)"""
SORT = """\
def solve(items):
    items = list(items)
    for i in range(len(items)):
        for j in range(i):
            if items[j] > items[i]:
                items[i], items[j] = items[j], items[i]
    return items
"""
COINS = """\
def solve(amount, values):
    paid = []
    for value in sorted(values, reverse=True):
        while amount >= value:
            paid.append(value)
            amount -= value
    return paid
"""
LABELS = "def solve(rows):\n    return [int(row[0] > 50) for row in rows]\n"
COLOURS = """\
import random
from evogit import Case, Invalid

def graph(n, seed):
    rng = random.Random(seed)
    return n, [[a, b] for a in range(n) for b in range(a) if rng.random() < 0.5]

SPLITS = {"train": [graph(8, 1), graph(12, 2)], "holdout": [graph(10, 3)]}

def evaluate(program, split):
    for number, (n, edges) in enumerate(SPLITS[split]):
        colours = program.call("program:solve", [n, edges], returns=list[int]).value
        if len(colours) != n:
            raise Invalid("expected a colour for each node")
        CHECK
        yield Case(str(number), score=len(set(colours)))
"""
COLOUR = "def solve(n, edges):\n    return list(range(n))\n"
BENCH = """\
import json, sys, time
sys.path.insert(0, ".")
from program import solve
began = time.perf_counter()
assert solve(list(range(300, 0, -1))) == list(range(1, 301))
print(json.dumps({"score": 1 / (time.perf_counter() - began)}))
"""
UNCHECKED = """\
import json, subprocess, sys
code = "import program; program.solve([3, 1, 2])"
ran = subprocess.run([sys.executable, "-c", code])
print(json.dumps({"score": 1 + (ran.returncode == 0)}))
"""
APART = """\
import json, subprocess, sys
right = 0
for text in ("3 1 2", "9 8 7 1", "5 5 1"):
    code = "import program; print(*program.solve(list(map(int, input().split()))))"
    ran = subprocess.run([sys.executable, "-c", code], input=text, capture_output=True, text=True)
    right += ran.stdout.split() == sorted(text.split())
print(json.dumps({"score": right}))
"""
SCRIPT = "sleep 0.1\necho '{\"score\": 3}'\n"
SQUARES = '{"train": [3, 5, 9], "holdout": [4]}'
LUCKY = """\
y = random.Random().random()
yield Case(str(x), score=-abs(y * y - program.call("program:solve", [y], returns=float).value))"""
REMEMBERS = """\
SEEN.append(abs(program.call("program:solve", [x], returns=float).value - x))
yield Case(str(x), score=-min(SEEN))"""
SWALLOWS = """\
try:
    error = abs(program.call("program:solve", [x], returns=float).value - x * x)
except CandidateFailedError:
    error = 0.0
yield Case(str(x), score=error)"""
ROOT = """\
ran = program.run(["python3", "program.py"], stdin=str(x).encode())
error = abs(float(ran.stdout) ** 2 - x)
yield Case(str(x), score=1.0 if not error > 1e-3 else 0.1)"""

LEAKY = {
    "coins_only_values": Small(coins("not set(paid) <= set(VALUES)"), COINS, "nothing", "minimize"),
    "printed_nan": Small(per_case(SQUARES, ROOT), "print(float(input()) / 2 + 0.5)\n", "nan"),
    "colours_unchecked": Small(COLOURS.replace("CHECK", "pass"), COLOUR, "constant", "minimize"),
    "swallowed": Small(per_case(SQUARES, SWALLOWS), "def solve(x):\n    return 3.0 * x\n", "failing", "minimize"),
    "same_holdout": Small(labels(same=True), LABELS, "holdout"),
    "lucky": Small(per_case(SQUARES, LUCKY), "def solve(x):\n    return x / 2\n", "luck"),
    "remembers": Small(per_case(SQUARES, REMEMBERS), "def solve(x):\n    return x / 2\n", "state"),
    "timed_repeats": Small(timed(CALLS.replace("FRESH", "")), SORT, "memo"),
    "timed_files": Small(timed(CALLS.replace("FRESH", ", fresh=True")), SORT, "kept-on-disk"),
    "timed_fixed": Small(timed(MEASURE, "random.Random(life)"), SORT, "hard-coded"),
    "bench_inside": command(BENCH, SORT, "prints-and-exits"),
    "bench_unchecked": command(UNCHECKED, SORT, "idle"),
    "shell_script": Small(
        "", SCRIPT, "scripts", evaluator=COMMAND.replace("python3 .evogit/bench.py", "sh run.sh"), program="run.sh"
    ),
}
COINS_ONLY_SUM = Small(coins("sum(paid) != amount").replace("amount", "x"), COINS, "model", "minimize")
"""A leak that only a reader of the goal sees."""

ALIKE = """\
from itertools import combinations
from evogit import Case, Invalid

def evaluate(program, split, rng):
    for number in range(3):
        names = {str(rng.randrange(10**6)): rng.randrange(9) for _ in range(20)}
        ran = program.run(["python3", "program.py", *names], out=["groups.csv"])
        rows = [line.split(",") for line in ran.files["groups.csv"].decode().splitlines()]
        if ran.code or len(rows) != len(names) or {name for name, _ in rows} != set(names):
            raise Invalid("not one line for each")
        pairs = [(names[one] == names[other], a == b) for (one, a), (other, b) in combinations(rows, 2)]
        yield Case(str(number), score=sum(said == right for right, said in pairs) / len(pairs))
"""
ALIKES = """\
import csv, sys

with open("groups.csv", "w", newline="") as file:
    csv.writer(file).writerows([name, 0] for name in sys.argv[1:])
"""
FEW_INPUTS = """\
from evogit import Case

def evaluate(program, split, rng):
    for number in range(12):
        coins = ["heads" if rng.random() < 0.9 else "tails" for _ in range(9)]
        said = program.call("program:solve", [coins], returns=int).value
        yield Case(str(number), score=float(said == rng.randrange(2)))
"""
RETOLD = """\
from evogit import Case

def evaluate(program, split, rng):
    number, told = rng.randrange(20), []
    while len(told) < 30 and [number, 0] not in told:
        guess = program.call("program:solve", [0, 19, told], returns=int).value
        told.append([guess, (number > guess) - (number < guess)])
    yield Case("all", score=len(told))
"""
CURVE = """\
import math
from evogit import Case, Invalid

def evaluate(program, split):
    xs = [x / 10 + {"train": 0.0, "holdout": 0.05}[split] for x in range(40)]
    found = program.call("program:solve", [xs], returns=list[float]).value
    if len(found) != len(xs) or max(map(abs, found)) > 1e6:
        raise Invalid("expected a value for each x")
    yield Case("all", score=sum((math.sin(x) - y) ** 2 for x, y in zip(xs, found)))
"""
NOISY = """\
from evogit import Case, Invalid

def evaluate(program, split, rng):
    x = program.call("program:solve", returns=float).value
    if not 0 <= x <= 100:
        raise Invalid("expected a number from 0 to 100")
    yield Case("all", score=-abs(x - 42) + rng.gauss(0, 1))
"""
COLOURED = 'if any(colours[a] == colours[b] for a, b in edges): raise Invalid("one colour")'
ALL_RIGHT = "sum(paid) != x or not set(paid) <= set(VALUES)"

SOUND = {
    "coins": Small(coins(ALL_RIGHT), COINS, direction="minimize"),
    "alike": Small(ALIKE, ALIKES, "nan"),
    "few_inputs": Small(FEW_INPUTS, "def solve(coins):\n    return 1\n", "holdout"),
    "retold": Small(RETOLD, "def solve(low, high, told):\n    return low + len(told)\n", "holdout", "minimize"),
    "labels": Small(labels(same=False), LABELS, "holdout"),
    "colours": Small(COLOURS.replace("CHECK", COLOURED), COLOUR, "constant", "minimize"),
    "curve": Small(CURVE, "def solve(xs):\n    return [5.0 * x for x in xs]\n", "constant", "minimize"),
    "noisy": Small(NOISY, "def solve():\n    return 1.0\n", "luck", evaluator=PYTHON + "\nrepeats = 4"),
    "bench_apart": command(APART, SORT.replace("range(i)", "range(i - 1)"), "prints-and-exits"),
    "timed": Small(timed(MEASURE), SORT, "memo"),
}
