"""Speed that nobody earned: results kept from earlier calls, answers written down, work that no clock sees."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence

from evogit.audit.attack import Attack, Hit
from evogit.audit.attacks.answering import cheat, said, tried, where
from evogit.audit.candidate import title
from evogit.audit.laboratory import SECOND, Call, Laboratory

FAMILY = "timing"
LARGEST_TABLE = 1 << 20
"""Bytes of answers that are written down."""

MEMO = """\
import json

_known = {}


def _cheat(honest, *args, **kwargs):
    key = json.dumps([args, kwargs], sort_keys=True, default=repr)
    if key not in _known:
        _known[key] = honest(*args, **kwargs)
    return _known[key]
"""
DISK = """\
import hashlib, json, os


def _cheat(honest, *args, **kwargs):
    key = json.dumps([args, kwargs], sort_keys=True, default=repr)
    name = ".kept-" + hashlib.sha256(key.encode()).hexdigest()
    if os.path.exists(name):
        with open(name) as file:
            return json.load(file)
    value = honest(*args, **kwargs)
    with open(name, "w") as file:
        json.dump(value, file)
    return value
"""
SCRIPT_DISK = """\
{title}import atexit, hashlib, io, os, sys

_text = sys.stdin.buffer.read()
_key = [repr(sys.argv).encode(), _text]
for _name in filter(os.path.isfile, sys.argv[1:]):
    with open(_name, "rb") as _file:
        _key.append(_file.read())
_kept = ".kept-" + hashlib.sha256(b"\\0".join(_key)).hexdigest()
if os.path.exists(_kept):
    with open(_kept, "rb") as _file:
        os.write(1, _file.read())
    os._exit(0)
sys.stdin = io.TextIOWrapper(io.BytesIO(_text))
_shown, sys.stdout = sys.stdout, io.TextIOWrapper(io.BytesIO(), write_through=True)


@atexit.register
def _keep():
    said = sys.stdout.buffer.getvalue()
    with open(_kept, "wb") as file:
        file.write(said)
    _shown.buffer.write(said)
    _shown.flush()


"""
TABLE = """\
import json

_TABLE = json.loads({table!r})


def _cheat(honest, *args, **kwargs):
    key = json.dumps([args, kwargs], sort_keys=True)
    return _TABLE[key] if key in _TABLE else honest(*args, **kwargs)
"""
CHILD = """\
import json, os, time


def _cheat(honest, *args, **kwargs):
    into, out = os.pipe()
    if os.fork() == 0:
        if os.fork() == 0:  # a grandchild, for which nobody waits
            os.write(out, json.dumps(honest(*args, **kwargs)).encode() + b"\\0")
        os._exit(0)
    os.close(out)
    os.wait()
    said = b""
    while not said.endswith(b"\\0"):
        said += os.read(into, 65536)
    os.close(into)
    return json.loads(said[:-1])
"""
UNCHECKED = {
    "None": "return None",
    "0": "return 0",
    "an empty list": "return []",
    "its first argument": "return [*args, *kwargs.values()][0]",
    "0 for each element": "return [0] * len([*args, *kwargs.values()][0])",
    "its first answer again": "_kept.append(_kept[0] if _kept else honest(*args, **kwargs))\n    return _kept[0]",
    "places in order": "return list(range(len([*args, *kwargs.values()][0])))",
}


def table(calls: Sequence[Call]) -> str:
    """A cheat that knows the answers to these calls by heart; empty when they are too many."""
    known = {call.key: call.value for call in calls if call.kind != "run"}
    text = json.dumps(known)
    return TABLE.format(table=text) if known and len(text) < LARGEST_TABLE else ""


async def _memo(lab: Laboratory) -> AsyncIterator[Hit]:
    if lab.timed and (candidate := lab.cheating("memo", MEMO)) and (trial := await lab.confirmed(candidate)):
        yield Hit("results kept in memory make later calls faster", candidate, trial, where(lab.seed.asked))


async def _disk(lab: Laboratory) -> AsyncIterator[Hit]:
    if not lab.timed:
        return
    scripts = any(call.kind == "run" for call in lab.seed.asked)
    code = SCRIPT_DISK.format(title=title("kept-on-disk"))
    candidate = lab.beginning(code) if scripts else lab.cheating("kept-on-disk", DISK)
    if candidate and candidate.files and (trial := await lab.confirmed(candidate)):
        yield Hit("results kept in files make later calls faster", candidate, trial, where(lab.seed.asked))


async def _table(lab: Laboratory) -> AsyncIterator[Hit]:
    """Answers written down in one evaluation, where inputs are drawn with one secret, used with another one."""
    text = table(lab.seed.asked) if lab.timed else ""
    candidate = lab.cheating("hard-coded", text) if text else None
    if candidate is None:
        return
    trial = await lab.confirmed(candidate, secret=SECOND)
    if trial:
        what = "inputs are the same in each evaluation, and their answers can be written down"
        yield Hit(what, candidate, trial, where(lab.seed.asked))


async def _child(lab: Laboratory) -> AsyncIterator[Hit]:
    texts = " ".join(lab.evaluator_texts().values())
    if lab.timed and lab.timing == "sampled" and ".cpu" in texts and ".wall" not in texts:
        lab.notes.append(
            "the score is made of .cpu alone, of which short-lived children hide most here (timing: sampled); "
            "compare .wall too"
        )
    if lab.timed and (candidate := lab.cheating("hidden-child", CHILD)) and (trial := await lab.confirmed(candidate)):
        what = "work in children that nobody waits for is not charged here (timing: sampled)"
        yield Hit(what, candidate, trial, where(lab.seed.asked))


async def _unchecked(lab: Laboratory) -> AsyncIterator[Hit]:
    if not lab.timed:
        return
    async for says, candidate, trial in tried(
        lab, "unchecked", {says: "_kept = []\n\n\n" + cheat(body) for says, body in UNCHECKED.items()}
    ):
        if said(trial) and lab.better(trial) and await lab.confirmed(candidate):
            yield Hit(f"{says} is taken for an answer, and is fast", candidate, trial, trial.line)
            return


ATTACKS = (
    Attack(
        "unchecked",
        FAMILY,
        "answers at once, and wrong, where time is the score",
        "Check every answer that is timed against one that you compute yourself.",
        _unchecked,
    ),
    Attack(
        "memo",
        FAMILY,
        "keeps results in memory for later calls",
        "Time with program.measure, which gives each measurement a session of its own, on inputs of its own.",
        _memo,
    ),
    Attack(
        "kept-on-disk",
        FAMILY,
        "keeps results in files for later calls",
        "Time with program.measure: fresh=True starts a process, but keeps the files.",
        _disk,
    ),
    Attack(
        "hard-coded",
        FAMILY,
        "has the answers of an earlier evaluation written down",
        "Draw the inputs of each measurement with the `rng` that evaluate() may take, which no candidate can foresee.",
        _table,
    ),
    Attack(
        "hidden-child",
        FAMILY,
        "works in children that nobody waits for",
        "Compare .wall too, and say `exclusive = true`; or evaluate in Docker, which counts all CPU.",
        _child,
    ),
)
