"""Which number a benchmark prints, how it is read, and which way is better: as far as sources and names tell."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice

from evogit.contained import joined_lines
from evogit.core import Direction

OBJECT = re.compile(r"(?:dumps?|stringify)\(\s{0,40}\{(.{1,400})|[\"'`]\{+(\\?\".{1,400})", re.DOTALL)
NAMED = re.compile(r"(?:print|log|puts|stdout\.write)\w*\(\s*(?:json|JSON)\.(?:dumps|stringify)\(\s*([A-Za-z_]\w*)(.*)")
"""A print of an object that has a name, and the rest of its line."""
SEVERAL_LINES = re.compile(
    r"\bindent\s*=\s*[1-9\"']|\bnull\s*,\s*[1-9\"'`]|\bto_string_pretty\b|\bJSON\.pretty_generate\b"
)
"""What makes an object take several lines, so that no line of what is printed is one."""
KEY = re.compile(r"(?:^|[{,])\s*\\?[\"']?([A-Za-z_]\w*)\\?[\"']?\s*(?=[:,}])")
PRINTED = re.compile(
    r"(?<![%$\w])([A-Za-z]+)([ :=]{1,3})(?:%[-+ #0-9.]*l?[a-z]|\$?\{[^{}\n]*\})( ?)(ms|us|ns|s|seconds|ops/s)(?![\w/])"
)
UNITS = {"ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds", "s": "seconds", "ops/s": "ops_per_second"}
NUMBER = r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
GROUPED = NUMBER.replace(r"\d+\.?\d*|", r"\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d*)?|\d+\.?\d*|", 1)
"""A number that may have commas between its thousands."""

HEADLINE = re.compile(r"scores?|fitness|rewards?")
"""What a program calls the one number that it is about."""
FAILURES = re.compile(r"errors|miss(es)?|fail(ed|ures?)?|warnings?")
"""What benchmarks count beside what they measure."""
PASSES = re.compile(r"pass(ed|es)?|coverage|hits")
WORSE = re.compile(
    r"err(or)?|loss(es)?|excess|costs?|mae|mse|n?rmse|mape|smape|rmsle|msle|perplexity|ppl|bp[bc]|nll|logloss|brier|"
    r"(cross)?entropy|regrets?|gap|tardiness|lateness|penalt(y|ies)|violations?|conflicts?|collisions?|discrepancy|"
    r"residuals?|divergence|kl|wer|cer|fid|distortion|overhead"
)
BETTER = re.compile(
    r"ops|throughput|rate|acc(uracy)?|speed(ups?)?|[fqrt]ps|[gmt]flops|bandwidth|mfu|f1|precision|recall|(pr)?auc|auroc|"
    r"r2|bleu|rouge|psnr|ssim|mrr|ndcg|i?iou|dice|jaccard|similarity|correlation|corr|quality|efficiency|utili[sz]ation|"
    r"profits?|revenue|returns?|gains?|wins?|winrate|solved|elo|sharpe|yield|likelihood"
)
EXTENT = re.compile(r"lengths?|sizes?|bytes|rank|len|makespan|distances?|dist|energy|delay|moves|evals|evaluations")
DEAR = re.compile(
    r"seconds?|secs?|[mun]?s|(milli|micro|nano)seconds?|time|elapsed|duration|latency|took|cpu|wall|memory|rss|[kmg]b"
)
"""What a run costs its machine."""
ROUTES = re.compile(
    r"tour|path|route|cycle|wire|trip|total|best|final|mean|average|avg|overall|makespan|distances?|energy"
)
"""What makes an extent the matter itself, not one of the input's."""
PARAMETERS = re.compile(
    r"(^|_)((learning|mutation|crossover|dropout|sample|sampling|refresh|decay|frame)_rate|"
    r"(batch|vocab|population|pop|hidden|input|step|block|window|grid|chunk|page|buffer|cache|pool|sample|problem|"
    r"sequence|context|seq)_(size|length|len))$"
)
"""What programs are told, not what they reach."""
RATE = re.compile(r"per_(s|secs?|seconds?|ms|us|ns|minute|hour)$")
MAX_OBJECTS = 20
"""Prints of objects with names, and places where such a name gets an object."""
_KINDS = (HEADLINE, FAILURES, PASSES, WORSE, BETTER, EXTENT, DEAR, ROUTES)


