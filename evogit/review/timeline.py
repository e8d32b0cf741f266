"""A run in the order in which it happened: how it stood after each evaluation, and as a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from evogit.events import Entry, Evaluated
from evogit.history import History, Spending
from evogit.repository import Repository
from evogit.review.json_records import Record, candidate_record
from evogit.review.spending import added

COLUMNS = (
    *("order", "elapsed_ms", "candidate", "parents", "inspirations"),
    *("agent", "kind", "model", "operator", "strategy", "title"),
    *("status", "value", "low", "high", "gain", "verdict", "best", "repeats", "wall_ms", "cpu_ms", "memory"),
    *("calls", "prompt_tokens", "completion_tokens", "dollars", "total_tokens", "total_dollars", "reason"),
)
"""What is told of each candidate, before its metrics and cases; `docs/guide.md` says what each is."""


class TimelinePoint(Struct, frozen=True, kw_only=True):
    """How a run stood after an entry: `elapsed` milliseconds after its first one, with `value` as its best one's.

    `candidate` is what was evaluated then, "" where the entry tells of something else. `dollars` is None where a
    price is not known.
    """

    candidate: str
    evaluations: int
    repeats: int
    proposals: int
    elapsed: int
    best: str | None
    value: float | None
    calls: int
    tokens: int
    dollars: float | None


def entries_of(repository: Repository, run: str) -> list[Entry]:
    """All entries of a run's journals, in the order of its facts."""
    entries = list[Entry]()
    repository.journal(run, entries.append)
    return entries


def course(run: str, entries: Iterable[Entry]) -> Iterator[TimelinePoint]:
    """How the run stood after each entry."""
    history, began, done = History(run), None, 0
    for entry in entries:
        history.apply(entry)
        now = 1000 * entry.time + entry.ms
        began = now if began is None else began
        first, done = history.counts.evaluated > done, history.counts.evaluated
        shifting = history.started is not None and history.scores.shifting
        best = None if shifting or history.started is None else history.best
        spent = history.spent
        yield TimelinePoint(
            candidate=entry.event.candidate if first and isinstance(entry.event, Evaluated) else "",
            evaluations=done,
            repeats=history.counts.repeated,
            proposals=history.counts.proposals,
            elapsed=now - began,
            best=best,
            value=history.fitness(best) if best else None,
            calls=spent.calls,
            tokens=spent.tokens,
            dollars=None if spent.unpriced else spent.dollars,
        )


def table(repository: Repository, history: History, chosen: set[str]) -> Iterator[list[object]]:
    """A head and a row for each chosen candidate, with columns `metric:NAME` and `case:NAME`, too."""
    moments = {each.candidate: each for each in course(history.run, entries_of(repository, history.run))}
    order = sorted(
        (each for each in history.phylogeny if each.commit in chosen),
        key=lambda each: moments[each.commit].evaluations if each.commit in moments else len(moments) + each.number,
    )
    metrics = [metric.name for metric in history.started.metrics] if history.started else []
    cases = list(dict.fromkeys(case for each in order for case in history.scores.cases(each.commit)))
    yield [*COLUMNS, *(f"metric:{name}" for name in metrics), *(f"case:{name}" for name in cases)]
    kinds, asked = history.past_kinds(), dict[str, Spending]()
    for effort in history.authors.efforts.values():  # of several candidates of one move, the first has it all
        if (commit := getattr(effort.done, "candidate", None)) is not None:
            for spending in effort.spent.values():
                asked[commit] = added(asked.get(commit, Spending()), spending)
    for each in order:
        record = candidate_record(history, each)
        spent, moment = asked.get(each.commit, Spending()), moments.get(each.commit)
        cost, between = record["cost"], record["interval"] or (None, None)
        told: Record = {
            **record,
            "order": moment and moment.evaluations,
            "elapsed_ms": moment and moment.elapsed,
            "candidate": each.commit,
            "parents": " ".join(each.parents),
            "inspirations": " ".join(record["inspirations"]),
            "kind": kinds.get((each.engine, each.agent), ""),
            "model": history.authors.wrote.get(each.commit, ""),
            "value": record["score"],
            "low": between[0],
            "high": between[1],
            "best": moment and moment.value,
            "wall_ms": cost and 1000 * cost["wall"],
            "cpu_ms": cost and 1000 * cost["cpu"],
            "memory": cost and cost["memory"],
            "calls": spent.calls,
            "prompt_tokens": spent.prompt,
            "completion_tokens": spent.completion,
            "dollars": None if spent.unpriced else spent.dollars,
            "total_tokens": moment and moment.tokens,
            "total_dollars": moment and moment.dollars,
        }
        values, by_case = record["metrics"], history.scores.cases(each.commit)
        yield [
            *(told[name] for name in COLUMNS),
            *(values.get(name) for name in metrics),
            *(by_case.get(name) for name in cases),
        ]
