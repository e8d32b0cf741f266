"""What is known about candidates and runs as JSON objects of a fixed shape (`schema` 1)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, get_args

from msgspec import to_builtins

from evogit.core import Candidate, Metric, host_of
from evogit.engine.projections import agent_ref, has_ref
from evogit.events import ReviewVerdict, Stopped
from evogit.history import History
from evogit.history.ideas import by_family, ideas
from evogit.history.leaders import tied
from evogit.history.standing import Comparison, compare, gap, standing
from evogit.repository import Repository
from evogit.review.contributors import contributions
from evogit.review.runs import agents, key_place
from evogit.review.spending import choices, last_start, spending_record

SCHEMA = 1
"""Grows when a key of any object here changes its meaning; new keys may come at any time."""

Record = dict[str, Any]


def candidate_record(history: History, candidate: Candidate) -> Record:
    """Everything about one candidate; `status` is None and `metrics` empty until it is evaluated."""
    commit, evaluation = candidate.commit, history.evaluation(candidate.commit)
    known = standing(history, commit)
    judged: Record = {"status": None, "metrics": {}, "split": history.split, "reason": "", "judged": None, "cost": None}
    judged |= {"repeats": history.scores.repeated(commit), "score": known.score, "interval": known_ends(known.interval)}
    judged |= {"origin": known.origin, **gain_record(known.comparison)}
    if evaluation:
        judged |= {key: getattr(evaluation, key) for key in ("status", "reason", "judged", "split")}
        judged |= {"metrics": dict(evaluation.metrics), "cost": to_builtins(evaluation.cost)}
    if commit in history.refused:
        judged |= {"status": known.status, "reason": history.refused[commit]}
    former, reviewed = history.former(commit), history.reviews.get(commit)
    return {
        "schema": SCHEMA,
        **to_builtins(candidate),
        "host": candidate.host,
        "parents": list(candidate.parents),
        "shown": list(history.shown.get(commit, ())),
        **({"measured": to_builtins(measured)} if (measured := history.measured.get(commit)) else {}),
        "inspirations": list(history.inspirations.get(commit, ())),
        **judged,
        "former": {"status": former.status, "metrics": dict(former.metrics)} if former else None,
        "review": {name: getattr(reviewed, name) for name in ("verdict", "reason", "model")} if reviewed else None,
        "best": commit == history.best,
        "pruned": commit in history.pruned,
        "promoted": commit in history.promoted,
    }


def tried(history: History) -> list[Record]:
    """Everything about each idea; `certain`: its outcome is beyond noise."""
    names = ("title", "family", "agent", "parent", "candidate", "tries", "repeats", "reason", "outcome", "certain")
    return [
        {
            **{name: getattr(idea, name) for name in (*names, "score")},
            **gain_record(idea.standing.comparison if idea.standing else None),
            "moves": list(idea.moves),
        }
        for idea in ideas(history)
    ]


def idea_counts(history: History) -> Record:
    """How many ideas there are, of how many families, and how often one was repeated without a reason."""
    found = ideas(history)
    families = len(by_family(found).keys() - {""})
    return {"number": len(found), "families": families, "repeats": sum(idea.repeats for idea in found)}


def gain_record(compared: Comparison | None) -> Record:
    """Return how much better one value is than another: positive is better, None if unknown."""
    return {
        "gain": compared.gain if compared else None,
        "gain_interval": known_ends(compared.interval) if compared else None,
        "verdict": compared.verdict if compared else None,
        "side_by_side": not compared.apart if compared else None,
    }


def known_ends(interval: tuple[float, float] | None) -> list[float] | None:
    """An interval for JSON; None where there is no value, or its noise is not known yet."""
    return list(interval) if interval and all(map(math.isfinite, interval)) else None


def finite(value: float | None) -> float | None:
    """What JSON can tell: None for what is infinite."""
    return value if value is not None and math.isfinite(value) else None


def graph_record(history: History, shown: Iterable[str]) -> Record:
    """The shown candidates, the edges between them, and how many are not shown (`folded`)."""
    chosen = set(shown)
    candidates = [candidate for candidate in history.phylogeny if candidate.commit in chosen]
    edges = [
        {"child": candidate.commit, "parent": origin, "index": index, "kind": _edge_kind(candidate, index)}
        for candidate in candidates
        for index, origin in enumerate(history.origins(candidate.commit))
        if origin in chosen
    ]
    return {
        "schema": SCHEMA,
        "run": history.run,
        "candidates": [candidate_record(history, candidate) for candidate in candidates],
        "edges": edges,
        "folded": len(history.phylogeny) - len(candidates),
    }


def _edge_kind(child: Candidate, index: int) -> str:
    if index >= len(child.parents):
        return "inspiration"
    return "parent" if index == 0 else "graft" if child.operator == "graft" else "merge"


COUNTS = (
    *("evaluated", "failed", "cached", "duplicates", "failed_proposals", "proposals", "unanswered", "unusable"),
    *("charged", "repeated", "repeated_seconds", "references", "reference_seconds"),
)
"""Counts of a run that its status tells under their own names."""


def status_record(repository: Repository, history: History) -> Record:
    """How a run stands: what was asked and done, the best against the seed, where each agent is."""
    start, counts, closest = history.started, history.counts, gap(history, history.best)
    return {
        "schema": SCHEMA,
        "key": key_place(repository, history),
        "run": history.run,
        "task": start.task if start else None,
        "forked": {"run": forked.run, "entry": forked.entry} if (forked := history.forked) else None,
        "repository": str(repository.path),
        "split": history.split,
        "metric": to_builtins(history.metric),
        "settings": dict(last_start(history)),
        "candidates": len(history.phylogeny),
        **{key: getattr(counts, key) for key in COUNTS},
        "nearly_the_same": counts.alike,
        "pending": len(history.pending),
        "best": _point(history, history.best),
        "seed": _point(history, history.seed),
        "tied": tied(history),
        "gains": _gains(history),
        "gap_closed": closest.share if closest else None,
        "gap": closest.left if closest else None,
        "front": front_record(history),
        "ideas": idea_counts(history),
        "agents": [
            {
                "name": name,
                "ref": agent_ref(history, name) if history.started and has_ref(name) else None,
                "commit": history.head(name) if history.seed else None,
            }
            for name in agents(history)
        ],
        "diversity": diversity_record(history),
        "contributions": contributions(history),
        "choices": choices(history),
        "spending": spending_record(repository, history),
        "promoted": sorted(history.promoted),
        "pruned": len(history.pruned),
        "reviews": reviews_record(history),
        "engines": repository.engines(history.run).alive(),
        "remote": to_builtins(contact) if (contact := repository.contact(history.run)) else None,
        "workers": repository.engines(history.run).noted(),
        "stages": to_builtins(history.stages),
        "waits_for_review": history.paused,
        "stopped_because": history.stopped.reason if history.stopped else None,
        "stopped_detail": history.stopped.detail if history.stopped else "",
        "ended": how_ended(history.stopped),
    }


def reviews_record(history: History) -> Record | None:
    """Return what the reviewer said of would-be bests, and which one waits for it; None if there is no reviewer."""
    if history.reviewed_from is None and not history.reviews:
        return None
    counts = Counter(review.verdict for review in history.reviews.values())
    return {**{verdict: counts[verdict] for verdict in get_args(ReviewVerdict)}, "awaiting": history.would_be_best}


def diversity_record(history: History) -> Record | None:
    """Return how many lines the agents' individuals are worth, and whether all are one; None while there are none."""
    names = agents(history)
    heads = [history.head(name) for name in names] if history.seed and names else []
    if not heads:
        return None
    lines, one = history.phylogeny.effective_lines(heads), history.phylogeny.is_one_line(set(heads))
    return {"agents": len(heads), "lines": lines, "one_line": len(heads) > 1 and set(heads) != {history.seed} and one}


