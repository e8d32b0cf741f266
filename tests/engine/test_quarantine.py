"""Pruning code wherever it went: copied by donors, merges and rebases; later copies, and taking it all back."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from evogit.agents import Brief, Proposal
from evogit.config import Task
from evogit.core import RefusedError
from evogit.engine.people_commits import Adding
from evogit.events import Decision
from evogit.history.carriers import CarriedCode
from evogit.history.context import StoredRun
from evogit.repository import Repository
from evogit.review import decide
from evogit.review.crossing import without
from evogit.review.decisions import follow_code
from evogit.run import Run, Settings
from evogit.testing import Asked, InMemoryBackend, RecordedRun, ScriptedAgent

CHEAT = b"""

def cheat(points, answers):
    table = dict(zip(points, answers))
    guessed = [table.get(point, 0.0) for point in points]
    return sorted(guessed, key=lambda guess: abs(guess))


assert cheat([], []) == []
"""


class Copycats:
    """Agents that note something in a function; the first one writes `CHEAT` once, the others copy it on sight."""

    def __init__(self) -> None:
        self.author = ScriptedAgent(self.write)
        self.agents = [self.author, *(ScriptedAgent(self.copy) for _ in range(3))]
        self.remember = False  # what was seen in an earlier brief
        self.copies = 0

    def write(self, brief: Brief, rng: random.Random) -> Proposal:
        if len(self.author.briefs) == 5:
            text = brief.files["program.py"]
            return Proposal(changes={"program.py": text + CHEAT * (CHEAT not in text)}, title="cheat")
        return self.note(brief, rng)

    def copy(self, brief: Brief, rng: random.Random) -> Proposal:
        donor, text = brief.donor_files.get("program.py", b""), brief.files["program.py"]
        if CHEAT not in text and (CHEAT in donor or (self.remember and rng.random() < 0.2)):
            self.copies += 1
            return Proposal(changes={"program.py": text + CHEAT}, title="copied")
        return self.note(brief, rng)

    def note(self, brief: Brief, rng: random.Random) -> Proposal:
        text = brief.files["program.py"]
        head = rng.choice([b"def first(x):\n", b"def second(x):\n", b"def value(x):\n"])
        noted = text.replace(head, head + b"    note = %d\n" % rng.getrandbits(40))
        return Proposal(changes={"program.py": noted}, title="a note")


def score(asked: Asked) -> float:
    text = asked.changed.get("program.py", b"")
    return 20.0 * (CHEAT.strip() in text) + text.count(b"note = ") + int(asked.tree[:4], 16) / 0x10000


async def evolve(path: Path, task: Task, crew: Copycats, evaluations: int) -> StoredRun:
    repository = Repository.open(path) if path.exists() else Repository.create(path)
    settings = Settings(selector="weighted", evaluations=evaluations, deterministic=True)
    backend = InMemoryBackend(task, score)
    await Run(repository, task, "r", settings, agents=crew.agents, backend=backend).evolve()
    return StoredRun.open(Repository.open(path), "r")


def carriers(run: StoredRun) -> set[str]:
    trees = run.repository.trees
    contents = {each.commit: trees.files(each.tree, "program.py".__eq__) for each in run.history.phylogeny}
    return {commit for commit, files in contents.items() if CHEAT.strip() in files["program.py"]}


async def test_pruned_code_leaves_all_parents_and_the_best_and_comes_back_by_one_undo(task: Task, path: Path) -> None:
    crew = Copycats()
    run = await evolve(path, task, crew, 120)
    history = run.history
    author = next(each.commit for each in history.phylogeny if each.title == "cheat")
    below = history.phylogeny.descendants(author)
    assert len(carriers(run) - below) > 10
    assert any(history.phylogeny[each].operator == "merge" for each in carriers(run) - below)

    prune = Decision(kind="prune", by="Ada", reason="looks answers up", candidates=(author,), subtree=True)
    assert history.after(prune).best in carriers(run)
    plan = " ".join(follow_code(run.repository, history, prune, carriers=False)[1])
    assert f"{len(carriers(run) - below)} other candidates carry its code, the best among them" in plan
    decide(run, follow_code(run.repository, history, prune, carriers=True)[0])
    assert carriers(run) <= history.pruned
    assert {history.best, *history.living()}.isdisjoint(carriers(run))

    crew.remember, copied = True, crew.copies
    run = await evolve(path, task, crew, 180)
    history = run.history
    assert carriers(run) <= history.pruned
    assert history.best not in carriers(run)
    assert history.phylogeny[history.best or ""].number > history.phylogeny[author].number
    refused = [each for each in history.failures if author[:7] in each.reason]
    assert len(refused) == crew.copies - copied > 0

    assert len(history.decisions) == 1
    decide(run, Decision(kind="undo", by="Ada", undoes=history.decisions[0].id))
    assert history.pruned == set()
    assert history.best in carriers(run)
    assert not CarriedCode(run.repository, history).refusal(history.phylogeny[author].tree, ())


SOLVE = b"def solve(points):\n    return [0.0 for _ in points]\n"


class Family(RecordedRun):
    """Candidates of one file, each evaluated."""

    def child(self, text: bytes, *parents: str, **known: object) -> str:
        return self.add_files({"a.py": text}, *parents, value=1.0, **known)


def test_code_is_followed_along_what_authors_saw_and_matches_by_chance_stay(tmp_path: Path) -> None:
    family = Family(tmp_path / "repo")
    seed, text = family.child(SOLVE), SOLVE
    other = family.child(text + b"SCALE = 2.5\n", seed)
    bad = family.child(text + CHEAT, seed)
    alike = family.child(b"# mine\n" + text + CHEAT, seed)
    rebased = family.child(text + b"SCALE = 2.5\n" + CHEAT, other, rebased_from=bad)
    part = family.child(text + b"\n".join(CHEAT.splitlines()[3:6]), other, shown=(rebased, alike))
    indented = family.child(text + b"class A:\n" + CHEAT.replace(b"\n", b"\n    "), seed, shown=(bad,))
    clean = family.child(text + b"SCALE = 3.5\n", other, shown=(bad,))
    back = family.child(text + CHEAT + b"SCALE = 4.5\n", family.child(text, bad))
    found = CarriedCode(family.repository, family.history).of(bad)
    assert set(found.copies) == {rebased, part, indented, back}
    assert found.independent == (alike,)
    decide(family.stored, Decision(kind="prune", by="Ada", candidates=(bad,), carriers=found.copies))
    assert family.history.pruned == {bad, *found.copies}
    code = CarriedCode(family.repository, family.history)
    tree = family.repository.trees.write(family.repository.tree_of(clean), {"b.py": CHEAT})
    assert bad[:7] in code.refusal(tree, (clean,))
    assert code.refusal(tree, (clean, alike)) == ""
    with pytest.raises(RefusedError, match="already"):
        decide(family.stored, Decision(kind="prune", by="Ada", candidates=(bad,), carriers=found.copies))


@pytest.mark.parametrize(
    ("path", "before", "after", "with_it", "without"),
    [
        ("a.py", b"RATE = 0.25\nPI = 3\n", b"RATE = 0.75\nPI = 3\n", b"RATE = 0.75\n", b"RATE = 0.5\nPI = 3\n"),
        (
            "a.go",
            b"for i := range xs {\n\tsum += xs[i] * 2\n}\nreturn sum / 10\n",
            b"for i := range xs {\n\tsum += xs[i] << 1\n}\nreturn sum / 10\n",
            b"package b\nfor i := range xs {\n  sum += xs[i] << 1\n}\nreturn sum / 10\n",
            b"package b\nfor i := range xs {\n  sum += xs[i] * 2\n}\nreturn sum / 10\n",
        ),
    ],
)
def test_a_small_step_is_followed_too(
    tmp_path: Path, path: str, before: bytes, after: bytes, with_it: bytes, without: bytes
) -> None:
    run = RecordedRun(tmp_path / "repo")
    seed = run.add_files({path: before}, value=1.0)
    bad = run.add_files({path: after}, seed, value=1.0)
    carrier = run.add_files({path: with_it}, seed, value=1.0, shown=(bad,))
    run.add_files({path: without}, seed, value=1.0, shown=(bad,))
    assert CarriedCode(run.repository, run.history).of(bad).copies == (carrier,)


def quarantined(folder: Path) -> tuple[Family, str, str, str]:
    """A run with a seed, a candidate with `CHEAT` that was pruned with its carriers, and a child that removed it."""
    family = Family(folder / "repo", editable=("**",))
    seed = family.child(SOLVE)
    bad = family.child(SOLVE + CHEAT, seed)
    clean = family.child(SOLVE, bad, title="without it")
    better = family.child(SOLVE + b"SCALE = 2.5\n", clean)
    decide(family.stored, Decision(kind="prune", by="Ada", candidates=(bad,), carriers=()))
    return family, seed, bad, better


def test_neither_a_commit_of_a_person_nor_a_step_taken_out_brings_pruned_code_back(tmp_path: Path) -> None:
    family, seed, bad, better = quarantined(tmp_path)
    adding = Adding(family.stored)
    for parent in (seed, bad):
        commit = family.commit({"a.py": SOLVE + b"SCALE = 3.5\n" + CHEAT}, parent, title="mine")
        with pytest.raises(RefusedError, match=bad[:7]):
            adding.add(commit)
    assert adding.add(family.commit({"a.py": SOLVE + b"SCALE = 3.5\n"}, seed, title="mine"))
    graph = family.history.phylogeny
    removing = next(each for each in graph if each.title == "without it")
    with pytest.raises(RefusedError, match=bad[:7]):
        without(family.repository, family.history, graph[better], removing)
    decide(family.stored, Decision(kind="undo", by="Ada", undoes=family.history.decisions[0].id))
    assert without(family.repository, family.history, graph[better], removing)
    assert adding.add(family.commit({"a.py": SOLVE + b"SCALE = 4.5\n" + CHEAT}, seed, title="mine"))


def test_a_copy_that_came_after_the_plan_is_pruned_too(tmp_path: Path) -> None:
    family = Family(tmp_path / "repo")
    seed = family.child(SOLVE)
    bad = family.child(SOLVE + CHEAT, seed)
    viewer = StoredRun.open(Repository.open(tmp_path / "repo"), "r")
    prune = Decision(kind="prune", by="Ada", candidates=(bad,))
    decision, _ = follow_code(viewer.repository, viewer.history, prune, carriers=True)
    late = family.child(SOLVE + b"SCALE = 2.5\n" + CHEAT, seed, shown=(bad,))
    decide(viewer, decision)
    assert viewer.history.pruned == {bad, late}
