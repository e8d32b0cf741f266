"""What the small tasks of the audit are made of: evaluators, seeds, and the form of a task."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

TOML = """\
name = "{name}"
goal = "{goal}"
editable = ["program.py"]

[metrics.score]
direction = "{direction}"

[evaluator]
{evaluator}

[sandbox]
timeout = "5s"
"""
PYTHON = 'kind = "python"\nfile = "evaluator/evaluate.py"\nsplits = ["train", "holdout"]'


@dataclass(frozen=True)
class Small:
    """A task: what its evaluator and seed are; `found` is the attack that is to find its leak, if it has one."""

    evaluate: str
    seed: str
    found: str = ""
    direction: str = "maximize"
    goal: str = "Do it."
    evaluator: str = PYTHON
    place: str = "evaluator/evaluate.py"

    def write(self, folder: Path) -> Path:
        """Write the task into a folder."""
        toml = TOML.format(name=folder.name, goal=self.goal, direction=self.direction, evaluator=self.evaluator)
        for path, text in {"task.toml": toml, "seed/program.py": self.seed, self.place: self.evaluate}.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
        return folder


def tour_evaluator(check: str) -> str:
    return f"""\
import math, random
from evogit import Case, Invalid

def points(n, seed):
    rng = random.Random(seed)
    return [[rng.random(), rng.random()] for _ in range(n)]

CASES = {{"train": [points(8, 1), points(12, 2)], "holdout": [points(10, 3)]}}

def evaluate(program, split):
    for number, place in enumerate(CASES[split]):
        tour = program.call("program:solve", [place]{check}
        length = sum(math.dist(place[a], place[b]) for a, b in zip(tour, tour[1:] + tour[:1]))
        yield Case(str(number), score=length)
"""


TOUR = "def solve(points):\n    return list(range(len(points)))\n"
PERMUTED = """, returns=list[int]).value
        if sorted(tour) != list(range(len(place))):
            raise Invalid("no tour")"""

SORT = """\
def solve(items):
    items = list(items)
    for i in range(len(items)):
        for j in range(i):
            if items[j] > items[i]:
                items[i], items[j] = items[j], items[i]
    return items
"""


def timed(take: str, check: str, *, parameters: str = "program, split, seed, rng", draw: str = "rng") -> str:
    return f"""\
import random
from statistics import median
from evogit import Case, Invalid

def evaluate({parameters}):
    ratios = []
    for life in range(3):
        source = {draw}
        items = [source.randrange(10**6) for _ in range(500)]
        {take}
        {check}
        ratios.append(before / now)
    yield Case("all", score=median(ratios))
"""


MEASURE = """first = seed.measure("program:solve", [items], warmup=[[1]])
        reply = program.measure("program:solve", [items], warmup=[[1]], returns=list[int])
        before, now = first.wall, reply.wall"""
RIGHT = 'if reply.value != sorted(items): raise Invalid("not sorted")'
CALLS = """first = [seed.call("program:solve", [items]) for _ in range(12)]
        replies = [program.call("program:solve", [items]) for _ in range(12)]
        reply = replies[-1]
        before, now = sum(each.wall for each in first), sum(each.wall for each in replies)"""

INTERVAL = "def solve(n):\n    return [0.9 / n] * n\n"


def interval(tolerance: str) -> str:
    return f"""\
from fractions import Fraction
from evogit import Case, Invalid

def evaluate(program, split):
    for n in {{"train": [3, 7], "holdout": [5]}}[split]:
        parts = program.call("program:solve", [n], returns=list[float]).value
        if len(parts) != n or min(parts) < 0 or max(parts) > 1:
            raise Invalid("expected n parts from 0 to 1")
        if sum(map(Fraction, parts)) > 1 {tolerance}:
            raise Invalid("more than there is")
        yield Case(str(n), score=sum(parts))
