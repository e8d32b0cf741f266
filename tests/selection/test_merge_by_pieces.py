"""Merges by pieces: what each candidate does better, as good as the cases say; and what such merges make of a run."""

from __future__ import annotations

import ast
import asyncio
import random
import runpy
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from evogit.agents import NoUsableChangeError
from evogit.agents.mutation.mutator import Mutator
from evogit.breeding.breeder import Bred, Breeder
from evogit.config import Task, load_task
from evogit.config.run_settings import Settings
from evogit.core import ConfigError, Evaluation, Evidence
from evogit.history import History
from evogit.repository import Repository
from evogit.run import Run
from evogit.selection import Move
from evogit.selection.anatomy import Piece
from evogit.selection.elitist import Elitist
from evogit.selection.merge_by_pieces import Partition
from evogit.selection.merge_strategies import PIECES, outcome
from evogit.selection.registry import open_selector
from evogit.source.pieces import WHOLE
from evogit.testing import Answer, Asked, InMemoryBackend

from .grown import FLAT, SEED, Grown, constant

LANDSCAPE = Path(__file__).parent.parent.parent / "benchmarks" / "landscapes" / "two_modules"


def anyone(commit: str) -> bool:
    return True


class Garden(Grown):
    """Two lines, of which one is better in the cases a and b, the other one in x; A, B and X are known to be apart."""

    def __init__(self, repository: Repository) -> None:
        super().__init__(repository)
        self.low = self.grow(constant("A", 1), FLAT | {"a": 1.0}, 0)
        self.grow(constant("B", 1), FLAT | {"b": -1.0}, 0)
        self.side = self.grow(constant("X", 1), FLAT | {"x": 2.0}, 0)
        self.top = self.grow(
            {"one.py": SEED["one.py"].replace(b" = 0", b" = 2")}, {"a": 5.0, "b": 5.0, "x": 0.0}, self.low
        )
        self.partition = Partition(self.anatomy)

    def move(self, onto: int, is_mine: Callable[[str], bool] = anyone) -> Move | None:
        return self.partition.move(self.history, self.ids[onto], is_mine)

    def breed(self, move: Move, task: Task) -> Bred:
        breeder = Breeder(self.repository, task, self.history)
        return asyncio.run(breeder.breed(Mutator(), move, random.Random(1)))


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return Repository.create(tmp_path_factory.mktemp("partition") / "r")


@pytest.fixture
def garden(repository: Repository) -> Garden:
    return Garden(repository)


@pytest.fixture
def task(tiny: Callable[..., Task]) -> Task:
    return replace(tiny(), editable=("**",))


def test_the_child_has_what_each_does_better_and_is_as_good_as_the_cases_say(garden: Garden, task: Task) -> None:
    move = garden.move(garden.top)
    assert move == Move(
        operator="merge",
        parents=(garden.ids[garden.top], garden.ids[garden.side]),
        strategy=PIECES,
        pieces=frozenset({Piece("two.py", "X")}),
    )
    bred = garden.breed(move, task)
    assert garden.content(bred.tree) == {
        **SEED,
        **constant("X", 1),
        "one.py": garden.content(garden.commit(garden.top))["one.py"],
    }
    assert (bred.operator, bred.strategy, bred.parents, bred.conflicts) == ("merge", PIECES, move.parents, 0)
    assert bred.title == f"merge {bred.parents[0][:7]} × {bred.parents[1][:7]}, of which X"


def test_what_was_tried_or_pruned_or_is_another_agents_is_not_proposed(garden: Garden) -> None:
    assert garden.move(garden.top, lambda commit: False) is None
    move = garden.move(garden.top)
    assert move is not None
    child = garden.place(garden.commit(garden.top), garden.top, garden.side, strategy=PIECES)
    assert garden.move(garden.top) is None
    garden.history.attempts.horizon = child - 1
    assert garden.move(garden.top) == move, "in a deterministic run it is not known yet"
    garden.decide("prune", garden.side)
    assert garden.move(garden.top) is None


