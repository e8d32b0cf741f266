"""What the page shows of one candidate or of a whole run when somebody asks: bounded, and in the terminal's figures."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from sys import intern

from msgspec import to_builtins

from evogit.core import Candidate
from evogit.history import History
from evogit.history.standing import decimals, places, value_of
from evogit.history.state import standing
from evogit.page.payload import FollowedRun, Record
from evogit.repository import Repository
from evogit.repository.evidence import FEEDBACK, SESSION, is_prompt, read_feedback, session_facts
from evogit.review.decisions import decision_record, said_of
from evogit.review.evidence_files import gone
from evogit.review.forecast import Pace, forecast_record
from evogit.review.json_records import candidate_record, finite
from evogit.review.reporting import report_record
from evogit.review.spending import last_limits, uses

BLOCK = 500  # candidates whose titles come together
LONGEST = 200_000  # characters of a piece of evidence that are sent; `evogit show --file` has all of it
LONGEST_LINE = 4_000  # characters of a line of a diff that are sent
MOST_FOUND = 100_000  # candidates that a search finds at most
MOST_PATHS = 50  # changed files of a candidate that are named


def block(run: FollowedRun, number: int) -> Record:
    """Titles and changed files of the candidates of one block."""
    phylogeny = run.history.phylogeny
    known = [phylogeny[each] for each in phylogeny.ids[number * BLOCK : (number + 1) * BLOCK]]
    return {"titles": [each.title for each in known], "paths": [_paths(run, each) for each in known]}


def search(run: FollowedRun, text: str, path: str) -> Record:
    """Indices of the candidates whose title, id or failure holds the text, and which changed such a path."""
    wanted, history = text.lower(), run.history

    def searched(candidate: Candidate) -> str:
        """What is looked through; only failures have a reason, and each evaluation that is read stays in memory."""
        failed = history.evaluation(candidate.commit) if history.fitness(candidate.commit) is None else None
        return f"{candidate.commit} {candidate.title} {failed.reason if failed else ''}".lower()

    found = [each for each in history.phylogeny if not wanted or wanted in searched(each)]
    if path:
        found = [each for each in found if any(path in changed for changed in _paths(run, each))]
    return {"found": [each.number for each in found[:MOST_FOUND]]}


def _paths(run: FollowedRun, candidate: Candidate) -> Sequence[str]:
    """Files that differ from the first parent; looked up once, as a search asks for those of all."""
    known = run.paths.get(candidate.commit)
    if known is None:
        parents = candidate.parents
        before = run.history.phylogeny[parents[0]].tree if parents else candidate.tree
        found = run.repository.changed_paths(before, candidate.tree)[:MOST_PATHS]
        known = run.paths[candidate.commit] = tuple(map(intern, found))
    return known


# --- one candidate ------------------------------------------------------------------------------------------------


def summary(run: FollowedRun, candidate: Candidate) -> Record:
    """What `evogit show --json` tells of it, with what stands beside it on the page."""
    history = run.history
    tactic = history.tactics.get(history.advised.get(candidate.commit, ""))
    return {
        **candidate_record(history, candidate),
        "index": candidate.number,
        "files": _paths(run, candidate),
        "decided": list(said_of(history, candidate.commit)),
        "tactic": tactic.text if tactic else "",
        "metric_rows": list(_metric_rows(history, candidate)),
    }


def _metric_rows(history: History, candidate: Candidate) -> Iterator[Record]:
    """Each metric with what the parent, the seed and the holdout have, the primary one first."""
    commit, scores = candidate.commit, history.scores
    beside = {"parent": candidate.parents[0] if candidate.parents else "", "seed": history.seed or ""}
    metrics = history.started.metrics if history.started else ()
    for metric in sorted(metrics, key=lambda each: not each.primary):
        value = finite(value_of(scores, commit, None, metric))
        if value is None:
            continue
        margin = scores.margin(commit, None, metric.name)
        yield {
            "name": metric.name,
            "places": places(history) if metric.primary else decimals(value, margins=[margin]),
            "value": value,
            "margin": "unknown" if margin is not None and math.isinf(margin) else margin,
            **{name: finite(value_of(scores, each, None, metric)) for name, each in beside.items()},
            "holdout": finite(value_of(scores, commit, "holdout", metric)),
        }


def diff(repository: Repository, old: Candidate, new: Candidate) -> Record:
    """What changed between two candidates, file by file; of large files a sentence."""
    files = [
        {
            "path": each.path,
            "status": each.status,
            "note": each.note,
            "hunks": [
                {"header": header, "lines": [[sign, text[:LONGEST_LINE]] for sign, text in lines]}
                for header, lines in each.hunks
            ],
        }
        for each in repository.file_changes(old.commit, new.commit)
    ]
    return {"files": files}


def evaluation(run: FollowedRun, candidate: Candidate) -> Record:
    """How it was evaluated: cases, cost, and what evaluator and program said."""
    history, commit = run.history, candidate.commit
    found = history.evaluation(commit) or history.former(commit)
    if found is None:
        return {"status": None}
    files = _kept(run, history.evidence.get(commit))
    return {
        "status": found.status,
        "reason": found.reason,
        "split": found.split,
        "judged": found.judged,
        "cached": found.cached,
        "cost": to_builtins(found.cost),
        "stages": {stage: _finite(values) for stage, values in found.stages.items()},
        "cases": {case: _finite(values) for case, values in found.cases.items()},
        "repeats": history.scores.repeated(commit),
        "evidence": [_text(name, _readable(name, content)) for name, content in files.items()],
    }


def _kept(run: FollowedRun, tree: str | None) -> dict[str, bytes]:
    """The files of an evidence tree, or one that says why it is not here."""
    lost = gone(run.repository, run.history.run, tree)
    return {"not here": lost.encode()} if lost else run.repository.trees.kept(tree)


def _finite(values: Mapping[str, float]) -> dict[str, float | None]:
    return {name: finite(value) for name, value in values.items()}


def _readable(name: str, content: bytes) -> str:
    feedback = read_feedback(content) if name == FEEDBACK else {}
    return "\n".join(f"{case}: {text}" for case, text in feedback.items()) or content.decode(errors="backslashreplace")


def _text(name: str, text: str) -> Record:
    return {"name": name.removesuffix(".json"), "text": text[:LONGEST], "cut": len(text) > LONGEST}


def session(run: FollowedRun, candidate: Candidate) -> Record:
    """What its agent was told, and what it said and did."""
    files = _kept(run, run.history.sessions.get(candidate.commit))
    facts = session_facts(files.get(SESSION, b""))
    shown = {name: content for name, content in files.items() if not (name == SESSION and facts)}
    texts = {name: _text(name, _readable(name, content)) for name, content in shown.items()}
    told = [text for name, text in texts.items() if is_prompt(name)]
    said = [text for name, text in texts.items() if not is_prompt(name)]
    return {"told": told, "said": said, "facts": [(name, text[:LONGEST_LINE]) for name, text in facts]}


# --- the whole run ------------------------------------------------------------------------------------------------


def report(run: FollowedRun) -> Record:
    """What `evogit report --json` tells, with how much of each limit is used, and which one ends the run when."""
    if run.history.started is None:
        return {"run": run.history.run, "started": False}
    found = report_record(run.repository, run.history)
    limits = last_limits(run.history)
    used = [{**to_builtins(use), "share": use.share} for use in uses(run.history, limits)]
    return {**found, "uses": used, "forecast": forecast_record(run.run, Pace(run.history), time.time())}


def decisions(run: FollowedRun) -> Record:
    """Return the users' decisions, the newest first, as `evogit log --decisions --json` does."""
    history = run.history
    valid = {entry.id for entry in standing(history.decisions)}
    return {"decisions": [decision_record(entry, entry.id in valid) for entry in history.decisions[::-1]]}
