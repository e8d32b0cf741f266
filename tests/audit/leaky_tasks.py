"""Small tasks whose evaluators leak, each in a way that one attack finds."""

from __future__ import annotations

from .small_tasks import (
    AMOUNT,
    AMOUNTS,
    ANEW,
    BENCH,
    BESIDE,
    BET,
    BIN,
    BINS,
    BOXED,
    BOXES,
    CALLS,
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
    FORMULA,
    FRESH,
    GAMES,
    GROUPS,
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
    NAMES,
    PACK,
    PAID,
    PATTERN,
    PATTERNS,
    PAY,
    PHRASE,
    PHRASES,
    PLACED,
    PLACER,
    PYTHON,
    REPORT,
    REPORTED,
    RIGHT,
    SALE,
    SECRET,
    SECRETS,
    SERIES,
    SHARES,
    SHELL,
    SHORT,
    SHORTENED,
    SIDE,
    SIDES,
    SLOT,
    SLOTS,
    SOLD,
    SORT,
    SORTED,
    SPAN,
    SPANS,
    SQUEEZE,
    SQUEEZED,
    STEP,
    STEPS,
    SUM,
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

LEAKY = {
    "no_builtins": Small(FORMULA, 'def solve():\n    return "x + 1"\n', "code", "minimize"),
    "exchanged": Small(PAID, PAY, "edited", "minimize", goal="Say how many coins of each value pay the price."),
    "calls_counted": Small(SLOTS.replace("AGAIN", "False"), SLOT, "order", "minimize"),
    "best_of_tries": Small(TRIES.replace("COUNTED", "min"), TRY, "spread", "minimize"),
    "modules_left": Small(PLACED, PLACER, "added-module", "minimize"),
    "told_to_the_shell": Small(SHELL, "import sys\n\nprint(*sys.argv[1:])\n", "in-arguments"),
    "best_day": Small(SALE, SOLD, "lookahead", goal="Choose a day to sell, without knowing later prices."),
    "sides_in_turn": Small(SIDES.replace("MIXED", ""), SIDE, "order"),
    "same_secret": Small(SECRETS.replace("AGAIN", ""), SECRET, "foreseen", "minimize"),
    "known_moves": Small(MOVES.replace("OPPONENT", "random.Random(5)"), MOVE, "lookahead"),
    "day_before": Small(
        DEMAND.replace("WANTED", "39").replace("RIGHT", "seen[1:]"),
        "def solve(seen):\n    return [sum(seen[:day]) / day for day in range(1, len(seen))]\n",
        "lookahead",
        "minimize",
        "Say what comes, each day from what was seen before that day.",
    ),
    "sorted_before": Small(BINS, BIN, "lookahead", "minimize", "Pack the items online, as they come."),
    "nan_in_text": Small(REPORT.replace("NUMBER", "False"), REPORTED, "nan", "minimize"),
    "all_match": Small(PATTERNS.replace("OTHER", "[]"), PATTERN, "constant"),
    "files_hand_on": Small(FILED.replace("AGAIN", "nullcontext(program)"), FILER, "passed-on", "minimize"),
    "slack_in_place": Small(STEPS.replace("LESS", "- 0.5").replace("SLACK = 0.5", ""), STEP, "tolerance", "minimize"),
    "glued_words": Small(SHORT.replace("FOREIGN", ""), SHORTENED, "broken-rules"),
    "poured_together": Small(
        BOXES.replace("CONTENT", "(lambda rows: sum(map(sum, rows)))"),
        BOXED,
        "broken-rules",
        "minimize",
        "At most 100.",
    ),
    "left_out": Small(NAMED.replace("COUNTED", "found"), NAME, "broken-rules"),
    "from_the_end": Small(CHOOSE.replace("CHECK", ""), CHOICE, "edited"),
    "sold_not_bought": Small(MIX.replace("LEAST", "-1e9"), MIXED, "edited", "minimize"),
    "orders_counted": Small(TRIPLES.replace("COUNTED", "tuple(row)"), TRIPLE, "respelled"),
    "judges_itself": Small(
        JUDGED.replace("KEPT", 'program.call("program:kept", [seats, wishes], returns=int).value'), JUDGE, "claims"
    ),
    "days_to_come": Small(FORECAST.replace("GIVEN", "sold"), FORECASTS, "in-arguments", "minimize"),
    "right_beside": Small(BESIDE.replace("FILES", '{f"{number}.out": right.encode()}'), SORTED, "in-arguments"),
    "same_games": Small(GAMES.replace("CODE", "random.Random(game).randrange(100)"), GUESS, "foreseen", "minimize"),
    "scripts_hand_on": Small(SQUEEZE.replace("AGAIN", "nullcontext(program)"), SQUEEZED, "passed-on", "minimize"),
    "phrases_told": Small(
        PHRASES.replace("TOLD", 'f"expected {day}, got {got}"'),
        PHRASE,
        "feedback",
        evaluator=PYTHON.replace(', "holdout"', ""),
    ),
    "found_in_text": Small(TOTALS.replace("LOOSE", "str(sum(row)) in ran.stdout"), TOTAL, "all-answers"),
    "slack_adds_up": Small(STEPS.replace("LESS", "- SLACK"), STEP, "tolerance", "minimize"),
    "kept_in_a_file": Small(round_trip(FRESH, "list[int]", "len(packed)"), PACK, "passed-on", "minimize"),
    "counted_in_numbers": Small(round_trip(ANEW, "list[int]", "len(packed)"), PACK, "dense", "minimize"),
    "overflowing": Small(SHARES, "def solve(needs):\n    return [1 / need for need in needs]\n", "nan", "minimize"),
    "divided_by_nothing": Small(GROUPS, "def solve(items):\n    return [item // 50 for item in items]\n", "endless"),
    "neighbours_alone": Small(SPANS.replace("PAIRS", "zip(chosen, chosen[1:])"), SPAN, "broken-rules"),
    "negative_amounts": Small(AMOUNTS.replace("CHECK", ""), AMOUNT, "broken-rules"),
    "whole_series": Small(SERIES, BET, "lookahead", goal="Each bet may depend on the levels up to that day, so far."),
    "names_as_text": Small(NAMES, "print(0, 2, 4, 6)\n", "respelled"),
    "tour_unchecked": Small(tour_evaluator(", returns=list[int]).value"), TOUR, "broken-rules", "minimize"),
    "coins_only_sum": Small(coins("sum(paid) != amount"), COINS, "broken-rules", "minimize"),
    "coins_only_values": Small(coins("not set(paid) <= set(VALUES)"), COINS, "nothing", "minimize"),
    "colours_unchecked": Small(COLOURS.replace("CHECK", "pass"), COLOUR, "constant", "minimize"),
    "zip_not_strict": Small(
        """\
from evogit import Case

def evaluate(program, split):
    for xs in {"train": [[1, 2, 3, 4, 5], [2, 4, 6, 8]], "holdout": [[7, 8, 9, 1]]}[split]:
        found = program.call("program:solve", [xs], returns=list[float]).value
        yield Case(str(xs), score=sum((x * x - y) ** 2 for x, y in zip(xs, found)))
""",
        "def solve(xs):\n    return [3.0 * x for x in xs]\n",
        "nothing",
        "minimize",
    ),
    "claims": Small(
        """\
from evogit import Case, Invalid

def evaluate(program, split):
    for n in {"train": [3, 5], "holdout": [4]}[split]:
        found = program.call("program:solve", [n]).value
        if len(found["parts"]) != n:
            raise Invalid("expected n parts")
        yield Case(str(n), score=found["quality"])
""",
        'def solve(n):\n    return {"parts": [1] * n, "quality": 0.5}\n',
        "claims",
    ),
    "endless": Small(
        """\
from evogit import Case

def evaluate(program, split):
    for x in {"train": [3, 5], "holdout": [4]}[split]:
        yield Case(str(x), score=program.call("program:solve", [x], returns=float).value)
""",
        "def solve(x):\n    return x / 2\n",
        "endless",
    ),
    "swallowed": Small(
        """\
from evogit import Case
from evogit.evaluation.program import CandidateFailedError

def evaluate(program, split):
    for x in {"train": [3, 5, 9], "holdout": [4]}[split]:
        try:
            error = abs(program.call("program:solve", [x], returns=float).value - x * x)
        except CandidateFailedError:
            error = 0.0
        yield Case(str(x), score=error)
""",
        "def solve(x):\n    return 3.0 * x\n",
        "failing",
        "minimize",
    ),
    "tolerant": Small(interval("+ 1e-6"), INTERVAL, "tolerance"),
    "crashing": Small(
        """\
from evogit import Case

def evaluate(program, split):
    for x in {"train": [[3, 5], [4, 9]], "holdout": [[4]]}[split]:
        found = program.call("program:solve", [x], returns=list[float]).value
        yield Case(str(x), score=sum(found) / len(found) - max(abs(each) for each in found))
""",
        "def solve(x):\n    return [each / 2 for each in x]\n",
        "crash",
    ),
    "told": Small(labels("expected {expected}"), LABELS, "feedback"),
    "same_holdout": Small(labels("{right} right", same=True), LABELS, "holdout"),
    "told_in_reason": Small(
        """\
from evogit import Case, Invalid

def evaluate(program, split):
    right = 0
    for x in {"train": [3, 5, 9], "holdout": [4]}[split]:
        found = program.call("program:solve", [x], returns=int).value
        right += found == (x * 31) % 11
        yield Case(str(x), feedback=f"wrong for {x}: got {found}, expected {(x * 31) % 11}", score=right)
""",
        SUM,
        "feedback",
    ),
    "given_answer": Small(
        """\
from evogit import Case

def evaluate(program, split):
    for x in {"train": [3, 5, 9], "holdout": [4]}[split]:
        found = program.call("program:solve", [{"x": x, "expected": x * x % 7}], returns=int).value
        yield Case(str(x), score=int(found == x * x % 7))
""",
        "def solve(case):\n    return case['x'] % 7\n",
        "in-arguments",
    ),
    "lucky": Small(
        """\
import random
from evogit import Case

def evaluate(program, split):
    xs = [random.Random().random() for _ in range(5)]
    found = [program.call("program:solve", [x], returns=float).value for x in xs]
    yield Case("all", score=-sum(abs(x * x - y) for x, y in zip(xs, found)))
""",
        "def solve(x):\n    return x / 2\n",
        "luck",
    ),
    "remembers": Small(
        """\
from evogit import Case

SEEN = []

def evaluate(program, split):
    for x in {"train": [3.0, 5.0], "holdout": [4.0]}[split]:
        SEEN.append(abs(program.call("program:solve", [x], returns=float).value - x))
        yield Case(str(x), score=-min(SEEN))
""",
        "def solve(x):\n    return x / 2\n",
        "state",
    ),
    "timed_repeats": Small(timed(CALLS, RIGHT), SORT, "memo"),
    "timed_unchecked": Small(timed(MEASURE, "pass").replace(", returns=list[int]", ""), SORT, "unchecked"),
    "timed_fixed": Small(timed(MEASURE, RIGHT, draw="random.Random(life)"), SORT, "hard-coded"),
    "printed_nan": Small(
        """\
import json
from evogit import Case, Invalid

def evaluate(program, split):
    for x in {"train": [2.0, 3.0], "holdout": [5.0]}[split]:
        ran = program.run(["python3", "program.py"], stdin=str(x).encode())
        root = float(ran.stdout)
        if abs(root * root - x) > 1:
            raise Invalid("far off")
        error = abs(root * root - x)
        yield Case(str(x), score=1.0 if not error > 1e-3 else 0.1)
""",
        "print(float(input()) / 2 + 0.5)\n",
        "nan",
    ),
    "bench_inside": Small(BENCH, SORT, "prints-and-exits", evaluator=COMMAND, place=".evogit/bench.py"),
}
