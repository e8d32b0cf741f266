"""The outcome of a run, as one record: asked, spent, the best and how it was reached, contributions, failures."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec import to_builtins

from evogit.core import Evaluation
from evogit.history import History
from evogit.history.paired_scores import PairedScores
from evogit.history.scores import seconds
from evogit.history.standing import compare, last_evaluation, way
from evogit.repository import Repository
from evogit.review.json_records import SCHEMA, Record, gain_record, host_records, known_ends, status_record, tried
from evogit.review.spending import last_start
from evogit.selection.merge_strategies import outcomes, tallies

WORTH_TELLING = 0.05  # share by which measurements of the same code differ that a person should know
REASONS = 5  # kinds of failure that are told of each sort, the most frequent first


def report_record(repository: Repository, history: History) -> Record:
    """Everything of `status --json`, and what one asks afterwards. Raises NotFoundError: it has not started."""
    began, latest = history.span
    unusable = [each for each in history.failures if not history.authors.unanswered(each)]
    last = {each.reason: each.move for each in unusable}
    formers = ((each.commit, history.former(each.commit)) for each in history.phylogeny)
    before = (seconds(former) for commit, former in formers if former and history.evaluation(commit) is None)
    changes = []
    if history.best is not None and history.seed is not None:
        changes = repository.line_changes(history.seed, history.best)
    judged, evidence = history.evaluation(history.best) if history.best else None, None
    if judged and history.best:
        known = {key: getattr(judged, key) for key in ("evaluator", "image", "split", "judged", "key")}
        evidence = {"commit": history.best, "tree": history.phylogeny[history.best].tree, **known}
    return {
        **status_record(repository, history),
        "schema": SCHEMA,
        "asked": _asked(history),
        "detached": bool(last_start(history).get("detached")),
        "spent": {
            "seconds": latest - began,
            "began": began,
            "judging": history.scores.seconds + sum(before),  # of wall clock; what was shared cost nothing
            "failed": dict(Counter(each.status for each in _failures(history)).most_common()),
        },
        "judged": history.started.judged if history.started else "outside",
        "steps": steps(history, history.best),
        "crossings": merge_statistics(history),
        "tried": tried(history),
        "hosts": host_records(repository, history),
        "failures": {
            "candidates": _digest(f"{each.status}: {each.reason}" for each in _failures(history)),
            "proposals": [{**told, "move": last[told["reason"]]} for told in _digest(each.reason for each in unusable)],
        },
        "interruptions": [to_builtins(each) for each in history.interruptions],
        "evidence": evidence,
        "changes": [{"path": path, "added": added, "removed": removed} for path, added, removed in changes],
        "remarks": [*remarks(history), *_moved(repository, history)],
    }


# --- asked and spent ----------------------------------------------------------------------------------------------


def _asked(history: History) -> Record:
    last = list(history.engines.values())[-1] if history.engines else None
    limits = ("target", "minutes", "patience", "confirmations")
    settings = dict(last.settings) if last else {}
    return {
        "goal": next((each.goal for each in reversed(history.engines.values()) if each.goal), ""),
        "agents": [
            f"{each.get('kind')}{'@' * bool(each.get('model'))}{each.get('model') or ''}:{each.get('count', 1)}"
            for each in settings.get("population", ())
        ],
        **{name: settings.get(name) for name in ("selector", "split", "seed", "deterministic", "sandbox", *limits)},
        "provider": last.provider if last else None,
        "imported": last.imported if last else False,
        "editable": list(history.started.editable) if history.started else [],
        "guidance": history.guidance,
        "tactics": [{"agent": each.agent, "move": each.move, "text": each.text} for each in history.tactics.values()],
    }


def _failures(history: History) -> Iterator[Evaluation]:
    for candidate in history.phylogeny:
        evaluation = last_evaluation(history, candidate) if history.fitness(candidate.commit) is None else None
        if evaluation and evaluation.counts and not evaluation.ok:
            yield evaluation


def merge_statistics(history: History) -> Record:
    """Return what merges and grafts came to by strategy; `gain` is the mean over the better parent."""
    known = tallies(outcomes(history)).items()
    rows = [{"operator": operator, "strategy": name, **to_builtins(tally)} for (operator, name), tally in known]
    return {"strategies": rows}


# --- how the best came to be --------------------------------------------------------------------------------------


def steps(history: History, commit: str | None) -> list[Record]:
    """How a candidate came to be, from the seed on, with what each step gained."""
    return [
        {
            "commit": each.commit,
            "title": each.title,
            "agent": each.agent,
            "operator": f"{each.operator} ({each.strategy})" if each.strategy else each.operator,
            "value": history.fitness(each.commit),
            "interval": known_ends(history.interval(each.commit)),
            "over": compared.over if compared else None,
            **gain_record(compared),
            "inspirations": list(history.inspirations.get(each.commit, ())),
        }
        for each, compared in (way(history, commit) if commit else ())
    ]


# --- what failed --------------------------------------------------------------------------------------------------


def _digest(reasons: Iterable[str]) -> list[Record]:
    """The most frequent reasons; those that differ only in numbers count as one, shown as the last of them."""
    counts, told = Counter[str](), dict[str, str]()
    for reason in reasons:
        kind = re.sub(r"[0-9a-f]*\d[0-9a-f.]*", "#", reason)[:200]
        counts[kind] += 1
        told[kind] = reason
    return [{"reason": told[kind], "count": count} for kind, count in counts.most_common(REASONS)]


def remarks(history: History) -> list[str]:
    """What a person should know before they trust the best one, a sentence each."""
    said = []
    if history.started and history.started.imported:
        said.append(
            f"scores are those of {history.started.provider}; evaluate the best here with `evogit rescore TASK`"
        )
    if history.started and history.started.judged == "inside":
        said.append("judged: inside, where its own code could have cheated: read the diff")
    if isinstance(history.scores, PairedScores) and (drift := math.expm1(history.scores.drift)) >= WORTH_TELLING:
        said.append(f"the same code differed by {drift:.0%} over the run; gains are those measured side by side")
    if noise := _undeclared_noise(history):
        said.append(f"scores are noisy, but the task does not say so: {noise}; set repeats in [evaluator]")
    if history.declared_repeats and not history.repeats:
        said.append("scores are exact: all that was evaluated again came out alike, so repeats ended")
    if history.best and history.seed and history.best != history.seed:
        held = history.evaluation(history.best, "holdout")
        compared = compare(history.scores, history.best, history.seed, "holdout")
        if held is not None and not held.ok:
            said.append(f"the best fails on the holdout ({held.status}: {held.reason}): do not trust it")
        elif compared and compared.verdict == "within noise" and compared.gain > 0:
            said.append("its gain over the seed on the holdout is within noise")
        elif compared and compared.verdict != "better":
            said.append(f"no better than the seed on the holdout: perhaps overfitted to the cases of {history.split}")
    if history.best is not None and history.best == history.seed:
        said.append("no candidate is better than the seed")
    if history.stopped and history.stopped.reason == "exhausted" and history.failures:
        said.append(f"{len(history.failures):,} moves made no candidate, the latest one: {history.failures[-1].reason}")
    if broken := sorted(history.set_aside, key=lambda commit: history.phylogeny[commit].number):
        more = f" and {len(broken) - 1} more" if broken[1:] else ""
        said.append(f"set aside, as the evaluator failed on it again and again: {broken[0][:7]}{more}")
    if busy := len(history.unmeasured):
        said.append(f"{busy:,} not measured, as the machine was too busy; the next `evogit run` tries again")
    if waiting := len(history.pending):
        how = f"; `evogit run` goes on with {'it' if waiting == 1 else 'them'}" if history.stopped else ""
        said.append(f"{waiting:,} not evaluated yet{how}")
    return said


def _undeclared_noise(history: History) -> str:
    if history.stopped and history.stopped.again:
        return history.stopped.again
    if history.declared_repeats or not history.repeats:
        return ""
    commit, name = min(history.scores.differing, key=history.phylogeny.numbers.__getitem__), history.metric.name
    values = [each.metrics[name] for each in history.scores.valid(commit)]
    failed = len(history.scores.each(commit)) - len(values)
    if failed:
        return f"{commit[:7]} failed {failed} of {failed + len(values)} times"
    return f"{name} of {commit[:7]} was {min(values):.10g} to {max(values):.10g} in {len(values)} evaluations"


def _moved(repository: Repository, history: History) -> list[str]:
    branch = None if repository.created else repository.branches.current()
    tip = repository.target(branch) if branch else None
    if tip is None or history.seed is None or not repository.branches.contains(tip, history.seed):
        return []
    ahead = repository.branches.ahead(tip, history.seed)
    name = (branch or "").removeprefix("refs/heads/")
    commits = f"{ahead:,} commit{'s' * (ahead != 1)}"
    return [f"{name} has {commits} more than the seed; `evogit land` merges with them"] if ahead else []


LONGEST = 600
"""Characters of a goal that are told."""


def opening(goal: str) -> str:
    """A goal up to its first section, its title as a sentence of its own."""
    first, _, rest = goal.strip().partition("\n")
    text = goal.strip()
    if heading := re.match(r"#+\s+(.*)", first):
        text = f"{heading[1].rstrip(' .:#')}. {rest.strip()}".strip()
    text = re.split(r"\n\s*#+\s", text, maxsplit=1)[0].strip()
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def first_sentence(goal: str) -> str:
    """The first sentence, or line, of its opening."""
    return re.split(r"(?<=[.!?;])\s|\n", opening(goal), maxsplit=1)[0]