"""


def labels(feedback: str, *, same: bool = False, returns: str = ", returns=list[int]", extra: str = "") -> str:
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
        found = program.call("program:solve", [rows]{returns}).value
        if len(found) != len(rows):
            raise Invalid("expected a label for each row")
        {extra}
        right = sum(a == b for a, b in zip(found, expected))
        yield Case(str(number), feedback=f"{feedback}", score=right / len(rows))
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

COINS = """\
def solve(amount, values):
    paid = []
    for value in sorted(values, reverse=True):
        while amount >= value:
            paid.append(value)
            amount -= value
    return paid
"""


def coins(check: str) -> str:
    return f"""\
from evogit import Case, Invalid

VALUES = [1, 5, 8, 13]

def evaluate(program, split):
    for amount in {{"train": [15, 24, 50], "holdout": [40, 97, 111]}}[split]:
        paid = program.call("program:solve", [amount, VALUES], returns=list[int]).value
        if {check}:
            raise Invalid("not paid")
        yield Case(str(amount), score=len(paid))
"""


SUM = "import random\n\ndef solve(x):\n    return (x * 7) % 5\n"

COMMAND = 'kind = "command"\ncommand = "python3 .evogit/bench.py"\n\n[evaluator.read]\nscore = "json"'
BENCH = """\
import json, sys, time
sys.path.insert(0, ".")
from program import solve
began = time.perf_counter()
assert solve(list(range(300, 0, -1))) == list(range(1, 301))
print(json.dumps({"score": 1 / (time.perf_counter() - began)}))
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
SCRIPT = """\
import json, subprocess, sys
right = 0
for text in ("3 1 2", "9 8 7 1", "1 5 5"):
    ran = subprocess.run([sys.executable, "program.py"], input=text, capture_output=True, text=True)
    right += ran.stdout.split() == sorted(text.split())
print(json.dumps({"score": right / 3}))
"""


def round_trip(again: str, returns: str, size: str) -> str:
    """Numbers that are packed, and unpacked by a call of its own."""
    return f"""\
from evogit import Case, Invalid

def evaluate(program, split, rng):
    text = " ".join(str(rng.randrange(1000)) for _ in range(200))
    packed = program.call("program:pack", [text], returns={returns}).value
    {again}
    if back != text:
        raise Invalid("another text comes back")
    yield Case("all", score={size})
"""


FRESH = 'back = program.call("program:unpack", [packed], returns=str, fresh=True).value'
ANEW = """with program.anew() as other:
        back = other.call("program:unpack", [packed], returns=str).value"""
