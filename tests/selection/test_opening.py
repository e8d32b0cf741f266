"""What a person can type after --selector, and what is said when that is wrong; a short run with each."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from evogit.config import Task
from evogit.config.run_settings import Settings
from evogit.core import UsageError
from evogit.repository import Repository
from evogit.run import Run
from evogit.selection.map_elites import traits_of
from evogit.selection.registry import open_selector, selectors
from tests.conftest import MakeTask

from .born import CREW, Lottery

ROOT = Path(__file__).parent.parent.parent

RUNS = [
    *("weighted:archive=10", "pareto", "pareto:over=metrics"),
    *("map-elites:size=0..500/10,changed=0..20/5", "islands:count=2,every=5,migrants=2"),
    "elitist:random=yes,p_restart=0,p_explore=1.0,restart_horizon=50",
]

WRONG = [
    ("wieghted", "no selector 'wieghted'; did you mean \"weighted\"?\n"),
    ("foo", "no selector 'foo'; available:\n  elitist"),
    ("", "no selector ''; available:"),
    ("weighted:archve=3", "weighted:archive=N,pressure=N: no option 'archve'; did you mean \"archive\"?"),
    ("weighted:archive=0", "a whole number from 1 to a million, got archive=0"),
    ("weighted:archive=00000000019999999999", "a whole number from 1 to a million"),
    ("weighted:archive=1e3", "a whole number from 1 to a million, got archive=1e3"),
    ("weighted:archive", "expected KEY=VALUE,..., got 'archive'"),
    ("weighted:archive=1,archive=2", "expected each option once"),
    ("elitist:merge=maybe", "expected merge=yes or merge=no, got merge=maybe"),
    ("elitist:p_explor=1", "no option 'p_explor'; did you mean \"p_explore\"?"),
    ("elitist:p_donor=1.5", "expected p_donor=X, a number from 0 to 1, got p_donor=1.5"),
    ("elitist:boldness_max=nan", "expected boldness_max=X, a number from 1 to 100"),
    ("elitist:restart_horizon=0", "a whole number from 1 to a million, got restart_horizon=0"),
    ("pareto:over=all", "expected over=metrics or over=cases, got over=all"),
    ("sequential:n=1", "sequential: no option 'n'; it has none"),
    ("map-elites", "expected what makes a kind: METRIC=LOW..HIGH/PARTS"),
    ("map-elites:size=9..1/3", "expected size=LOW..HIGH/PARTS"),
    ("map-elites:size=0..1/0", "expected size=LOW..HIGH/PARTS"),
    ("map-elites:size=0..nan/3", "expected size=LOW..HIGH/PARTS"),
    *((f"map-elites:size={axis}", "expected size=LOW..HIGH/PARTS") for axis in ("-1e999..5/2", "0..5e-324/2")),
    (f"map-elites:size=0..1/{'9' * 5000}", "expected size=LOW..HIGH/PARTS"),
    ("map-elites:scroe=0..1/3", "nothing called 'scroe' describes candidates of this task; did you mean \"score\"?"),
    ("islands:off=weighted", "no option 'off'"),
    ("nowhere.py:Mine", "expected FILE.py:Name with a file that is there"),
]


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_what_is_wrong_is_said_with_what_is_expected(task: Task, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        open_selector(text, traits_of(task))


def test_whoever_is_wrong_about_a_name_sees_all(tiny: MakeTask) -> None:
    with pytest.raises(UsageError) as caught:
        open_selector("x")
    assert all(f"\n  {name}" in str(caught.value) for name in [*selectors(), "FILE.py:Name"])


def test_every_usage_names_options_that_there_are(task: Task) -> None:
    traits = traits_of(task)
    for name, kind in selectors().items():
        usage = kind.summary().partition("  ")[0].removeprefix(name).removeprefix(":")
        text = usage.replace("METRIC=LOW..HIGH/PARTS,...", "size=0..1/2")
        for option in filter(None, text.split(",")):
            open_selector(f"{name}:{option.replace('=N', '=2').partition('|')[0]}", traits)


def test_the_page_on_searching_names_every_selector() -> None:
    page = (ROOT / "docs/searching.md").read_text(encoding="utf-8")
    assert [name for name in selectors() if not re.search(rf"\b{name}\b", page)] == []


@pytest.mark.parametrize(
    ("text", "used"),
    [
        ("tournament:size=2,latest=3", "Weighted"),
        ("islands:of=pareto,count=2", "Islands"),
        ("elitist:graft=yes", "Elitist"),
    ],
)
def test_a_removed_selector_or_option_is_reported_and_replaced(
    caplog: pytest.LogCaptureFixture, text: str, used: str
) -> None:
    open_selector(text)
    assert not caplog.records, "to check a text is not to begin a run"
    assert type(open_selector(text, {})).__name__ == used
    assert len(caplog.records) == 1


@pytest.mark.slow
@pytest.mark.parametrize("text", RUNS)
def test_a_deterministic_run_with_it_breeds_and_repeats(task: Task, tmp_path: Path, text: str) -> None:
    ids = []
    for name in ("one", "two"):
        settings = Settings(selector=text, evaluations=30, deterministic=True)
        run = Run(Repository.create(tmp_path / name), task, "r", settings, agents=CREW, backend=Lottery(task))
        assert asyncio.run(run.evolve()).reason == "evaluations"
        ids.append([candidate.commit for candidate in run.history.phylogeny])
    assert ids[0] == ids[1]
    assert len({candidate.parents for candidate in run.history.phylogeny}) > 3