def _gains(history: History) -> Record | None:
    best, seed = history.best, history.seed
    if best is None or seed is None or best == seed:
        return None
    splits = dict.fromkeys((history.split, "holdout"))
    return {split: gain_record(compare(history.scores, best, seed, split)) for split in splits}


def _point(history: History, commit: str | None) -> Record | None:
    if commit is None:
        return None
    evaluation, holdout = history.evaluation(commit), history.evaluation(commit, "holdout")
    return {
        "commit": commit,
        "metrics": dict(evaluation.metrics) if evaluation else {},
        "interval": known_ends(history.interval(commit)),
        "holdout": dict(holdout.metrics) if holdout and holdout.ok else None,
        "holdout_interval": known_ends(history.interval(commit, "holdout")),
    }


HOW = {
    "interrupted": "interrupted; `evogit run` resumes it",
    "asked": "stopped on request",
    "best-known": "reached the best possible value",
    "stages": "went through all stages",
    "replayed": "came to the end of the recording",
    "exhausted": "200 moves in a row made nothing new",
    "error": "failed",
}


def how_ended(stopped: Stopped | None) -> str:
    """Return what ended a run; empty if it is running, or no end was journalled."""
    return HOW.get(stopped.reason, f"reached: {stopped.reason}") if stopped else ""


