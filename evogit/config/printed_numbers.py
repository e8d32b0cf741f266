"""Which number a benchmark prints, how it is read, and which way is better: as far as sources and names tell."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice

from evogit.contained import joined_lines
from evogit.core import Direction

OBJECT = re.compile(r"(?:dumps?|stringify)\(\s{0,40}\{(.{1,400})|[\"'`]\{+(\\?\".{1,400})", re.DOTALL)
NAMED = re.compile(r"(?:print|log|puts|stdout\.write)\w*\(\s*(?:json|JSON)\.(?:dumps|stringify)\(\s*([A-Za-z_]\w*)")
"""A print of an object that has a name."""
KEY = re.compile(r"(?:^|[{,])\s*\\?[\"']?([A-Za-z_]\w*)\\?[\"']?\s*(?=[:,}])")
HOLE = r"%[-+ #0-9.]*l?[a-z]|\$?\{[^{}\n]{0,200}\}"
"""The place of a value in a format."""
PRINTED = re.compile(
    rf"(?<!\w)(?P<label>[^\W\d_]{{1,40}}[^\w\n\"'`{{}}%$]{{0,24}})(?P<hole>{HOLE})(?P<space> ?)"
    r"(?P<unit>ms|us|µs|ns|s|seconds|ops/s)(?![\w/])"
)
"""A word, a value and its unit."""
UNITS = {
    "ms": "milliseconds",
    "us": "microseconds",
    "µs": "microseconds",
    "ns": "nanoseconds",
    "s": "seconds",
    "ops/s": "ops_per_second",
}
NUMBER = "([0-9.]+)"
"""The group that stands for a number in a pattern: the reader takes the whole number, in every notation."""
WHOLE = (
    r"\b(?:total|overall|final|altogether)\b",
    r"\b(?:mean|average|avg|geomean|estimate)\b",
    r"\b(?:median|middle|mid|p50)\b",
)
"""Words that name the number of a whole run, best first."""
PART = (
    r"\b(?:user|usr|sys|system|kernel|set ?up|warm ?up|init\w*|load(?:ing|ed)?|import\w*|build\w*|compil\w+|teardown|"
    r"clean ?up|min|minimum|max|maximum|fastest|slowest|lower|low|lo|upper|high|hi|first|range|std|std ?dev|sd|spread|"
    r"deviation|outliers?|p\d\d+|iqr|q[13]|baseline|reference|naive|before)\b"
)
"""Words that name a part of a run, or one of several runs."""
NEUTRAL = len(WHOLE)

HEADLINE = re.compile(r"scores?|fitness|rewards?")  # what a program calls the one number that it is about
FAILURES = re.compile(r"errors|miss(es)?|fail(ed|ures?)?|warnings?")  # what benchmarks count beside what they measure
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
MAX_OBJECTS = 20  # prints of objects with names, and places where such a name gets an object
_KINDS = (HEADLINE, FAILURES, PASSES, WORSE, BETTER, EXTENT, DEAR, ROUTES)


def read_of(texts: Iterable[str]) -> dict[str, str]:
    """Return how the number that a benchmark's source prints can be read: metric -> how; empty if it does not tell.

    A number of a JSON object counts first, then the last time or rate of a whole run.
    """
    for text in map(joined_lines, texts):
        keys = [key for keys in _objects(text) for key in keys if direction_of(key, "json")]
        if keys:
            return {min(sorted(keys), key=standing): "json"}
        if printed := list(PRINTED.finditer(text)):
            match = min(reversed(printed), key=lambda match: rank_of_words(match["label"]))
            label = re.sub(r" {2,}", r"\\s+", re.escape(match["label"]).replace("\\ ", " "))
            unit = match["unit"]
            return {UNITS.get(unit, unit): f"regex:{label}{NUMBER}{match['space']}{unit}"}
    return {}


def rank_of_words(words: str) -> int:
    """How likely a number that is called so stands for a whole run: 0 to 2 by WHOLE, NEUTRAL, or more for a part."""
    words = re.sub(r"[_.-]|(?<=[a-z])(?=[A-Z])", " ", words).lower()
    if re.search(PART, words):
        return NEUTRAL + 1
    return next((rank for rank, whole in enumerate(WHOLE) if re.search(whole, words)), NEUTRAL)


def _objects(text: str) -> Iterator[list[str]]:
    """The keys of every object that a source prints."""
    for match in OBJECT.finditer(text):
        yield KEY.findall(_inner(match[1] or match[2]))
    for match in islice(NAMED.finditer(text), MAX_OBJECTS):
        named = rf"\b{match[1]}\b[^=\n]{{0,80}}=\s{{0,40}}(?:dict\(|\{{)(.{{1,400}})"
        for made in islice(re.finditer(named, text, re.DOTALL), MAX_OBJECTS):
            yield re.findall(r"(?:^|[{,])\s*[\"']?([A-Za-z_]\w*)[\"']?\s*(?=[:=,}])", _inner(made[1]))


def _inner(text: str) -> str:
    """Return the text up to the bracket that closes an object, with it."""
    depth = 1
    for place, character in enumerate(text):
        depth += (character in "{(") - (character in "})")
        if depth == 0:
            return text[: place + 1]
    return text


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