def read_of(texts: Iterable[str]) -> dict[str, str]:
    """How the number that a benchmark's source prints can be read: metric -> how; empty when it does not tell."""
    for text in map(joined_lines, texts):
        if found := read_of_object(text) or read_of_time(text):
            return found
    return {}


def read_of_object(text: str) -> dict[str, str]:
    """How a number of the JSON object that a source prints can be read: metric -> how; empty when it prints none."""
    found = [(key, lines) for keys, lines in _objects(text) for key in keys if direction_of(key, "json")]
    for key, lines in sorted(found, key=lambda each: standing(each[0]))[:1]:
        return {key: rf'regex:"{key}"\s*:\s*{NUMBER}' if lines else "json"}
    return {}


def read_of_time(text: str) -> dict[str, str]:
    """How the time, or the rate, that a source prints with its unit can be read: metric -> how; empty for none."""
    if found := PRINTED.search(text):
        word, between, space, unit = found.groups()
        return {UNITS.get(unit, unit): f"regex:{word}{between}([0-9.]+){space}{unit}"}
    return {}


def _objects(text: str) -> Iterator[tuple[list[str], bool]]:
    """The keys of every object that a source prints, and whether it takes several lines."""
    for match in OBJECT.finditer(text):
        inner, rest = _parted(match[1] or match[2])
        yield KEY.findall(inner), bool(match[1] and SEVERAL_LINES.search(rest))
    for match in islice(NAMED.finditer(text), MAX_OBJECTS):
        lines = bool(SEVERAL_LINES.search(match[2]))
        named = rf"\b{match[1]}\b[^=\n]{{0,80}}=\s{{0,40}}(?:dict\(|\{{)(.{{1,400}})"
        for made in islice(re.finditer(named, text, re.DOTALL), MAX_OBJECTS):
            inner, _ = _parted(made[1])
            yield re.findall(r"(?:^|[{,])\s*[\"']?([A-Za-z_]\w*)[\"']?\s*(?=[:=,}])", inner), lines


def _parted(text: str) -> tuple[str, str]:
    """What stands in front of the bracket that closes an object, with it, and the rest of the call."""
    depth = 1
    for place, character in enumerate(text):
        depth += (character in "{(") - (character in "})")
        if depth == 0:
            return text[: place + 1], text[place + 1 :].partition(")")[0]
    return text, ""


def standing(metric: str) -> int:
    """How likely a program is about this number: 0 for the one that it is named after, more for what stands beside."""
    if direction_of(metric, "json") is None:
        return 3
    told = {kind for word in words_of(metric) for kind in _KINDS if kind.fullmatch(word)}
    if FAILURES in told:
        return 2
    if HEADLINE in told:
        return 0
    if {WORSE, BETTER} & told or {EXTENT, ROUTES} <= told:
        return 1
    return 3 if EXTENT in told and len(words_of(metric)) > 1 else 2


def is_cost(metric: str) -> bool:
    """Whether a metric tells what a run costs its machine, such as its time, and nothing else."""
    told = {kind for word in words_of(metric) for kind in _KINDS if kind.fullmatch(word)}
    return DEAR in told and told <= {DEAR, ROUTES}


def words_of(metric: str) -> list[str]:
    """The words in a metric's name, in lower case."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", metric).lower().split("_")


def direction_of(metric: str, how: str) -> Direction | None:
    """Which way is better, as far as the metric's name and the way that it is read tell."""
    if how == "exit" or how.startswith("junit:"):
        return "maximize"
    if how in ("cpu", "wall"):
        return "minimize"
    words = words_of(metric)
    whole = "_".join(words)
    told = {kind for word in words for kind in _KINDS if kind.fullmatch(word)}
    if PARAMETERS.search(whole):
        return None
    if "likelihood" in words:
        return "minimize" if {"neg", "negative"} & set(words) else "maximize"
    if told & {WORSE, FAILURES}:
        return "minimize"
    if told & {BETTER, HEADLINE, PASSES} or RATE.search(whole):
        return "maximize"
    if told & {EXTENT, DEAR}:
        return "minimize"
    return "maximize" if "per" in words else None