def front_record(history: History) -> dict[str, Any] | None:
    """The unbeaten and their hypervolume, with the seed as reference; None with a single objective.

    A hypervolume is in the product of the metrics' units, and what is not better than the seed in all of them adds
    nothing; None where the seed has no value, or finding it takes too long.
    """
    from evogit.selection.pareto import front, several  # with the selectors: seldom asked

    if history.started is None or not several(history):
        return None
    metrics, commits = history.started.metrics, front(history)
    members = [
        {"commit": commit, "metrics": _values(history, commit), "holdout": _values(history, commit, "holdout")}
        for commit in commits
    ]
    return {
        "objectives": [{"name": metric.name, "direction": metric.direction} for metric in metrics],
        "hypervolume": _volume(history, metrics, commits),
        "holdout_hypervolume": _volume(history, metrics, commits, "holdout"),
        "members": members,
    }


def _values(history: History, commit: str, split: str | None = None) -> dict[str, float] | None:
    found = history.evaluation(commit, split)
    return dict(found.metrics) if found and found.ok else None


def _volume(
    history: History, metrics: tuple[Metric, ...], commits: list[str], split: str | None = None
) -> float | None:
    def upward(commit: str) -> list[float] | None:
        """The values such that more is better; None where one is missing."""
        values = _values(history, commit, split) or {}
        complete = all(metric.name in values for metric in metrics)
        return [metric.sign * values[metric.name] for metric in metrics] if complete else None

    seed = upward(history.seed or "")
    points = [each for each in map(upward, commits) if each is not None]
    return hypervolume(points, seed) if seed and points else None


WORK = 1_000_000
"""Slices that are taken at most, about."""


def hypervolume(points: Sequence[Sequence[float]], reference: Sequence[float]) -> float | None:
    """The volume between a reference and the points, more being better everywhere; None where it takes too long.

    What is not better than the reference in all dimensions adds nothing. Exact, by slicing the objectives one after
    the other ("HSO", While, Hingston, Barone, Huband, 2006), n^(d - 1) slices.
    """
    inside = [tuple(point) for point in points if all(value > low for value, low in zip(point, reference, strict=True))]
    if len(inside) ** (len(reference) - 1) > WORK:
        return None
    return _sliced(inside, tuple(reference))


def _sliced(points: Sequence[tuple[float, ...]], reference: tuple[float, ...]) -> float:
    """Slices across the first dimension, the farthest point first: each is what lies beyond, with a dimension less."""
    if not points:
        return 0.0
    if len(reference) == 1:
        return max(point[0] for point in points) - reference[0]
    beyond, volume = list[tuple[float, ...]](), 0.0
    ordered = sorted(points, reverse=True)
    for point, inner in zip(ordered, [*(each[0] for each in ordered[1:]), reference[0]], strict=True):
        beyond.append(point[1:])
        if point[0] > inner:
            volume += (point[0] - inner) * _sliced(beyond, reference[1:])
    return volume


def host_records(repository: Repository, history: History) -> list[Record]:
    """Each host, this one first: its agents, its candidates, the best of these, when it wrote its last entry.

    `last` is by its own clock, in seconds since the epoch; None where its journal is not here.
    """
    here, tips = repository.host, repository.keeping(history.run).tips("journal")
    told = {host_of(engine) for engine in history.engines} | {entry.host for entry in history.decisions}
    hosts = sorted(told - {here, ""})
    return [_record(repository, history, host, tips.get(host)) for host in ([here] if here in tips else []) + hosts]


def _record(repository: Repository, history: History, host: str, tip: str | None) -> Record:
    own = [each.commit for each in history.phylogeny if each.host == host]
    judged = [commit for commit in own if history.judged(commit)]
    best: str | None = None
    for commit in judged:
        if history.fitness(commit) is not None and (best is None or history.fitter(commit, best)):
            best = commit
    records = Counter(history.phylogeny[each].host for each in history.records)
    engines = {engine: started for engine, started in history.engines.items() if host_of(engine) == host}
    return {
        "host": host,
        "here": host == repository.host,
        "agents": sorted({agent for started in engines.values() for agent in started.agents}),
        "engines": len(engines),
        "candidates": len(own),
        "evaluated": len(judged),
        "records": records[host],
        "best": {"commit": best, "value": history.fitness(best)} if best else None,
        "decisions": sum(entry.host == host for entry in history.decisions),
        "last": repository.commit_time(tip) if tip else None,
    }
