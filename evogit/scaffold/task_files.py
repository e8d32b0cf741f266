"""The files that `evogit new` writes: a small real task, with comments, that `evogit check` accepts at once."""

from __future__ import annotations

TASK = """\
# What is evolved and how it is evaluated. `evogit check .` says what is wrong with this file and this task.
name = "{name}"
editable = ["solution.py"] # globs of the paths in seed/ that candidates may change; all else is protected

[metrics.worst_error] # the evaluator gives every case these numbers
direction = "minimize" # or "maximize"
primary = true # candidates are ranked by this one
aggregate = "mean" # over the cases: mean, sum, min, max, geometric
baseline = 0.0559612 # the seed's value on train
# best_known = 0.0 # the best value known from elsewhere, shown beside the results

[evaluator]
kind = "python"
file = "evaluator/evaluate.py"
splits = ["smoke", "train", "holdout"] # those before train run first; holdout is only for the seed and the best
gate.smoke = "worst_error < 1" # what must hold before train is evaluated

[sandbox] # what one candidate may use
memory = "256m"
cpu = "5s"
"""

GOAL = """\
# Approximate the sine

Improve `solution.py` so that `sines(xs)` comes as close to the sine as it can.

- `sines` takes a list of numbers from 0 to pi and returns a list with one number for each.
- It may use `+ - * /` and numbers, but no library: `import` and tables of values are not the point.
- The score of a case is the largest error over its numbers; lower is better.
"""

SEED = """\
# A parabola through 0, pi/2 and pi, and two corrections that do nothing yet.
WIDTH = 3.14159
HEIGHT = 1.0
FLATNESS = 0.0
TILT = 0.0


def sines(xs):
    return [sine(x) for x in xs]


def sine(x):
    t = x / WIDTH
    hill = 4 * HEIGHT * t * (1 - t)
    return hill - FLATNESS * hill * (1 - hill) + TILT * (t - 0.5)
"""

EVALUATOR = '''\
"""Trusted code: it drives the candidate through `program` and works the score out from what comes back."""

import math
from collections.abc import Iterator

from evogit import Case, Invalid

# split -> how many numbers each case has; the splits have different ones, so that no table of answers helps
SIZES = {"smoke": [3], "lite": [10], "train": [50, 101], "holdout": [73, 997]}


def evaluate(program, split: str) -> Iterator[Case]:
    for size in SIZES[split]:
        xs = [math.pi * i / (size - 1) for i in range(size)]
        reply = program.call("solution:sines", args=[xs], returns=list[float])
        yield score(xs, reply.value)


def score(xs: list[float], values: list[float]) -> Case:
    if len(values) != len(xs):  # never a score for an answer that breaks the rules: say what is wrong
        raise Invalid(f"expected {len(xs)} numbers, got {len(values)}")
    errors = [abs(value - math.sin(x)) for x, value in zip(xs, values)]
    worst = max(errors)
    at = xs[errors.index(worst)]
    return Case(f"{len(xs)} numbers", feedback=f"the largest error is at x = {at:.3f}", worst_error=worst)
'''

README = """\
# {name}

- `task.toml`: what is evolved and how it is evaluated
- `goal.md`: what agents are told
- `seed/`: the files of the first candidate
- `evaluator/`: what evaluates; no candidate and no agent ever sees it

    evogit check {folder}
    evogit audit {folder}
    evogit run {folder} --minutes 1
"""


def files(name: str, folder: str) -> dict[str, str]:
    """Path -> content of a new task of that name, to be reached from here as `folder`."""
    return {
        "task.toml": TASK.format(name=name),
        "goal.md": GOAL,
        "seed/solution.py": SEED,
        "evaluator/evaluate.py": EVALUATOR,
        "README.md": README.format(name=name, folder=folder),
    }
