"""Every face tells the same score, interval, gain and status of a candidate: for a thousand generated histories.

What a face renders is parsed, and compared with what rules say that are written here once more.
"""

from __future__ import annotations

import math
import random
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, json
from msgspec.structs import replace

from evogit.agents import Relative
from evogit.agents.briefs import digest
from evogit.cli.commands.log import _row as log_row
from evogit.cli.lines.compare import best_against_seed
from evogit.cli.lines.view import View
from evogit.cli.terminal import PLAIN, PRETTY
from evogit.core import Beside, Evaluation, Metric, Status
from evogit.events import Evaluated, TaskChanged
from evogit.history import History
from evogit.history.context import StoredRun
from evogit.history.standing import places, standing
from evogit.library.result import CandidateView, Result
from evogit.page.payload import Columns
from evogit.repository import Repository
from evogit.review.json_records import candidate_record, status_record
from evogit.testing import RecordedHistory
from tests.page.conftest import Evaluate

HISTORIES, JAVASCRIPT = 1000, 10
"""Generated histories, and every how many-th is read by the page's own code, too."""

FAILURES: tuple[Status, ...] = ("crashed", "timeout", "invalid", "out-of-memory")


class Face(Struct, frozen=True, kw_only=True):
    """What one face tells of a candidate; `digits`: numbers are off by less than half of the last decimal."""

    status: str
    score: float | None = None
    margin: float | None = None
    gain: float | None = None
    verdict: str | None = None
    apart: bool = False
    digits: int | None = None


# --- histories --------------------------------------------------------------------------------------------------------