def test_who_is_worse_or_equal_everywhere_or_has_other_cases_gives_nothing(garden: Garden) -> None:
    garden.decide("prune", garden.side)
    better = garden.grow(constant("X", 9), {"a": 5.0, "x": 9.0}, 0)
    garden.grow(constant("X", 7), FLAT | {"a": 5.000000000000001}, 0)
    garden.grow(constant("X", 8), None, 0)
    assert garden.move(garden.top) is None
    assert garden.move(better) is None
    bare = garden.grow(constant("X", 5), {}, 0)
    assert garden.move(bare) is None, "it has no cases at all"


def test_it_is_silent_where_scores_are_noisy(garden: Garden) -> None:
    garden.history.repeats = 1
    assert garden.move(garden.top) is None


def test_pieces_that_share_a_case_come_together(garden: Garden) -> None:
    garden.grow(constant("Y", 1), FLAT | {"x": 1.0}, 0)
    files = {"two.py": b"X = 3\nY = 3\n", "one.py": SEED["one.py"].replace(b"B = 0", b"B = 3")}
    other = garden.grow(files, {"a": 2.0, "b": 0.5, "x": 7.0}, 0)
    move = garden.move(garden.top)
    assert move is not None
    assert move.parents[1] == garden.ids[other]
    assert move.pieces == {Piece("two.py", "X"), Piece("two.py", "Y")}, "A and B are better as they are"


@pytest.mark.parametrize("turn", [-1.0, 1.0])
def test_better_is_what_the_metric_says(garden: Garden, turn: float) -> None:
    garden.metrics = (replace(garden.metrics[0], direction="minimize" if turn < 0 else "maximize"), garden.metrics[1])
    garden.change_task()
    for number in range(len(garden.ids)):
        values = [{}, {"a": 1.0}, {"b": -1.0}, {"x": 2.0}, {"a": 5.0, "b": 5.0}][number]
        cases = {case: turn * value for case, value in (FLAT | values).items()}
        garden.judge(number, sum(cases.values()), cases=cases)
    move = garden.move(garden.top)
    assert move is not None
    assert move.pieces == {Piece("two.py", "X")}


@pytest.mark.parametrize("path", ["link", "program.sh", "new.py", "notes.txt", "gone"])
def test_links_modes_new_and_removed_files_are_taken_whole(garden: Garden, task: Task, path: str) -> None:
    trees, blob = garden.repository.trees, garden.repository.trees.write_blob(b"one.py")
    start = garden.repository.trees.write(garden.commit(garden.top), {"gone": b"1", "program.sh": b"2"})
    garden.grow({}, {"a": 5.0, "b": 5.0, "x": 0.0}, garden.top, tree=start)
    best = len(garden.ids) - 1
    entry = {"link": (0o120000, blob), "program.sh": (0o100755, blob), "gone": None}.get(path, (0o100644, blob))
    other = trees.with_entries(trees.write(start, {"one.py": SEED["one.py"]}), {path: entry})
    garden.grow({}, {"a": 0.0, "b": 0.0, "x": 9.0}, best, tree=other)
    garden.grow({}, {"a": 5.0, "b": 5.0, "x": 1.0}, best, tree=trees.with_entries(start, {path: entry}))
    garden.decide("prune", len(garden.ids) - 1)
    move = garden.move(best)
    assert move is not None
    assert move.pieces == {Piece(path, WHOLE)}
    tree = garden.breed(move, task).tree
    assert tree == trees.with_entries(start, {path: entry})


def test_what_is_protected_is_one_failed_proposal(garden: Garden, tiny: Callable[..., Task]) -> None:
    move = garden.move(garden.top)
    assert move is not None
    with pytest.raises(NoUsableChangeError, match=r"expected changes to editable files only, got two\.py"):
        garden.breed(move, tiny())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pieces": frozenset({Piece("two.py", "Y")})}, "expected pieces in which the parents differ"),
        ({"pieces": frozenset({Piece("none.py", WHOLE)})}, "expected pieces in which the parents differ"),
        ({"operator": "graft"}, "expected a strategy of .*, got 'pieces'"),
    ],
)
def test_a_move_that_makes_no_sense_is_one_failed_proposal(
    garden: Garden, task: Task, change: dict[str, Any], message: str
) -> None:
    move = garden.move(garden.top)
    assert move is not None
    with pytest.raises(NoUsableChangeError, match=message):
        garden.breed(replace(move, **change), task)