PACK = """\
import zlib

def pack(text):
    return list(zlib.compress(text.encode()))

def unpack(data):
    return zlib.decompress(bytes(data)).decode()
"""
SHARES = """\
from evogit import Case, Invalid

def evaluate(program, split):
    for needs in {"train": [[3.0, 4.0, 9.0], [2.0, 7.0]], "holdout": [[5.0, 1.0]]}[split]:
        weights = program.call("program:solve", [needs], returns=list[float]).value
        if len(weights) != len(needs) or min(weights) <= 0:
            raise Invalid("expected a positive weight for each need")
        shares = [weight / sum(weights) for weight in weights]
        yield Case(str(len(needs)), score=sum(need * share**2 for need, share in zip(needs, shares)))
"""
GROUPS = """\
from evogit import Case, Invalid

def evaluate(program, split):
    for items in {"train": [[1, 2, 3, 50, 51, 52], [4, 5, 90, 91, 92]], "holdout": [[7, 8, 30, 31]]}[split]:
        groups = program.call("program:solve", [items], returns=list[int]).value
        if len(groups) != len(items):
            raise Invalid("expected a group for each")
        inside = sum(abs(a - b) for a, x in zip(items, groups) for b, y in zip(items, groups) if x == y)
        yield Case(str(len(items)), score=1000 / (inside + 1e-9))
"""
SPANS = """\
import random
from evogit import Case, Invalid

def evaluate(program, split):
    for seed in {"train": [1, 2], "holdout": [3]}[split]:
        rng = random.Random(seed)
        spans = [[begin, begin + rng.randint(3, 9)] for begin in rng.choices(range(200), k=40)]
        chosen = program.call("program:solve", [spans], returns=list[int]).value
        if len(set(chosen)) < len(chosen) or not all(0 <= place < 40 for place in chosen):
            raise Invalid("expected places, each once")
        for place, other in PAIRS:
            if spans[place][0] < spans[other][1] and spans[other][0] < spans[place][1]:
                raise Invalid("two overlap")
        yield Case(str(seed), score=len(chosen))
"""
SPAN = """\
def solve(spans):
    chosen, free = [], 0
    for place in sorted(range(len(spans)), key=lambda place: spans[place][1]):
        if spans[place][0] >= free + 9:
            chosen.append(place)
            free = spans[place][1]
    return chosen
"""
AMOUNTS = """\
import random
from evogit import Case, Invalid

def evaluate(program, split):
    for seed in {"train": [1, 2], "holdout": [3]}[split]:
        rng = random.Random(seed)
        goods = [[rng.randint(5, 50), rng.randint(1, 60), 4] for _ in range(12)]
        taken = program.call("program:solve", [goods, 200], returns=list[int]).value
        if len(taken) != 12 or any(amount > 4 CHECK for amount in taken):
            raise Invalid("expected an amount of each, from 0 to 4")
        if sum(good[0] * amount for good, amount in zip(goods, taken)) > 200:
            raise Invalid("too heavy")
        yield Case(str(seed), score=sum(good[1] * amount for good, amount in zip(goods, taken)))
"""
AMOUNT = """\
def solve(goods, most):
    taken = []
    for size, _, stock in goods:
        taken.append(min(stock, most // size))
        most -= size * taken[-1]
    return taken
"""
SERIES = """\
from evogit import Case, Invalid

def evaluate(program, split, rng):
    levels = [rng.random() for _ in range(200)]
    bets = program.call("program:solve", [levels], returns=list[int]).value
    if len(bets) != 200 or not set(bets) <= {0, 1}:
        raise Invalid("expected 0 or 1 for each")
    won = sum(bet == (after > now) for bet, now, after in zip(bets, levels, levels[1:]))
    yield Case("all", score=won / 199)
"""
BET = "def solve(levels):\n    return [int(number % 3 == 0) for number, _ in enumerate(levels)]\n"
NAMES = """\
from evogit import Case, Invalid

def evaluate(program, split):
    for worth in {"train": [[3, 9, 4, 8, 1, 7, 2, 6]], "holdout": [[5, 1, 9, 4]]}[split]:
        ran = program.run(["python3", "program.py"], stdin=" ".join(map(str, worth)).encode())
        words = ran.stdout.split()
        if ran.code or len(set(words)) < len(words):
            raise Invalid("failed, or one is named twice")
        if len(words) > 4 or not all(0 <= int(word) < len(worth) for word in words):
            raise Invalid("expected four places at most")
        yield Case("all", score=sum(worth[int(word)] for word in words))
"""
CHOOSE = """\
from evogit import Case, Invalid

def evaluate(program, split, rng):
    for count in {"train": [12, 20], "holdout": [15]}[split]:
        costs, worths = [[rng.randint(10, 90) for _ in range(count)] for _ in range(2)]
        chosen = program.call("program:solve", [costs, worths, sum(costs) // 3], returns=list[int]).value
        if len(set(chosen)) < len(chosen) CHECK:
            raise Invalid("one is chosen twice")
        if sum(costs[place] for place in chosen) > sum(costs) // 3:
            raise Invalid("too much")
        yield Case(str(count), score=sum(worths[place] for place in chosen))
"""
CHOICE = """\
def solve(costs, worths, most):
    chosen = []
    for place, cost in enumerate(costs):
        if cost <= most:
            chosen.append(place)
            most -= cost
    return chosen
"""
MIX = """\
from evogit import Case, Invalid

def evaluate(program, split, rng):
    for count in {"train": [4], "holdout": [5]}[split]:
        feeds = {f"feed{place}": [rng.randint(1, 9), rng.randint(1, 9)] for place in range(count)}
        amounts = program.call("program:solve", [feeds, 500], returns=dict[str, float]).value
        if not set(amounts) <= set(feeds) or any(not LEAST <= kilos <= 1e5 for kilos in amounts.values()):
            raise Invalid("expected amounts of the feeds")
        if sum(kilos * feeds[name][1] for name, kilos in amounts.items()) < 500:
            raise Invalid("too little")
        yield Case(str(count), score=sum(kilos * feeds[name][0] for name, kilos in amounts.items()))
"""
MIXED = "def solve(feeds, need):\n    name = max(feeds)\n    return {name: need / feeds[name][1]}\n"
TRIPLES = """\
from itertools import combinations
from evogit import Case, Invalid

def evaluate(program, split, rng):
    numbers = rng.sample(range(1, 40), 20)
    found = {COUNTED for row in program.call("program:solve", [numbers], returns=list[list[int]]).value}
    if not all(sum(row) % 5 == 0 and set(row) <= set(numbers) and len(set(row)) == 3 for row in found):
        raise Invalid("no triple")
    yield Case("all", score=len(found))
"""
TRIPLE = """\
from itertools import combinations

def solve(numbers):
    return [row for row in combinations(numbers[:12], 3) if sum(row) % 5 == 0]
"""
JUDGED = """\
from evogit import Case, Invalid

def evaluate(program, split, rng):
    wishes = [rng.randrange(5) for _ in range(30)]
    seats = program.call("program:solve", [wishes], returns=list[int]).value
    if sorted(seats) != sorted(place % 5 for place in range(30)):
        raise Invalid("six seats at each table")
    kept = KEPT
    yield Case("all", score=kept / 30)
"""
JUDGE = """\
def solve(wishes):
    return [place % 5 for place in range(30)]

def kept(seats, wishes):
    return sum(seat == wish for seat, wish in zip(seats, wishes))
"""
FORECAST = """\
from evogit import Case, Invalid

def evaluate(program, split, rng):
    sold = [rng.randrange(50, 90) for _ in range(40)]
    guess = program.call("program:solve", [{"sold": GIVEN, "days": 5}], returns=list[float]).value
    if len(guess) != 5:
        raise Invalid("expected five")
    yield Case("all", score=sum(abs(a - b) for a, b in zip(guess, sold[-5:])))
"""
FORECASTS = "def solve(shop):\n    return [60.0] * shop['days']\n"
BESIDE = """\
from evogit import Case

def evaluate(program, split, rng):
    for number in range(3):
        words = [str(rng.randrange(100)) for _ in range(9)]
        right = " ".join(sorted(words))
        files = {f"{number}.in": " ".join(words).encode()} | FILES
        ran = program.run(["python3", "program.py", f"{number}.in"], files=files)
        yield Case(str(number), score=float(ran.stdout.split() == right.split()))
"""
SORTED = "import sys\n\nprint(*open(sys.argv[1]).read().split())\n"
GAMES = """\
import random
from evogit import Case

def evaluate(program, split, rng):
    needed = 0
    for game in {"train": range(3), "holdout": range(10, 13)}[split]:
        code = CODE
        program.call("program:begin", [game])
        told = 0
        while told != "right":
            guess = program.call("program:solve", [told], returns=int).value
            needed += 1
            told = "right" if guess == code or needed > 600 else -1 if code < guess else 1
    yield Case("all", score=needed)
"""
GUESS = """\
span = [0, 99]

def begin(game):
    span[:] = 0, 99

def solve(told):
    if told > 0:
        span[0] += 1
    elif told < 0:
        span[1] = span[0]
    return span[0]
"""
SQUEEZE = """\
from contextlib import nullcontext
from evogit import Case, Invalid

def evaluate(program, split, rng):
    text = " ".join(str(rng.randrange(50)) for _ in range(300))
    packed = program.run(["python3", "program.py", "pack"], stdin=text.encode()).stdout
    with AGAIN as other:
        if other.run(["python3", "program.py", "unpack"], stdin=packed.encode()).stdout != text:
            raise Invalid("another text")
    yield Case("all", score=len(packed.encode()))
"""
SQUEEZED = """\
import sys
import zlib

if sys.argv[1] == "pack":
    sys.stdout.write(zlib.compress(sys.stdin.buffer.read()).hex())
else:
    sys.stdout.write(zlib.decompress(bytes.fromhex(sys.stdin.read())).decode())
"""
PHRASES = """\
from evogit import Case

DAYS = {"today": "2024-05-15", "tomorrow": "2024-05-16", "in a week": "2024-05-22", "the day after": "2024-05-17"}

def evaluate(program, split):
    for phrase, day in DAYS.items():
        got = program.call("program:solve", [phrase], returns=str).value
        yield Case(phrase, feedback=TOLD, score=float(got == day))
"""
PHRASE = 'def solve(phrase):\n    return "2024-05-15"\n'
TOTALS = """\
from evogit import Case

def evaluate(program, split, rng):
    for number in range(2):
        row = [rng.randrange(100) for _ in range(4)]
        ran = program.run(["python3", "program.py"], stdin=" ".join(map(str, row)).encode())
        yield Case(str(number), score=float(LOOSE))
"""
TOTAL = "print('total:', sum(map(int, input().split()[:3])))\n"
STEPS = """\
from evogit import Case, Invalid

SLACK = 0.5

def evaluate(program, split, rng):
    minutes = [rng.randrange(2, 9) for _ in range(12)]
    starts = program.call("program:solve", [minutes], returns=list[float]).value
    if len(starts) != 12 or min(starts) < 0:
        raise Invalid("expected twelve starts")
    for start, took, after in zip(starts, minutes, starts[1:]):
        if after < start + took LESS:
            raise Invalid("two at once")
    yield Case("all", score=starts[-1] + minutes[-1])
"""
STEP = "def solve(minutes):\n    return [float(sum(minutes[:place])) for place in range(len(minutes))]\n"