def generated(number: int) -> RecordedHistory:
    """A run with merges, inspirations, failures, repeats, prunings, corrections and changes of the task."""
    rng = random.Random(number)
    direction: Any = rng.choice(("maximize", "minimize"))
    scale, noise = 10.0 ** rng.randrange(-5, 7), rng.choice((0.0, 0.0, 0.01, 0.3))
    common = rng.choice((0.0, 1.0))
    repeats = rng.choice((1, 3)) if noise or rng.random() < 0.2 else 0
    known = rng.choice((None, 1.5 * scale, scale * (1 + 1e-6)))
    metric = Metric(name="score", direction=direction, primary=True, best_known=known, bound=rng.random() < 0.3)
    paired = repeats > 0 and rng.random() < 0.3
    run = RecordedHistory(f"r{number}", metrics=(metric,), repeats=repeats, paired=paired)
    effects = [0.0, *(common * noise * scale * rng.gauss(0, 3) for _ in range(6))]
    worth = dict[str, float]()

    def measure(commit: str, repeat: int = 0, **more: Any) -> None:
        if commit not in worth:
            special = (scale, scale * (1 + 1e-15), scale * (1 + 1e-6), 0.0, -scale)
            worth[commit] = rng.choice(special) if rng.random() < 0.2 else scale * rng.gauss(1, 0.3)
        value: float | Status = worth[commit] + effects[repeat] + noise * scale * rng.gauss(0, 0.1)
        if paired and repeat:
            metrics = {"score": scale * rng.uniform(0.9, 1.1)}
            more["beside"] = Beside(candidate=ids[0], metrics=metrics)
        run.evaluate(commit, rng.choice(FAILURES) if rng.random() < 0.12 else value, repeat=repeat, **more)

    ids = [run.propose()]
    run.evaluate(ids[0], scale)
    worth[ids[0]] = scale
    for _ in range(rng.randrange(2, 16)):
        parents = rng.sample(ids, min(rng.choice((1, 1, 1, 2)), len(ids)))
        shown = tuple({rng.choice(ids)} - {*parents}) if rng.random() < 0.3 else ()
        ids.append(run.propose(*parents, shown=shown, inspirations=shown, title=f"step {len(ids)}"))
        if rng.random() < 0.9:
            measure(ids[-1])
    for _ in range(rng.randrange(4) if not repeats else rng.randrange(12)):
        commit = rng.choice(ids)
        if repeats and run.history.fitness(commit) is not None:
            measure(commit, repeat=rng.randrange(1, 7))
    if rng.random() < 0.15:
        again = Evaluation(status="ok", metrics={"score": 2 * scale})
        run.append(Evaluated(candidate=rng.choice(ids), evaluation=again, instead="it was not believed"))
    if rng.random() < 0.2:
        run.decide("prune", rng.choice(ids[1:]))
    if rng.random() < 0.1:
        run.evaluate(run.add(scale, ids[0]), "evaluator-error", repeat=9)
        run.evaluate(run.propose(ids[0]), "evaluator-error")
        run.evaluate(run.propose(ids[0]), "not-measured")
    if rng.random() < 0.1:
        change = TaskChanged(by="Ada", task_digest="u", metrics=(metric,), split="train", evaluator="v", editable=())
        run.append(change)
        for commit in rng.sample(ids, len(ids) // 2):
            run.evaluate(commit, scale * rng.gauss(1, 0.3), evaluator="v")
    return run


# --- faces ------------------------------------------------------------------------------------------------------------

NUMBER = r"[-+]?[\d,]+(?:\.\d+)?(?:e[-+]\d+)?|[-+]?inf"
SCORE = re.compile(rf"(?P<value>{NUMBER})(?: (?:±|\+-) (?P<margin>{NUMBER}|\?))?")
GAIN = re.compile(rf"(?P<apart>~?)(?P<gain>{NUMBER})(?: (?P<noise>within noise))?|(?P<tied>tied)")


def of(text: str) -> float:
    return math.inf if text == "?" else float(text.replace(",", ""))


def read(score: str, gain: str, status: str, digits: int) -> Face:
    """A candidate as a table has it."""
    value, change = SCORE.fullmatch(score), GAIN.fullmatch(gain)
    if value is None:
        assert gain == ""
        return Face(status=status)
    told: dict[str, Any] = {"score": of(value["value"]), "margin": of(value["margin"] or "0"), "digits": digits}
    if change:
        amount = 0.0 if change["tied"] else of(change["gain"])
        told |= {"gain": amount, "verdict": change["tied"] or change["noise"] or ("better" if amount > 0 else "worse")}
        told["apart"] = bool(change["apart"])
    return Face(status="ok", **told)


SHORT = {"...": "waiting", "…": "waiting", "old": "old", "flaky": "flaky", "not measured": "not-measured"}


def terminal(view: View, commit: str) -> Iterator[tuple[str, Face]]:
    """The row of `log`, and that of `graph`, `watch` and `blame`, which have two of its cells."""
    candidate = view.history.phylogeny[commit]
    _, _, (score, _), (gain, _), *_ = log_row(view, candidate, {})
    failed = view.title(candidate)[0][0].strip() if score in ("fail", "flaky") else ""
    yield "log", read(score, gain, failed or SHORT.get(score, "ok"), view.places)
    graph = view.score(commit).plain, view.gain(commit).plain
    yield "graph", read(*graph, failed or SHORT.get(score, "ok"), view.places)


def json_face(history: History, commit: str) -> Face:
    told = json.decode(json.encode(candidate_record(history, history.phylogeny[commit])))
    status = told["status"] or ("old" if told["former"] else "waiting")
    if told["score"] is None:
        assert told["metrics"] == {} or status != "ok"
        return Face(status="waiting" if status == "evaluator-error" else status)
    assert told["metrics"]["score"] == told["score"]
    assert told["origin"] in (None, *history.origins(commit))
    low, high = told["interval"] or (-math.inf, math.inf)
    assert history.interval(commit) == (low, high)
    half = (high - low) / 2
    about = {"verdict": told["verdict"], "apart": told["side_by_side"] is False and told["verdict"] != "tied"}
    return Face(status=status, score=told["score"], margin=half, gain=told["gain"], **about)


def library(result: Result, commit: str) -> Face:
    view = CandidateView(result, result.history.phylogeny[commit])
    status = {None: "waiting", "evaluator-error": "waiting"}.get(view.status, view.status or "")
    if status == "waiting" and result.history.former(commit) and view.status is None:
        status = "old"
    if view.score is None:
        assert (view.gain, view.interval, view.verdict) == (None, None, None)
        return Face(status=status)
    assert view.interval
    low, high = view.interval
    margin = math.inf if math.isinf(high) else (high - low) / 2
    compared = view.standing.comparison
    apart = compared is not None and compared.apart and compared.verdict != "tied"
    return Face(status=status, score=view.score, margin=margin, gain=view.gain, verdict=view.verdict, apart=apart)


def payload(history: History) -> dict[str, Face]:
    """The columns that the page gets."""
    columns = Columns(history)
    told = json.decode(json.encode(columns.of()))
    names = {kind: each.all() for kind, each in columns.names.items()}
    faces = {}
    for at, commit in enumerate(history.phylogeny.ids):
        status = names["statuses"][told["status"][at]]
        margin = told["margin"].get(str(at), 0.0)
        verdict = names["verdicts"][told["verdict"][at]]
        faces[commit] = Face(
            status="waiting" if status == "evaluator-error" else status,
            score=told["value"][at],
            margin=None if told["value"][at] is None else math.inf if margin == "unknown" else margin,
            gain=told["gain"][at],
            verdict=verdict.removeprefix("~") or None,
            apart=verdict.startswith("~") and verdict != "~tied",
        )
    return faces


LINE = re.compile(
    rf"- \w+ .*?: (?:(?P<value>{NUMBER})(?: ± (?P<margin>{NUMBER}|\?))?)?"
    rf"(?: ?\(?(?P<verdict>better|worse|within noise|tied)(?:, (?P<apart>~?)(?P<gain>{NUMBER}))?(?: over \w+)?\)?)?"
)


def brief(history: History, commit: str, digits: int) -> Face | None:
    """The line of a brief; None where a tie leaves the score out."""
    candidate, evaluation = history.phylogeny[commit], history.evaluation(commit)
    former, known = history.former(commit), standing(history, commit)
    relative = Relative(candidate=candidate, evaluation=evaluation, standing=known, former=former)
    line = digest._line(relative, digits, next(iter(candidate.parents), ""))
    if failed := re.search(r": failed \(([\w-]+)\)", line):
        return Face(status=failed[1])
    for words, status in (
        ("not evaluated since", "old"),
        ("not evaluated yet", "waiting"),
        ("as the evaluator itself", "waiting"),
        ("as the machine was", "not-measured"),
    ):
        if words in line:
            return Face(status=status)
    found = LINE.fullmatch(line)
    assert found, line
    if found["value"] is None:
        assert found["verdict"] == "tied"
        return None
    told: dict[str, Any] = {"score": of(found["value"]), "margin": of(found["margin"] or "0"), "digits": digits}
    told["verdict"], told["gain"] = found["verdict"], of(found["gain"]) if found["gain"] else None
    told["gain"] = 0.0 if found["verdict"] == "tied" else told["gain"]
    told["apart"] = bool(found["apart"])
    return Face(status="ok", **told)


def by_the_page(history: History, javascript: Evaluate) -> dict[str, Face]:
    """What the browser writes into its table."""
    columns = Columns(history)
    metric = {"direction": history.metric.direction}
    marks: Mapping[str, Any] = {"seed": 0, "best": 0, "records": [], "living": {}, "decided": []}
    about = {"candidates": columns.of(), "places": places(history), "began": 0, "metric": metric}
    about["marks"] = {**marks, "promoted": [], "pruned": []}
    about["names"] = {kind: each.all() for kind, each in columns.names.items()}
    cells = javascript(
        "(() => { const run = new Run(told_); return run.ids.map((_, at) => "
        "[scoreText(run, at), run.gainText(at), run.statusName(at), run.failed(at)]); })()",
        told=about,
    )
    faces = {}
    for commit, (score, gain, status, failed) in zip(history.phylogeny.ids, cells, strict=True):
        assert failed == (status not in ("ok", "old", "waiting", "evaluator-error", "not-measured"))
        told = "waiting" if status == "evaluator-error" else status
        faces[commit] = read(score, gain, told, places(history))
    return faces


# --- rules ------------------------------------------------------------------------------------------------------------


def expected(history: History, commit: str) -> Face:
    """What docs/believing.md says of a candidate, from evaluations alone where scores are exact."""
    evaluation, scores = history.evaluation(commit), history.scores
    if evaluation and evaluation.status == "not-measured":
        return Face(status="not-measured")
    if evaluation is None or not evaluation.counts:
        return Face(status="old" if evaluation is None and history.former(commit) else "waiting")
    if not evaluation.ok:
        return Face(status=evaluation.status)
    score, margin = scores.fitness(commit), scores.margin(commit)
    assert score is not None
    if not history.repeats:
        assert (score, margin) == (evaluation.metrics["score"], 0.0)
    sign = history.metric.sign
    valid = [each for each in history.origins(commit) if history.fitness(each) is not None]
    if not valid:
        return Face(status="ok", score=score, margin=margin)
    origin = max(valid, key=lambda each: sign * (history.fitness(each) or 0.0))
    over = history.fitness(origin) or 0.0
    above, noise = scores.difference(commit, origin) if history.repeats else (score - over, 0.0)
    gain = 0.0 if math.isclose(score, over, rel_tol=1e-12) and not history.repeats else sign * above
    verdict = "tied" if not gain else "within noise" if abs(gain) <= noise else "better" if gain > 0 else "worse"
    apart = bool(gain) and scores.paired and not scores.measured_beside(commit, origin)
    return Face(status="ok", score=score, margin=margin, gain=gain, verdict=verdict, apart=apart)


def same(told: Face, wanted: Face) -> bool:
    """Whether a face agrees with the rules, as far as its digits go."""
    if (told.status, told.verdict, told.apart) != (wanted.status, wanted.verdict, wanted.apart):
        return False
    pairs = [(getattr(told, name), getattr(wanted, name), name == "gain") for name in ("score", "margin", "gain")]
    return all(_near(*pair, told.digits, abs(wanted.score or 0.0)) for pair in pairs)


def _near(one: float | None, two: float | None, gain: bool, digits: int | None, scale: float) -> bool:
    """Whether two numbers are one: a small gain has a digit of its own, a brief tells three."""
    if one is None or two is None or one == two:
        return one is two or one == two
    if digits is None:
        return math.isclose(one, two, rel_tol=1e-9, abs_tol=1e-9 * scale)
    half = 0.5001 * 10.0**-digits
    small = gain and abs(two) < 2 * half
    return abs(one - two) <= max(half, abs(two) * (0.5 if small else 0.005 if gain else 0.0))


def test_the_best_is_compared_with_the_seed_alike_by_status_and_its_json(tmp_path: Path) -> None:
    repository, verdicts = Repository.create(tmp_path / "repository"), set[str]()
    for number in range(300):
        history = generated(number).history
        record, view = status_record(repository, history), View(history, PRETTY, time.time())
        gains = record["gains"]["train"] if record["gains"] else {"verdict": None}
        if gains["verdict"] is None:  # the seed itself is the best, or has no score any more
            continue
        row = next(line.plain for line in best_against_seed(view) if line.plain.startswith("score"))
        _, _, score, gain = re.split(r" {2,}", row)
        about = {"verdict": gains["verdict"], "apart": not gains["side_by_side"] and gains["verdict"] != "tied"}
        wanted = Face(status="ok", score=record["best"]["metrics"]["score"], gain=gains["gain"], **about)
        told = read(score, re.sub(r" \(.*", "", gain), "ok", view.places)
        assert same(replace(told, margin=None), wanted), row
        verdicts.add(gains["verdict"])
    assert verdicts >= {"better", "within noise"}


def test_all_faces_agree_on_score_interval_gain_and_status(tmp_path: Path, javascript: Evaluate) -> None:
    repository = Repository.create(tmp_path / "repository")
    verdicts, apart = set[str | None](), 0
    for number in range(HISTORIES):
        history = generated(number).history
        result = Result(StoredRun(repository, history, repository.journal("none", lambda entry: None)))
        view = View(history, PLAIN if number % 2 else PRETTY, time.time())
        page, drawn = payload(history), by_the_page(history, javascript) if number % JAVASCRIPT == 0 else {}
        for commit in history.phylogeny.ids:
            wanted = expected(history, commit)
            verdicts.add(wanted.verdict)
            apart += wanted.apart
            faces = dict(terminal(view, commit)) | {"json": json_face(history, commit), "page": page[commit]}
            faces |= {"library": library(result, commit)}
            faces |= {"brief": told} if (told := brief(history, commit, view.places + 2)) else {}
            faces |= {"browser": drawn[commit]} if drawn else {}
            wrong = {name: face for name, face in faces.items() if not same(face, wanted)}
            assert not wrong, (number, commit, wanted)
    assert verdicts == {None, "better", "worse", "within noise", "tied"}
    assert apart
