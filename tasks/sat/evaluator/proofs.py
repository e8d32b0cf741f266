"""Whether models and proofs are right: models by looking at each clause, proofs by a checker that is compiled here."""

import os
import tempfile
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from formulas import Formula

from evogit.subprocesses import TooLongError, run_child

MAX_CHECK_S = 20.0
MAX_PROOF_VARIABLES = 1_000_000
"""Proofs may define variables beyond those of the formula, up to this number."""
ADD, DELETE = 1, 2


class WrongProofError(Exception):
    """The text is not a proof of this formula."""


class UncheckedError(Exception):
    """The checker did not come to an end in its time."""


def wrong_model(formula: Formula, printed: str) -> str:
    """Return what is wrong with the values that a solver printed; nothing if all clauses are true."""
    words = [word for line in printed.splitlines() if line.startswith("v ") for word in line[2:].split()]
    try:
        values = {int(word) for word in words} - {0}
    except ValueError:
        return "expected numbers on the lines that begin with v"
    if any(-value in values for value in values):
        return "the values make a variable both true and false"
    for number, clause in enumerate(formula.clauses, 1):
        if values.isdisjoint(clause):
            return f"clause {number} is not true by the {len(values)} values"
    return ""


class Checker:
    """A checker of proofs, compiled by the g++ of this machine; no code of a candidate is near it."""

    def __init__(self, program: Path) -> None:
        self._program = program

    def check(self, formula: Formula, proof: bytes) -> str:
        """Return a sentence about a right proof. Raises WrongProofError, UncheckedError."""
        steps, added, deleted, literals = read(proof)
        variables = max(formula.variables, max(steps, default=0), -min(steps, default=0))
        request = array("i", [variables, len(formula.clauses)])
        for clause in formula.clauses:
            request.extend((*clause, 0))
        request.extend(steps)
        try:
            done = run_child([str(self._program)], seconds=MAX_CHECK_S, env={}, stdin=request.tobytes())
        except TooLongError:
            raise UncheckedError(f"checking the proof took more than {MAX_CHECK_S:g} s") from None
        if done.returncode:
            raise RuntimeError(f"the checker ended with {done.returncode}: {done.stderr.decode(errors='replace')}")
        verdict, _, line = done.stdout.decode().strip().partition(" ")
        if verdict == "WRONG":
            raise WrongProofError(f"clause {line} of the proof does not follow from those before it")
        if verdict != "VERIFIED":
            raise WrongProofError("the proof ends before there is a contradiction")
        return f"proof of {added} clauses of {literals / max(1, added):.1f} literals on average, {deleted} deleted"


def read(proof: bytes) -> tuple["array[int]", int, int, int]:
    """Return the steps of a proof as the checker reads them, and how many clauses and literals they add and delete."""
    steps, added, deleted, literals = array("i"), 0, 0, 0
    for number, line in enumerate(proof.split(b"\n"), 1):
        words = line.split()
        if not words:
            continue
        deletes = words[0] == b"d"
        try:
            clause = [int(word) for word in words[deletes:]]
        except ValueError:
            raise WrongProofError(f"line {number} of the proof: expected numbers") from None
        if 0 not in clause or clause.index(0) < len(clause) - 1:
            raise WrongProofError(f"line {number} of the proof: expected one 0, at the end")
        if max(clause) > MAX_PROOF_VARIABLES or min(clause) < -MAX_PROOF_VARIABLES:
            raise WrongProofError(f"line {number} of the proof: expected variables up to {MAX_PROOF_VARIABLES}")
        steps.append(DELETE if deletes else ADD)
        steps.extend(clause)
        if deletes:
            deleted += 1
        else:
            added += 1
            literals += len(clause) - 1
    return steps, added, deleted, literals


@contextmanager
def compiled_checker() -> Iterator[Checker]:
    """Compile the checker for as long as it is used."""
    with tempfile.TemporaryDirectory(prefix="evogit-sat-") as folder:
        program = Path(folder) / "checker"
        source = Path(__file__).with_name("checker.cpp")
        command = ["g++", "-std=c++17", "-O2", "-o", str(program), str(source)]
        built = run_child(command, seconds=120, env={"PATH": os.environ["PATH"], "TMPDIR": folder})
        if built.returncode:
            raise RuntimeError(f"the checker does not compile:\n{built.stderr.decode(errors='replace')}")
        yield Checker(program)
