"""Evaluates a SAT solver in C++: compiled and timed in the sandbox; its models and proofs are checked outside of it."""

import random
import signal
from collections.abc import Callable, Iterator

from formulas import Formula, colouring, commutes, factors, machine, pigeonhole, renamed, robots, threshold, tseitin
from proofs import Checker, UncheckedError, WrongProofError, compiled_checker, wrong_model

from evogit import Case, Invalid

LIMIT_S = 4.0
"""The time for one formula; one that is not solved counts twice as much (PAR-2)."""
ALL = "all_parts.cc"
COMPILE = [
    "sh",
    "-c",
    f'for f in *.cpp; do echo "#include \\"$f\\""; done > {ALL} && g++ -std=c++17 -O2 -o solver {ALL}',
]
"""All parts are compiled as one, which takes a third of the time that they take one by one."""
COMPILE_S = 40.0
PROOF = "answer.proof"
SOLVE = ["sh", "-c", f"ulimit -t {LIMIT_S + 1:.0f}; exec ./solver {PROOF}"]
"""The limit is one of CPU, so that a solver is not to blame for a busy machine. The kernel counts
ticks, hence a second more; what is counted exactly decides."""
OUT_OF_TIME = (signal.SIGKILL, signal.SIGXCPU)
PATIENCE_S = 5 * LIMIT_S
"""Wall clock that a formula may take."""

Draw = Callable[..., Formula]

SPLITS: dict[str, list[tuple[Draw, tuple[int, ...], int]]] = {
    "smoke": [(threshold, (40,), 1), (threshold, (40,), 2), (pigeonhole, (4,), 1), (robots, (4, 2, 4), 1)],
    "lite": [(threshold, (100,), 1), (colouring, (40, 160, 4), 1), (factors, (8,), 1), (tseitin, (20,), 1)],
    "train": [
        *((threshold, (size,), 1) for size in (170, 190, 200, 210)),
        *((pigeonhole, (size,), 1) for size in (8, 9)),
        *((colouring, sizes, 1) for sizes in ((60, 400, 5), (100, 450, 4), (120, 545, 4))),
        *((tseitin, (size,), 1) for size in (38, 42, 44)),
        *((commutes, sizes, 1) for sizes in ((6, 0), (7, 2))),
        (factors, (16,), 1),
        *((machine, sizes, 1) for sizes in ((16, 36), (16, 40), (40, 14))),
        *((robots, sizes, 1) for sizes in ((4, 12, 10), (5, 16, 9))),
    ],
    "holdout": [
        *((threshold, (size,), 11) for size in (180, 195, 205, 215)),
        (pigeonhole, (9,), 11),
        *((colouring, sizes, 11) for sizes in ((65, 432, 5), (110, 500, 4), (130, 590, 4))),
        *((tseitin, (size,), 11) for size in (40, 46)),
        *((commutes, sizes, 11) for sizes in ((7, 3), (7, 1))),
        *((factors, (size,), 11) for size in (15, 17)),
        *((machine, sizes, 11) for sizes in ((16, 44), (18, 38), (44, 14))),
        *((robots, sizes, 11) for sizes in ((4, 12, 12), (5, 15, 10))),
    ],
}


def evaluate(program, split: str, rng: random.Random) -> Iterator[Case]:
    built = program.run(COMPILE, timeout=COMPILE_S)
    if built.code or built.breach:
        raise Invalid("the solver does not compile", log=built.detail or built.stderr)
    with compiled_checker() as checker:
        for draw, sizes, seed in SPLITS[split]:
            name = "-".join(map(str, (draw.__name__, *sizes, f"s{seed}")))
            formula = draw(*sizes, random.Random(f"{draw.__name__} {sizes} {seed}"))
            yield solve(program, checker, name, renamed(formula, rng))


def solve(program, checker: Checker, name: str, formula: Formula) -> Case:
    """Have the candidate solve a formula, and look at the model or the proof that it gives."""
    waited = program.cost.waited
    done = program.run(SOLVE, stdin=formula.text(), out=[PROOF], timeout=PATIENCE_S)
    # what other programs kept it waiting for is not its own; all else of the wall clock is, as children can hide CPU
    seconds = max(done.cpu, done.wall - (program.cost.waited - waited))
    if done.breach in ("timeout", "output-limit") or done.signal in OUT_OF_TIME or seconds >= LIMIT_S:
        return unsolved(name, done.detail or f"{seconds:.2f} s")
    if done.breach or done.code not in (0, 10, 20):
        how = done.detail or (f"exit code {done.code}" if done.signal is None else f"ended by signal {done.signal}")
        raise Invalid(f"{name}: {how}", log=done.stderr)
    answers = [line for line in done.stdout.splitlines() if line.startswith("s ")]
    if answers == ["s UNKNOWN"]:
        return unsolved(name, "the solver gave up")
    if answers == ["s SATISFIABLE"]:
        if wrong := wrong_model(formula, done.stdout):
            raise Invalid(f"{name}: a wrong model: {wrong}")
        about = "satisfiable"
    elif answers == ["s UNSATISFIABLE"]:
        try:
            about = f"unsatisfiable, {checker.check(formula, done.files.get(PROOF, b''))}"
        except WrongProofError as error:
            raise Invalid(f"{name}: a wrong proof: {error}") from None
        except UncheckedError as error:
            return unsolved(name, str(error))
    else:
        raise Invalid(f"{name}: expected one line with the answer, such as `s UNSATISFIABLE`, got {answers[:3]}")
    return Case(name, feedback=f"{about}; {seconds:.2f} s", seconds=seconds)


def unsolved(name: str, why: str) -> Case:
    return Case(name, feedback=f"not solved in {LIMIT_S:g} s: {why}", seconds=2 * LIMIT_S)
