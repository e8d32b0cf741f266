"""A run in which all that a candidate, its agent, a model or a forged journal says is an attack on who reads it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evogit.core import Metric
from evogit.events import Compared, Decision, FailedProposal, Spent, Tactic
from evogit.testing import RecordedRun

RUN = "toy"

MEGABYTE = 1_000_000

UNSEEN = "\u202e\u2066\u200f\u200b\u00ad\ufeff\u2028\u2060\U000e0041\U000e0100\u3164\u2800\u115f\u034f"
"""Characters that turn what follows, or that nobody sees."""

ESCAPES = "\x1b]0;owned\x07\x1b[2J\x1b[31m\x9b31m\x1b]8;;http://127.0.0.1:9/\x1b\\\x08\x7f\x85"

ODD = (
    "__proto__ constructor ${window.ran('t')} {{7*7}} %s %n <!-- --> ]]> &lt;&#x3c; \\u202e \U0001f600 \\ ` | *x* _y_ "
    "[l](javascript:ran(1)) <http://127.0.0.1:9/> =1+1"
)


def markup(home: str) -> str:
    """HTML that runs or fetches something wherever it is read as HTML; `home` would hear of it."""
    return "".join(
        [
            "\"'></script></style></title></textarea></pre>",
            f'<script>ran("script");fetch("{home}/fetch")</script><img src="{home}/img" onerror=ran("img")>',
            '<svg onload=ran("svg")></svg><iframe srcdoc="<script>parent.ran(1)</script>"></iframe>',
            f'<a href="javascript:ran(2)">javascript:ran(3)</a><link rel="stylesheet" href="{home}/css">',
            f'<base href="{home}"><meta http-equiv="refresh" content="0;url={home}/meta">',
            f'<style>@import "{home}/import"</style><body onload=ran(4)>',
        ]
    )


def write_hostile_run(folder: Path, home: str) -> str:
    """The run; its best candidate's id. `home`: an address to which the attacks would report."""
    html = markup(home)
    evil = f"{html} {ESCAPES} {UNSEEN} {ODD}"
    metric = Metric(name="score", direction="maximize", primary=True, best_known=3.0)
    run = RecordedRun(
        folder, RUN, metrics=(metric,), task=evil, goal=evil, agents=(evil, "a1"), editable=(evil,), provider=evil
    )
    run.append(Spent(engine="e", move=1, agent=evil, model=evil, prompt=5, completion=5, failure=evil))
    run.append(Tactic(engine="e", move=1, agent=evil, model=evil, best="0" * 40, text=evil))
    seed = run.add_files({"program.py": b"x = 1\n", "late.js": b"// nothing\n"}, value=0.5, title=evil)
    evidence = {
        "stdout": evil.encode() + b"\xff\xfe\n" + b"A" * MEGABYTE,
        "stderr": (evil + "\n").encode() * 20,
        "log": evil.encode(),
        "feedback.json": json.dumps({evil: evil, "__proto__": evil, "long": "B" * MEGABYTE}).encode(),
        f"unshown-{'x' * 20}": evil.encode(),
    }
    made = {
        "prompt.md": (evil + "C" * MEGABYTE).encode(),
        "reply.md": (f"```html\n{evil}\n```\n" + "D" * MEGABYTE).encode(),
        "transcript.txt": evil.encode(),
        "session.json": json.dumps({"program": evil, evil: [evil, {"__proto__": evil}]}).encode(),
    }
    files: dict[str, bytes | None] = {
        "program.py": f"x = 2  # {evil}\n".encode() + b"y = '" + b"E" * MEGABYTE + b"'\n",
        "late.js": f'/* {evil} */ `{evil}` "{evil}"\n'.encode(),
        "<img src=x onerror=ran(5)>.html": html.encode(),
        "javascript:ran(6)": b"1\n",
        f"{UNSEEN}a;b&c'\"`$(x).py": b"1\n",
        "\u202etxt.exe": b"1\n",
    }
    best = _propose(run, files, seed, title=evil, agent=evil, reason=evil, strategy=f"{evil}@0.1", made=made, move=1)
    cases = {
        evil: {"score": 2.5, evil: 1.0},
        "__proto__": {"score": 1.0, "constructor": 2.0},
        "toString": {"__proto__": 1.0},
    }
    run.evaluate(best, 2.5, run.journal.keep(evidence, best), cases=cases, stages={evil: {evil: 1.0}})
    _propose(run, {"program.py": b"boom\n"}, best, title="F" * 5000, agent="G" * 5000, move=2)
    failed = _propose(run, {"program.py": b"bang\n"}, best, title=evil, agent=evil, move=3)
    run.evaluate(failed, "crashed", reason=evil + "H" * 5000)
    both = _propose(run, {"program.py": b"both\n"}, best, seed, title=evil, strategy=evil, agent=evil, move=4)
    run.evaluate(both, 2.4)
    run.adopt(best, "constructor")  # the name of a ref; others are damage
    for agent in (evil, "__proto__", "constructor"):
        run.append(FailedProposal(engine="e", move=5, agent=agent, parents=(best,), reason=evil))
    run.append(Decision(kind="guide", by=evil, reason=evil))
    run.append(Decision(kind="note", by=evil, reason=evil, candidates=(best,)))
    run.append(Decision(kind="promote", by=evil, reason=evil, candidates=(best,)))
    run.append(Compared(judge=evil, by="person", a=best, b=seed, winner="a", reason=evil))
    run.stop(detail=evil, again=evil)
    return best


def _propose(
    run: RecordedRun, files: Mapping[str, bytes | None], *parents: str, title: str, reason: str = "", **known: Any
) -> str:
    """A candidate of which the journal says what no commit would."""
    made = known.pop("made", {})
    commit = run.commit(files, *parents, title=title, reason=reason)
    known |= {"candidate": commit, "tree": run.repository.tree_of(commit), "evidence": run.journal.keep(made, commit)}
    return run.propose(*parents, title=title, **known)
