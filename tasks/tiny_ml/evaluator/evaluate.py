"""Judges labels: those of the rows that are asked for never leave this process."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from sets import FAMILIES, Component, Row, arcs, blobs, drawn, likeliest, shifted

from evogit import Case, Invalid

GIVEN = 80
ASKED = 150


@dataclass(frozen=True)
class Exam:
    """Rows with labels to learn from, rows to label, and what is right."""

    name: str
    rows: list[Row]
    labels: list[int]
    asked: list[Row]
    right: list[int]
    source: list[Component]

    @property
    def best(self) -> float:
        """The accuracy of the Bayes classifier on the rows that are asked for."""
        return accuracy([likeliest(self.source, row) for row in self.asked], self.right)


def exam(family, seed: int, *, shift: bool = False) -> Exam:
    name = f"{family.__name__}-{seed}{'-shifted' if shift else ''}"
    rng = random.Random(name)
    components = family(rng)
    source = shifted(components) if shift else components
    return Exam(name, *drawn(components, GIVEN, rng), *drawn(source, ASKED, rng), source)


SPLITS = {
    "smoke": [exam(blobs, 0)],
    "lite": [exam(family, 2) for family in (arcs, blobs)],
    "train": [exam(family, 1) for family in FAMILIES],
    "holdout": [exam(family, seed, shift=seed == 102) for family in FAMILIES for seed in (101, 102)],
}


def evaluate(program, split: str) -> Iterator[Case]:
    for each in SPLITS[split]:
        arguments = {"rows": each.rows, "labels": each.labels, "asked": each.asked}
        found = program.call("classifier:classify", kwargs=arguments, returns=list[int]).value
        check(each, found)
        share = accuracy(found, each.right)
        feedback = f"{share:.1%} right; {each.best:.1%} for a classifier that knows the distributions"
        yield Case(each.name, feedback=feedback, accuracy=share)


def check(exam: Exam, found: list[int]) -> None:
    if len(found) != len(exam.asked):
        raise Invalid(f"{exam.name}: expected a label for each of the {len(exam.asked)} rows, got {len(found)}")
    if unknown := set(found) - set(exam.labels):
        raise Invalid(f"{exam.name}: expected labels among {sorted(set(exam.labels))}, got {min(unknown)}")


def accuracy(found: list[int], right: list[int]) -> float:
    return sum(a == b for a, b in zip(found, right, strict=True)) / len(right)