@pytest.mark.parametrize("pieces", ["['one.py']", "frozenset({('one.py', 'A')})", "None", "frozenset({'A'})"])
def test_a_selector_of_a_person_that_names_no_pieces_is_told_so(tmp_path: Path, garden: Garden, pieces: str) -> None:
    move = f"Move(operator='merge', parents=tuple(history.judgements[:2]), strategy='pieces', pieces={pieces})"
    chooses = f"def next_move(self, history, *_): return {move}"
    text = f"from evogit import Move\nclass S:\n    {chooses}\n    adopts = next_move\n"
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(ConfigError, match="to return a Move with its parents, got Move"):
        garden.moves(open_selector(f"{tmp_path}/mine.py:S"), times=1)


def test_the_default_selector_merges_by_pieces_mostly_and_never_without_an_anatomy(garden: Garden) -> None:
    garden.history.best = garden.ids[garden.top]
    found = [move.strategy == PIECES for move in garden.moves(Elitist(anatomy=garden.anatomy), times=100)]
    assert 50 < sum(found) < 85
    assert not any(move.strategy == PIECES for move in garden.moves(Elitist(), times=100))


# --- whole runs -----------------------------------------------------------------------------------------------------


class Machines(InMemoryBackend):
    """Evaluates as the landscape `two_modules` does, without running anything: the files are constants."""

    def __init__(self, task: Task, repository: Repository) -> None:
        super().__init__(task, self._outputs)
        self._repository = repository
        self._machines = runpy.run_path(str(task.evaluator))["MACHINES"]

    def _outputs(self, asked: Asked) -> Answer:
        contents = self._repository.trees.files(asked.tree, lambda path: True)
        try:
            cases = {name: {"output": self._output(name, contents[f"{name}.py"])} for name in self._machines}
        except (ValueError, TypeError) as error:
            return Evaluation(status="invalid", reason=str(error), split=asked.split)
        total = sum(values["output"] for values in cases.values())
        return Evaluation(status="ok", metrics={"output": total}, cases=cases, split=asked.split), Evidence()

    def _output(self, name: str, content: bytes) -> float:
        body = [each for each in ast.parse(content).body if isinstance(each, ast.Assign)]
        found = {ast.unparse(each.targets[0]): ast.literal_eval(each.value) for each in body}
        if len(found) != 8:
            raise ValueError(f"expected 8 settings, got {len(found)}")
        return float(self._machines[name].output([found[name] for name in sorted(found)]))


def evolve(folder: Path, agents: int = 2, **options: Any) -> History:
    """A run on the landscape in this folder, which is begun or goes on."""
    repository = Repository.open(folder) if folder.exists() else Repository.create(folder)
    task, settings = load_task(LANDSCAPE), Settings(deterministic=True, seed=3, **options)
    executor = Machines(task, repository)
    run = Run(repository, task, "r", settings, agents=[Mutator()] * agents, backend=executor)
    asyncio.run(run.evolve())
    return run.history


def ids(history: History) -> list[str]:
    return [candidate.commit for candidate in history.phylogeny]


def gains(history: History) -> list[float]:
    found = [outcome(history, each.commit) for each in history.phylogeny if each.strategy == PIECES]
    return [each.gain or 0.0 for each in found if each]


@pytest.mark.slow
def test_merges_by_pieces_mostly_beat_both_parents_and_equal_runs_are_equal_on_and_on(tmp_path: Path) -> None:
    first = evolve(tmp_path / "one", evaluations=40)
    assert ids(first) == ids(evolve(tmp_path / "two", evaluations=40))
    assert any("apart)" in candidate.title for candidate in first.phylogeny)
    shutil.copytree(tmp_path / "one", tmp_path / "three")
    longer = evolve(tmp_path / "one", evaluations=80)
    assert ids(longer)[: len(first.phylogeny)] == ids(first)
    assert ids(longer) == ids(evolve(tmp_path / "three", evaluations=80))
    made = gains(longer)
    assert len(made) >= 3
    assert sum(gain > 0 for gain in made) > len(made) / 2


@pytest.mark.slow
def test_on_islands_too(tmp_path: Path) -> None:
    options: dict[str, Any] = {"evaluations": 40, "selector": "islands:of=elitist,count=2"}
    first = evolve(tmp_path / "one", agents=4, **options)
    assert ids(first) == ids(evolve(tmp_path / "two", agents=4, **options))
    assert gains(first)