NAMED = """\
from evogit import Case

def evaluate(program, split, rng):
    names = [f"n{rng.randrange(10**6)}" for _ in range(9)]
    found = program.call("program:solve", [names], returns=dict[str, int]).value
    right = {name: len(name) + int(name[1:]) % 3 for name in names}
    yield Case("all", score=sum(found.get(name) == right[name] for name in COUNTED) / max(1, len(COUNTED)))
"""
NAME = "def solve(names):\n    return {name: len(name) for name in names}\n"
SHORT = """\
from evogit import Case, Invalid

TEXTS = {
    "train": ["the cat sat on a mat while rain fell", "prices rose and banks lowered rates in may"],
    "holdout": ["two ships left port before storms came"],
}

def evaluate(program, split):
    for text in TEXTS[split]:
        short = program.call("program:solve", [text], returns=str).value
        if len(short.split()) > 5 FOREIGN:
            raise Invalid("too long")
        yield Case(text, score=sum(word in short for word in text.split()))
"""
SHORTENED = 'def solve(text):\n    return " ".join(text.split()[:5])\n'
BOXES = """\
from evogit import Case, Invalid

def evaluate(program, split, rng):
    sizes = [rng.randrange(51, 60) for _ in range(4)] + [rng.randrange(20, 40) for _ in range(5)]
    boxes = program.call("program:solve", [sizes], returns=list[list[int]]).value
    if max(map(sum, boxes)) > 100 or CONTENT(boxes) != CONTENT([sizes]):
        raise Invalid("not packed")
    yield Case("all", score=len(boxes))
"""
BOXED = "def solve(sizes):\n    return [[size] for size in sizes]\n"
RETOLD = """\
from evogit import Case

def evaluate(program, split, rng):
    number, told = rng.randrange(20), []
    while len(told) < 30 and [number, 0] not in told:
        guess = program.call("program:solve", [0, 19, told], returns=int).value
        told.append([guess, (number > guess) - (number < guess)])
    yield Case("all", score=len(told))
"""
RETOLD_GUESS = "def solve(low, high, told):\n    return low + len(told)\n"
SIDES = """\
from evogit import Case

def evaluate(program, split, rng):
    cases = [(rng.gauss(place % 2, 2), place % 2) for place in range(20)]
    MIXED
    for number, (x, right) in enumerate(cases):
        said = program.call("program:solve", [x], returns=int).value
        yield Case(str(number), score=float(said == right))
"""
SIDE = "def solve(x):\n    return int(x > 2)\n"
SECRETS = """\
from evogit import Case

def evaluate(program, split, rng):
    code = rng.randrange(50)
    for game in range(5):
        told = []
        while code not in told and len(told) < 60:
            told.append(program.call("program:solve", [told], returns=int).value)
        AGAIN
        yield Case(str(game), score=len(told))
"""
SECRET = "def solve(told):\n    return len(told)\n"
MOVES = """\
import random
from evogit import Case

def evaluate(program, split, rng):
    draws, mine, theirs = OPPONENT, [], []
    for _ in range(30):
        mine.append(program.call("program:solve", [mine, theirs], returns=str).value)
        theirs.append(draws.choice(["odd", "even"]))
    yield Case("all", score=sum(a != b for a, b in zip(mine, theirs)))
"""
MOVE = 'def solve(mine, theirs):\n    return ["odd", "even"][len(mine) % 2]\n'
DEMAND = """\
from evogit import Case, Invalid

def evaluate(program, split, rng):
    levels = [50.0]
    while len(levels) < 40:
        levels.append(levels[-1] + rng.gauss(0, 3))
    seen = [level + rng.gauss(0, 3) for level in levels]
    said = program.call("program:solve", [seen], returns=list[float]).value
    if len(said) != WANTED:
        raise Invalid("expected one for each")
    yield Case("all", score=sum(abs(a - b) for a, b in zip(said, RIGHT)))
"""
BINS = """\
from evogit import Case, Invalid

def evaluate(program, split, rng):
    sizes = [rng.randrange(10, 60) for _ in range(40)]
    bins = program.call("program:solve", [sizes, 100], returns=list[int]).value
    if len(bins) != 40 or any(sum(s for s, b in zip(sizes, bins) if b == each) > 100 for each in set(bins)):
        raise Invalid("not packed")
    yield Case("all", score=len(set(bins)))
"""
BIN = """\
def solve(sizes, most):
    bins, used = [], []
    for size in sizes:
        place = next((p for p, have in enumerate(used) if have + size <= most), len(used))
        used[place:] = [*used[place:], 0] if place == len(used) else used[place:]
        used[place] += size
        bins.append(place)
    return bins
"""
REPORT = """\
import math
from evogit import Case, Invalid

def evaluate(program, split, rng):
    worst = 0.0
    for x in (rng.randrange(100) for _ in range(5)):
        word, value = program.call("program:solve", [x], returns=str).value.split()
        if word != str(x) or NUMBER:
            raise Invalid("expected the number and its root")
        if abs(float(value) - math.sqrt(x)) > worst:
            worst = abs(float(value) - math.sqrt(x))
    yield Case("all", score=worst)
"""
REPORTED = 'def solve(x):\n    return f"{x} {x / 10:.3f}"\n'
PATTERNS = """\
import re
from evogit import Case

def evaluate(program, split):
    pattern = re.compile(program.call("program:solve", returns=str).value)
    good, other = ["a1", "b22", "c3"], OTHER
    hits = [bool(pattern.fullmatch(text)) for text in good] + [not pattern.fullmatch(text) for text in other]
    yield Case("all", score=sum(hits) / len(hits))
"""
PATTERN = 'def solve():\n    return "[a-b][0-9]"\n'
FILED = """\
from contextlib import nullcontext
from evogit import Case, Invalid

def evaluate(program, split, rng):
    text = " ".join(str(rng.randrange(50)) for _ in range(300)).encode()
    packed = program.run(["python3", "program.py", "pack"], files={"in": text}, out=["small"]).files["small"]
    with AGAIN as other:
        if other.run(["python3", "program.py", "back"], files={"small": packed}, out=["out"]).files["out"] != text:
            raise Invalid("another text")
    yield Case("all", score=len(packed))
"""
FILER = """\
import sys
import zlib

def turned(old, new, way):
    with open(old, "rb") as old, open(new, "wb") as new:
        new.write(way(old.read()))

if sys.argv[1] == "pack":
    turned("in", "small", zlib.compress)
else:
    turned("small", "out", zlib.decompress)
"""
FORMULA = """\
from evogit import Case, Invalid

def evaluate(program, split):
    text = program.call("program:solve", returns=str).value
    try:
        error = sum(abs(eval(text, {"__builtins__": {}}, {"x": x}) - x * x) for x in range(5))
    except Exception:
        raise Invalid("no formula") from None
    yield Case("all", score=error)
"""
PAID = """\
from evogit import Case, Invalid

def evaluate(program, split, rng):
    for number in range(2):
        price, values = rng.randint(30, 90), [20, 5, 1]
        counts = program.call("program:solve", [price, values], returns=list[int]).value
        if len(counts) != 3 or sum(c * v for c, v in zip(counts, values)) != price:
            raise Invalid("another price")
        yield Case(str(number), score=sum(counts))
"""
PAY = "def solve(price, values):\n    return [0, price // 5, price % 5]\n"
SLOTS = """\
from evogit import Case, Invalid

def evaluate(program, split, rng):
    keys = [f"k{rng.randrange(10**9)}" for _ in range(12)]
    slots = [program.call("program:solve", [key, 12], returns=int).value for key in keys]
    if not all(0 <= slot < 12 for slot in slots) or AGAIN:
        raise Invalid("no such slot")
    yield Case("all", score=12 - len(set(slots)))
"""
SLOT = "def solve(key, size):\n    return len(key) % size\n"
TRIES = """\
from evogit import Case

def evaluate(program, split, rng):
    for number in range(4):
        x = rng.randint(10, 99)
        right = x * rng.uniform(0.8, 1.2)
        said = [program.call("program:solve", [x], returns=float).value for _ in range(15)]
        yield Case(str(number), score=COUNTED(abs(each - right) / right for each in said))
"""
TRY = "def solve(x):\n    return x * 1.5\n"
PLACED = """\
from evogit import Case, Invalid

CHECK = "import json\\nprint(max(json.load(open('plan'))))"

def evaluate(program, split, rng):
    jobs = " ".join(str(rng.randint(1, 9)) for _ in range(9)).encode()
    if program.run(["python3", "program.py"], files={"jobs": jobs}).code:
        raise Invalid("it failed")
    checked = program.run(["python3", "check.py"], files={"check.py": CHECK.encode()})
    if checked.code or not checked.stdout.strip().isdigit():
        raise Invalid("no plan")
    yield Case("all", score=int(checked.stdout))
"""
PLACER = """\
import json

with open("jobs") as jobs, open("plan", "w") as plan:
    json.dump([sum(map(int, jobs.read().split()))], plan)
"""
SHELL = """\
from evogit import Case

def evaluate(program, split, rng):
    words = [str(rng.randrange(100)) for _ in range(9)]
    line = f"python3 program.py {' '.join(words)} > out; test \\"$(cat out)\\" = '{' '.join(sorted(words))}'"
    yield Case("all", score=float(program.run(["sh", "-c", line]).code == 0))
"""
SALE = """\
from evogit import Case, Invalid

def evaluate(program, split, rng):
    prices = [rng.randrange(100) for _ in range(30)]
    day = program.call("program:solve", [prices], returns=int).value
    if not 0 <= day < 30:
        raise Invalid("no such day")
    yield Case("all", score=prices[day])
"""
SOLD = "def solve(prices):\n    return next((day for day, price in enumerate(prices) if price > 20), 29)\n"
