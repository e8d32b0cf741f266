"""Small tasks whose evaluators are sound, most of them twins of leaky ones."""

from __future__ import annotations

from .small_tasks import (
    AMOUNT,
    AMOUNTS,
    ANEW,
    APART,
    BESIDE,
    BOXED,
    BOXES,
    CHOICE,
    CHOOSE,
    COINS,
    COLOUR,
    COLOURS,
    COMMAND,
    DEMAND,
    FILED,
    FILER,
    FORECAST,
    FORECASTS,
    GAMES,
    GUESS,
    INTERVAL,
    JUDGE,
    JUDGED,
    LABELS,
    MEASURE,
    MIX,
    MIXED,
    MOVE,
    MOVES,
    NAME,
    NAMED,
    PACK,
    PATTERN,
    PATTERNS,
    PERMUTED,
    PHRASE,
    PHRASES,
    PYTHON,
    REPORT,
    REPORTED,
    RETOLD,
    RETOLD_GUESS,
    RIGHT,
    SCRIPT,
    SECRET,
    SECRETS,
    SHORT,
    SHORTENED,
    SIDE,
    SIDES,
    SLOT,
    SLOTS,
    SORT,
    SORTED,
    SPAN,
    SPANS,
    SQUEEZE,
    SQUEEZED,
    STEP,
    STEPS,
    TOTAL,
    TOTALS,
    TOUR,
    TRIES,
    TRIPLE,
    TRIPLES,
    TRY,
    Small,
    coins,
    interval,
    labels,
    round_trip,
    timed,
    tour_evaluator,
)

STOCK = """\
from evogit import Case, Invalid

def evaluate(program, split, rng):
    for shop in range(3):
        chances = [rng.randrange(1, 9) for _ in range(20)]
        orders = program.call("program:solve", [chances], returns=list[int]).value
        if len(orders) != 31 or not all(0 <= order <= 30 - left for left, order in enumerate(orders)):
            raise Invalid("no such orders")
        yield Case(str(shop), score=sum(abs(20 - left - order) for left, order in enumerate(orders[:20])))
"""
ORDERS = "def solve(chances):\n    return [10 - left if left < 5 else 0 for left in range(31)]\n"
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

