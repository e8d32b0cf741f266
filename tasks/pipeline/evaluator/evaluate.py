"""Evaluates the reports of shops: are they right, then seconds and memory, each time in a new session."""

import random
import statistics
from collections.abc import Iterator

from inputs import shop
from reference import report

from evogit import Case, Invalid

COMMAND = ["python3", "-m", "pipeline"]
ENOUGH_S, MAX_RUNS = 2.0, 5
"""A case is measured until its runs took so long together, or so often; the median counts."""
SMALL = [(1, 1, 1, 1), (2, 1, 1, 1), (5, 2, 2, 1), (20, 4, 3, 2), (60, 8, 5, 5), (60, 2, 9, 40), (150, 12, 9, 10)]
"""Shops that are looked at for right answers alone: events, customers, products, hours."""
FAULTS = [0.0, 0.1, 0.6, 1.0]
PROFILED = (600, 60, 40, 12)

SPLITS = {
    "lite": [(600, 60, 40, 12)],
    "train": [(4000, 150, 100, 24), (2500, 400, 300, 24), (2000, 60, 40, 120)],
    "holdout": [(6000, 100, 60, 30), (2000, 500, 600, 12), (3000, 80, 50, 160), (1000, 30, 400, 48)],
}


def evaluate(program, split: str, rng: random.Random) -> Iterator[Case]:
    if split == "smoke":
        yield from right(program, rng)
        return
    for number, sizes in enumerate(SPLITS[split]):
        case = measure(program, sizes, rng.getrandbits(64))
        if number == 0 and split != "holdout":
            case.feedback += "\n" + profile(program, rng)
        yield case


def right(program, rng: random.Random) -> Iterator[Case]:
    """Many small shops, all kinds of faults among them; nothing of it is measured."""
    for sizes in SMALL:
        for faults in FAULTS:
            text = shop(*sizes, faults, rng)
            compare(program.run(COMMAND, stdin=text.encode()), text)
        yield Case(f"small-{'-'.join(map(str, sizes))}", seconds=1.0, peak_mb=1.0)


def measure(program, sizes: tuple[int, int, int, int], drawn: int) -> Case:
    seconds: list[float] = []
    peaks: list[float] = []
    while not seconds or (sum(seconds) < ENOUGH_S and len(seconds) < MAX_RUNS):
        rng = random.Random(f"{drawn} {len(seconds)}")
        first, text = shop(*SMALL[2], 0.1, rng), shop(*sizes, 0.05, rng)
        with program.anew() as life:
            compare(life.run(COMMAND, stdin=first.encode()), first)  # modules are compiled and read by then
            waited = life.cost.waited
            done = life.run(COMMAND, stdin=text.encode())
            compare(done, text)
            waited = life.cost.waited - waited
        # waiting for other programs is not its own; all else of the wall clock is, as children can hide CPU
        seconds.append(max(done.cpu, done.wall - waited))
        peaks.append(done.memory / 1e6)
    took, peak = statistics.median(seconds), statistics.median(peaks)
    events, customers, products, hours = sizes
    name = f"events-{events}-customers-{customers}-products-{products}-hours-{hours}"
    feedback = f"{took:.3f} s ({min(seconds):.3f} to {max(seconds):.3f} in {len(seconds)} runs), {peak:.1f} MB"
    return Case(name, feedback=feedback, seconds=took, peak_mb=peak)


def compare(done, text: str) -> None:
    """Compare a report with that of the reference. Raises Invalid, and shows the first line that differs."""
    if done.code or done.breach:
        raise Invalid(done.detail or f"ended with exit code {done.code}, signal {done.signal}", log=done.stderr)
    expected = report(text)
    if done.stdout == expected:
        return
    ours, theirs = expected.split("\n"), done.stdout.split("\n")
    title = ""
    for line, other in zip(ours, [*theirs, *[None] * len(ours)], strict=False):
        title = line if line.startswith("== ") else title
        if line != other:
            raise Invalid(f"a report is wrong below `{title}`: expected {line[:100]!r}, found {str(other)[:100]!r}")
    raise Invalid(f"a report has {len(theirs) - len(ours)} lines too many at its end")


def profile(program, rng: random.Random) -> str:
    """What cProfile prints about a small shop, for the next brief; a candidate could forge it, so it is no score."""
    text = shop(*PROFILED, 0.05, rng)
    done = program.run(["python3", "-m", "cProfile", "-s", "tottime", *COMMAND[1:]], stdin=text.encode())
    _, _, table = done.stdout.partition("function calls")
    return f"where the time goes with {PROFILED[0]} events:\n" + "\n".join(table.split("\n")[1:28])
