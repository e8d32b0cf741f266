"""Finds the origin of a seed's numbers, and tries a broken seed on its evaluator: for `check` and `init`."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from evogit.config import Task
from evogit.config.values import ALL, MetricReader
from evogit.core import BaseFiles, Evaluation, Evidence, Files
from evogit.evaluation.command import LAST_LINES
from evogit.evaluation.command_output import Output, Source
from evogit.evaluation.evaluator import Evaluator
from evogit.evaluation.numbers import MAX_SHOWN_CHARS, UNIT, unit_of, unit_of_metric
from evogit.sandbox.archive import pack
from evogit.trust import state_folder

PROBES = ("2.5e-06", "1234567.5")
"""Numbers that a better or a worse candidate may print."""
MAX_OTHERS = 6
"""Other places that are told of one metric."""
GARBAGE = b")]} broken by `evogit check` (((\n"
"""Bytes that no language reads."""
STDOUT, STDERR = "last lines of stdout:\n", "last lines of stderr:\n"
"""The heads of a command's output in an evaluation's feedback."""


class MetricSource(Struct, frozen=True):
    """The origin of the seed's value of a metric: the place in words, the line there, and why it was taken.

    `others` are other places that could have been meant, each with its line; `unread` is what a candidate may print
    there that the pattern cannot read.
    """

    metric: str
    value: float
    where: str
    text: str = ""
    others: tuple[str, ...] = ()
    why: str = ""
    unread: str = ""

    def lines(self) -> Iterator[str]:
        """Say it for a person."""
        yield f"{self.metric} is {self.value:.6g}, from {self.where}" + (f": {self.text}" if self.text else "")
        if self.others:
            yield f"  {self.why}:"
            yield from (f"    {other}" for other in self.others[:MAX_OTHERS])
            yield from [f"    and {len(self.others) - MAX_OTHERS} more"] if len(self.others) > MAX_OTHERS else []


def sources_of(task: Task, evaluation: Evaluation, evidence: Evidence) -> list[MetricSource]:
    """Return the origin of each metric of a valid seed."""
    if not evaluation.ok:
        return []
    if task.command is None:
        cases = ", ".join(list(evaluation.cases)[:3]) + (", ..." if len(evaluation.cases) > 3 else "")
        return [
            MetricSource(each.name, evaluation.metrics[each.name], f"the {each.aggregate} of the cases {cases}")
            for each in task.metrics
        ]
    text = "\n".join(evidence.feedback.values())
    stdout = text.partition(STDOUT)[2].partition(f"\n{STDERR}")[0]
    output = Output(task.command, stdout, text.partition(STDERR)[2], ignored=(ALL,), whole=True)
    return [_source(task, output, name, read, evaluation.metrics[name]) for name, read in task.command.reads.items()]


def _source(task: Task, output: Output, name: str, read: MetricReader, value: float) -> MetricSource:
    places = {"exit": "the exit code", "junit": f"the report {read.what}", "cpu": "the sandbox's clock"}
    if read.how not in ("regex", "json"):
        return MetricSource(name, value, places.get(read.how, "the sandbox's clock"))
    try:
        source = output.read(name, read)
    except ValueError:  # the line is longer than what is kept of it
        return MetricSource(name, value, f"what {read.how}:{read.what or name} finds in its output")
    others, why = list(source.others), source.why
    if not others and source.span:
        said = UNIT.match(source.text, source.span[1]) or UNIT.search(source.text[source.span[0] : source.span[1]])
        unit = unit_of_metric(name) or (unit_of(said["unit"]) if said else None)
        others = output.alike(source, unit.kind) if unit else []
        others = others or output.alike(source)
        why = "other numbers of its output" if others else ""
    else:
        why = f"taken of {len(others) + 1} places that match, as {why}; the others" if others else ""
    where = source.where if output.count < LAST_LINES else re.sub(r"\bline \d+ of", "a line of", source.where)
    unread = _unread(task, name, read, source)
    return MetricSource(name, value, where, source.text.strip()[:MAX_SHOWN_CHARS], tuple(others), why, unread)


def _unread(task: Task, metric: str, read: MetricReader, source: Source) -> str:
    """A number that a candidate may print in the place of the seed's, and that would be read as another one."""
    assert task.command
    said, wanted = unit_of_metric(read.what.rpartition(".")[2]), unit_of_metric(metric)
    if read.how == "json" and said and wanted and said.stated and wanted.stated and said != wanted:
        return (
            f"{metric} is what {read.what} says, in another unit: name the metric after the key, or the other way round"
        )
    if source.span is None:
        return ""
    found = re.fullmatch(r"[-+]?[\d.,_']+(?:[eE][-+]?\d+)?(\D*)", source.text[source.span[0] : source.span[1]])
    if found is None:  # a duration of several parts, a spread
        return ""
    unit = found[1]
    for text in PROBES:
        line = f"{source.text[: source.span[0]]}{text}{unit}{source.text[source.span[1] :]}"
        try:
            Output(task.command, line, "", ignored=(ALL,)).read(metric, read)
        except ValueError as error:
            return f"{metric}: a candidate that prints {text} would fail: {error}"
    return ""


# --- a broken seed --------------------------------------------------------------------------------------------------


async def unnoticed(
    task: Task,
    evaluator: Evaluator,
    base: BaseFiles,
    contents: Mapping[str, bytes],
    split: str,
    seeds: Sequence[float],
) -> str:
    """A sentence if a broken copy of a valid seed scores no worse than the seed; empty otherwise.

    The copy is evaluated once for each version of the task. Seeds that have the worst score are exempt. `contents` are
    the files of `base` that may change, `seeds` the values of the seed's evaluations.
    """
    metric = task.primary
    if task.pairwise or not seeds or (metric.direction == "maximize" and max(seeds) == 0):
        return ""
    changed = pack({path: broken(path, content) for path, content in contents.items()})
    key = hashlib.sha256(f"{task.digest} {base.id} {split}".encode()).hexdigest()[:32]
    memory = state_folder(os.environ) / "broken-seeds" / f"{key}.json"
    if memory.is_file():
        found = json.loads(memory.read_text())
    else:
        evaluation, _ = await evaluator.evaluate(key, Files(changed, (), base), split=split)
        found = {"status": evaluation.status, "metrics": dict(evaluation.metrics)}
        if evaluation.counts:
            memory.parent.mkdir(parents=True, exist_ok=True)
            memory.write_text(json.dumps(found))
    value = found["metrics"].get(metric.name)
    if found["status"] != "ok" or value is None or all(metric.better(seed, value) for seed in seeds):
        return ""
    worst = min(seeds, key=lambda seed: metric.sign * seed)
    return (
        f"a copy of the seed whose code is broken scores {value:.6g} on {split}, no worse than the seed "
        f"({worst:.6g}): a candidate that fails may become the best. Let the evaluator fail where the code does"
    )


def broken(path: str, content: bytes) -> bytes:
    """The content of a file whose functions raise, or that no language reads."""
    try:
        tree = ast.parse(content) if path.endswith(".py") else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        tree = None
    if tree is None:
        return GARBAGE
    fault = ast.parse('raise RuntimeError("broken by `evogit check`")').body
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    for node in functions:
        node.body = list(fault)
    if not functions:
        return GARBAGE
    return ast.unparse(tree).encode()