SOUND = {
    "stock": Small(STOCK, ORDERS, direction="minimize"),
    "alike": Small(ALIKE, ALIKES),
    "slots": Small(
        SLOTS.replace("AGAIN", 'slots[::-1] != [program.call("program:solve", [k, 12]).value for k in keys[::-1]]'),
        SLOT,
        direction="minimize",
    ),
    "worst_of_tries": Small(TRIES.replace("COUNTED", "max"), TRY, direction="minimize"),
    "sides": Small(SIDES.replace("MIXED", "rng.shuffle(cases)"), SIDE),
    "secrets": Small(SECRETS.replace("AGAIN", "code = rng.randrange(50)"), SECRET, direction="minimize"),
    "moves": Small(MOVES.replace("OPPONENT", "rng"), MOVE),
    "smoothed": Small(
        DEMAND.replace("WANTED", "40").replace("RIGHT", "levels"),
        "def solve(seen):\n    return [sum(seen[: day + 1]) / (day + 1) for day in range(len(seen))]\n",
        direction="minimize",
        goal="Say for each day how much there was, from what was seen up to that day.",
    ),
    "report": Small(REPORT.replace("NUMBER", "not math.isfinite(float(value))"), REPORTED, direction="minimize"),
    "patterns": Small(PATTERNS.replace("OTHER", '["1a", "b", "33"]'), PATTERN),
    "filed": Small(FILED.replace("AGAIN", "program.anew()"), FILER, direction="minimize"),
    "few_inputs": Small(
        """\
from evogit import Case

def evaluate(program, split, rng):
    for number in range(12):
        coins = ["heads" if rng.random() < 0.9 else "tails" for _ in range(9)]
        said = program.call("program:solve", [coins], returns=int).value
        yield Case(str(number), score=float(said == rng.randrange(2)))
""",
        "def solve(coins):\n    return 1\n",
    ),
    "short": Small(SHORT.replace("FOREIGN", "or not set(short.split()) <= set(text.split())"), SHORTENED),
    "boxes": Small(
        BOXES.replace("CONTENT", "(lambda rows: sorted(size for row in rows for size in row))"),
        BOXED,
        direction="minimize",
        goal="At most 100.",
    ),
    "retold": Small(RETOLD, RETOLD_GUESS, direction="minimize"),
    "named": Small(NAMED.replace("COUNTED", "names"), NAME),
    "choose": Small(CHOOSE.replace("CHECK", "or min(chosen, default=0) < 0"), CHOICE),
    "mix": Small(MIX.replace("LEAST", "0"), MIXED, direction="minimize"),
    "triples": Small(TRIPLES.replace("COUNTED", "tuple(sorted(row))"), TRIPLE),
    "judged": Small(JUDGED.replace("KEPT", "sum(a == b for a, b in zip(seats, wishes))"), JUDGE),
    "forecast": Small(FORECAST.replace("GIVEN", "sold[:-5]"), FORECASTS, direction="minimize"),
    "beside": Small(BESIDE.replace("FILES", '{"order.txt": b"ascending"}'), SORTED),
    "games": Small(GAMES.replace("CODE", "rng.randrange(100)"), GUESS, direction="minimize"),
    "scripts_apart": Small(SQUEEZE.replace("AGAIN", "program.anew()"), SQUEEZED, direction="minimize"),
    "phrases": Small(
        PHRASES.replace("TOLD", '"right" if got == day else "wrong"'),
        PHRASE,
        evaluator=PYTHON.replace(', "holdout"', ""),
    ),
    "totals": Small(TOTALS.replace("LOOSE", 'ran.stdout == f"total: {sum(row)}\\\\n"'), TOTAL),
    "steps": Small(STEPS.replace("LESS", ""), STEP, direction="minimize"),
    "cover": Small(
        """\
from evogit import Case, Invalid

def evaluate(program, split, rng):
    near = [[place, *rng.sample(range(20), 4)] for place in range(20)]
    chosen = program.call("program:solve", [near], returns=list[int]).value
    if not set(range(20)) <= {each for place in chosen if 0 <= place < 20 for each in near[place]}:
        raise Invalid("some are not covered")
    yield Case("all", score=len(chosen))
""",
        "def solve(near):\n    return list(range(len(near)))\n",
        direction="minimize",
    ),
    "signed_curve": Small(
        """\
import math
from evogit import Case, Invalid

def evaluate(program, split):
    xs = [x / 10 + {"train": 0.0, "holdout": 0.05}[split] for x in range(60)]
    found = program.call("program:solve", [xs], returns=list[float]).value
    if len(found) != len(xs) or max(map(abs, found)) > 1e6:
        raise Invalid("expected a value for each x")
    yield Case("all", score=sum(abs(9 * math.sin(x) - y) for x, y in zip(xs, found)))
""",
        "def solve(xs):\n    return [1.0 + x for x in xs]\n",
        direction="minimize",
    ),
    "predicted": Small(
        """\
from evogit import Case

def evaluate(program, split, rng):
    rows = [[rng.random(), rng.random()] for _ in range(30)]
    right = [int(a > 0.7) for a, _ in rows]
    model = program.call("program:fit", [rows[:20], right[:20]]).value
    found = [program.call("program:solve", [model, row], returns=int).value for row in rows[20:]]
    yield Case("all", score=sum(a == b for a, b in zip(found, right[20:])) / 10)
""",
        "def fit(rows, right):\n    return [0.9, 0.1]\n\ndef solve(model, row):\n    return int(row[1] > model[1])\n",
    ),
    "script_without_functions": Small(SCRIPT, "print(*input().split())\n", evaluator=COMMAND, place=".evogit/bench.py"),
    "round_trip": Small(
        round_trip(ANEW, "list[int]", "len(bytes(packed))"),  # which refuses what is no byte
        PACK,
        direction="minimize",
    ),
    "spans": Small(SPANS.replace("PAIRS", "((a, b) for a in chosen for b in chosen if a != b)"), SPAN),
    "amounts": Small(AMOUNTS.replace("CHECK", "or amount < 0"), AMOUNT),
    "tour": Small(tour_evaluator(PERMUTED), TOUR, direction="minimize"),
    "coins": Small(coins("sum(paid) != amount or not set(paid) <= set(VALUES)"), COINS, direction="minimize"),
    "colours": Small(
        COLOURS.replace("CHECK", 'if any(colours[a] == colours[b] for a, b in edges): raise Invalid("one colour")'),
        COLOUR,
        direction="minimize",
    ),
    "exact": Small(interval(""), INTERVAL),
    "labels": Small(labels("{right} right"), LABELS),
    "timed": Small(timed(MEASURE, RIGHT), SORT),
    "poor_curve": Small(
        """\
import math
from evogit import Case, Invalid

def evaluate(program, split):
    xs = [x / 10 + {"train": 0.0, "holdout": 0.05}[split] for x in range(40)]
    found = program.call("program:solve", [xs], returns=list[float]).value
    if len(found) != len(xs) or max(map(abs, found)) > 1e6:
        raise Invalid("expected a value for each x")
    yield Case("all", score=sum((math.sin(x) - y) ** 2 for x, y in zip(xs, found)))
""",
        "def solve(xs):\n    return [5.0 * x for x in xs]\n",
        direction="minimize",
    ),
    "constants": Small(
        """\
from evogit import Case, Invalid

def evaluate(program, split):
    weights = program.call("program:solve", returns=list[float]).value
    if len(weights) != 4 or not all(-10 <= weight <= 10 for weight in weights):
        raise Invalid("expected 4 weights from -10 to 10")
    yield Case("all", score=-sum((weight - ideal) ** 2 for weight, ideal in zip(weights, (1, 2, 0.5, 0))))
""",
        "def solve():\n    return [9.0, -9.0, 9.0, -9.0]\n",
    ),
    "noisy": Small(
        """\
from evogit import Case, Invalid

def evaluate(program, split, rng):
    x = program.call("program:solve", returns=float).value
    if not 0 <= x <= 100:
        raise Invalid("expected a number from 0 to 100")
    yield Case("all", score=-abs(x - 42) + rng.gauss(0, 1))
""",
        "def solve():\n    return 1.0\n",
        evaluator=PYTHON + "\nrepeats = 4",
    ),
    "bench_apart": Small(APART, SORT.replace("range(i)", "range(i - 1)"), evaluator=COMMAND, place=".evogit/bench.py"),
}
