from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import evogit
from evogit.core import NotFoundError, UsageError
from evogit.library.result import dataframe
from evogit.testing import RecordedRun


@pytest.fixture
def written(tmp_path: Path) -> RecordedRun:
    """A run with a seed, a mutation, a merge, a failure and decisions."""
    run = RecordedRun(tmp_path / "repo")
    seed = run.add_files({"p.py": b"A = 1\n"}, value=1.0, title="seed")
    left = run.add_files({"p.py": b"A = 2\n"}, seed, value=2.0, title="left", reason="Two is more than one.")
    right = run.add_files({"q.py": b"B = 2\n"}, seed, value=1.5, title="right")
    evidence: tuple[dict[str, bytes], dict[str, bytes]] = ({"prompt.md": b"Do it."}, {"stderr": b"boom"})
    run.add_files({"p.py": b"A = (\n"}, left, value="crashed", title="broken", evidence=evidence)
    run.add_files({"p.py": b"A = 2\n", "q.py": b"B = 2\n"}, left, right, value=3.0, title="both")
    run.adopt(left)
    run.decide("promote", left, reason="simple")
    run.stop()
    return run


@pytest.fixture
def result(written: RecordedRun) -> evogit.Result:
    return evogit.read(written.repository.path)


def test_a_run_is_read_as_objects(result: evogit.Result) -> None:
    assert [each.title for each in result] == ["seed", "left", "right", "broken", "both"]
    assert (len(result), result.evaluations, result.failed, result.stopped) == (5, 5, 1, "evaluations")
    assert (result.best.title, result.best.score, result.seed.score) == ("both", 3.0, 1.0)
    assert result["a1"].title == "left"
    assert result[result.best.id[:8]] == result.best == result[-1]
    assert result.curve == [(1, 1.0), (2, 2.0), (3, 2.0), (4, 2.0), (5, 3.0)]
    assert [each.title for each in result.records] == ["seed", "left", "both"]
    assert result.record()["best"]["commit"] == result.best.id


def test_a_candidate_knows_its_family_its_code_and_what_was_said(result: evogit.Result) -> None:
    seed, left, right, broken, both = result.candidates
    assert both.parents == [left, right]
    assert seed.children == [left, right]
    assert both.lineage == [seed, left, both]
    assert (both.gain, both.operator, left.reason) == (1.0, "merge", "Two is more than one.")
    assert (broken.status, broken.score, broken.metrics) == ("crashed", None, {})
    assert broken.evidence == {"prompt.md": b"Do it.", "stderr": b"boom"}
    assert seed.text == "A = 1\n"
    assert both.files == {"p.py": b"A = 2\n", "q.py": b"B = 2\n"}
    assert "+A = 2" in left.diff()
    assert "+B = 2" in both.diff("seed")
    assert seed.diff() == ""
    with pytest.raises(UsageError, match="of one file"):
        _ = both.text


def test_decisions_are_there_until_they_are_taken_back(written: RecordedRun, result: evogit.Result) -> None:
    (decision,) = result["a1"].decisions
    assert (decision.kind, decision.reason) == ("promote", "simple")
    written.decide("undo", undoes=written.history.in_force()[0].id)
    assert result.refresh().decisions == []


def test_a_candidate_is_written_to_a_folder(result: evogit.Result, tmp_path: Path) -> None:
    result.best.export(tmp_path / "out")
    assert (tmp_path / "out" / "q.py").read_bytes() == b"B = 2\n"


def test_runs_of_a_repository_have_names(written: RecordedRun) -> None:
    RecordedRun(written.repository, "other").add_files({"p.py": b"A = 1\n"}, value=0.5)
    found = evogit.runs(written.repository.path)
    assert {name: each.best.score for name, each in found.items()} == {"other": 0.5, "r": 3.0}
    with pytest.raises(UsageError, match="several runs"):
        evogit.read(written.repository.path)
    with pytest.raises(NotFoundError, match="got 'none'"):
        evogit.read(written.repository.path, "none")


HOSTILE = "</td><script>alert(1)</script>\x1b[2J\u202e"


def test_a_notebook_is_shown_a_table_whatever_models_wrote(tmp_path: Path) -> None:
    run = RecordedRun(tmp_path / "repo")
    seed = run.add_files({"p.py": b"A = 1\n"}, value=1.0)
    run.add_files({"p.py": b"A = 2\n"}, seed, value=2.0, title=HOSTILE)
    shown = evogit.read(run.repository.path)._repr_html_()
    page = ElementTree.fromstring(shown.replace("·", ""))
    assert {each.tag.rpartition("}")[2] for each in page.iter()} <= {*("div", "b", "code", "table", "tr", "th", "td")}
    assert "alert(1)" in "".join(page.itertext())
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "\u202e" not in str(evogit.read(run.repository.path))


def test_a_data_frame_has_a_row_for_each_candidate(result: evogit.Result) -> None:
    for library in ("pandas", "polars"):
        if _absent(library):
            with pytest.raises(NotFoundError, match=f"pip install {library}"):
                result.to_dataframe(library)  # type: ignore[arg-type]
            continue
        frame = result.to_dataframe(library)  # type: ignore[arg-type]
        assert len(frame) == 5
        assert list(frame["title"])[:2] == ["seed", "left"]
        assert list(frame["metric:score"])[-1] == 3.0


def _absent(library: str) -> bool:
    try:
        __import__(library)
    except ModuleNotFoundError:
        return True
    return False


def test_without_a_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for library in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, library, None)  # type: ignore[arg-type]
    with pytest.raises(NotFoundError, match="pip install pandas"):
        dataframe({"a": [1]})
    with pytest.raises(UsageError, match="pandas or polars"):
        dataframe({"a": [1]}, "numpy")


def test_best_and_curve_of_a_result_are_of_one_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.py").write_text("A = 1\n")
    calls = iter(range(100))
    first = evogit.evolve("p.py", evaluate=lambda path: float(next(calls)), evaluations=3, repository="r")
    evogit.evolve("p.py", evaluate=lambda path: float(next(calls)), evaluations=6, repository="r", name=first.name)
    assert len(first.curve) == first.evaluations == 3
    assert len(first.refresh().curve) == first.evaluations
