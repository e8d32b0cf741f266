"""What researchers ask of a run that is over: a table, and what was best by then."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest

from evogit.events import Duplicate, FailedProposal, Spent
from evogit.review.timeline import COLUMNS

from .conftest import Cli, Small, Story

GUIDE = Path(__file__).parents[2] / "docs" / "guide.md"


@pytest.fixture
def paid(tmp_path: Path) -> Story:
    """A seed of 1, a duplicate and two candidates of a model: 1.5, and 2 with an awkward title."""
    story = Story(tmp_path / "repo")
    seed = story.add(1.0, title="Seed")
    for move, value, title in ((1, 1.5, 'a, "b"'), (2, 2.0, "=SUM(A1)\nmore")):
        known = {"prompt": 1000, "completion": 100, "dollars": 0.25 * move}
        story.append(Spent(engine="e", move=move, agent="a1", model="big", **known))  # type: ignore[arg-type]
        story.add(value, seed, title=title)
        if move == 1:
            spent = Spent(engine="e", move=9, agent="a2", model="big", prompt=10, completion=1, dollars=0.125)
            story.append(spent)
            story.append(Duplicate(engine="e", move=9, agent="a2", first=seed, parents=(seed,)))
    return story


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def exported(cli: Cli, folder: Path) -> str:
    """The table of a run as a file."""
    assert cli("export", "run.csv", cwd=folder).code == 0
    return (folder / "run.csv").read_bytes().decode()


def test_the_table_has_candidates_in_the_order_of_evaluation_with_what_they_cost(cli: Cli, paid: Story) -> None:
    out = exported(cli, paid.folder)
    assert out.count("\r\n") == 4
    seed, first, second = rows(out)
    assert [each["order"] for each in (seed, first, second)] == ["1", "2", "3"]
    assert [each["best"] for each in (seed, first, second)] == ["1.0", "1.5", "2.0"]
    assert (first["title"], first["parents"], first["model"]) == ('a, "b"', seed["candidate"], "big")
    assert (first["dollars"], first["prompt_tokens"], first["gain"]) == ("0.25", "1000", "0.5")
    assert (second["total_dollars"], second["total_tokens"]) == ("0.875", "2211")
    assert second["title"] == "'=SUM(A1) more"
    assert second["metric:score"] == "2.0"
    assert 0 <= int(seed["elapsed_ms"]) <= int(second["elapsed_ms"])


def test_the_table_has_a_column_for_each_case_and_what_was_not_evaluated_comes_last(cli: Cli, paid: Story) -> None:
    seed = paid.history.seed
    assert seed
    waiting = paid.add_files({"main.py": b"WAITING = 1\n"}, seed, title="waits")
    odd = paid.add_files({"main.py": b"ODD = 1\n"}, seed)
    paid.evaluate(odd, 1.25, cases={"n 5": {"score": 1.0}, "n, 6": {"score": 1.5}})
    found = rows(exported(cli, paid.folder))
    assert (found[3]["candidate"], found[3]["case:n 5"], found[3]["case:n, 6"]) == (odd, "1.0", "1.5")
    assert (found[4]["candidate"], found[4]["order"], found[4]["status"]) == (waiting, "", "")
    assert cli("log", "--csv", cwd=paid.folder).code == 2


def test_every_column_is_documented() -> None:
    about = GUIDE.read_text().partition("**Columns of `run.csv`**")[2].partition("\n## ")[0]
    first = [line.split("|")[1] for line in about.splitlines() if line.startswith("| `")]
    told = [name for cell in first for name in re.findall("`([a-z_]+)`", cell)]
    assert set(COLUMNS) == set(told)


def test_what_was_best_at_a_moment_is_shown_as_it_was_then(cli: Cli, small: Small) -> None:
    def best(at: str) -> str:
        return str(cli("status", "--at", at, "--json", cwd=small.folder).json["commit"])

    assert [best(at) for at in ("@1", "@2", "@5", small.left[:7], "@7")] == [
        *(small.seed, small.step, small.left, small.left, small.merge)
    ]
    assert "2.0000" not in cli("status", "--at", "@5", cwd=small.folder).out
    assert cli("status", "--at", "@8", cwd=small.folder).code == 3


def test_what_was_done_adds_up(cli: Cli, paid: Story) -> None:
    paid.append(FailedProposal(engine="e", move=10, agent="a1", parents=(paid.history.seed or "",), reason="r"))
    said = cli("status", cwd=paid.folder).out
    assert "3 evaluated · 0 failed · 4 proposals: 2 candidates, 1 duplicate, 1 unusable" in said
    assert "3 calls for 3 proposals" in said
