"""The evaluators that `evogit adopt` writes where a task's own can run outside: it gets a stand-in for the program."""

from __future__ import annotations

import ast
import re

from evogit.adopt.foreign_task import File

READS_TEXT = re.compile(
    r"\.read_text\(|\.readlines?\(|\.read\(\)|getsource|open\(\s*program_path|ast\.parse|py_compile"
)
"""What an evaluator does that looks at the program's text: a stand-in has another one."""
HEAD = '''\
"""Evaluates outside of the sandbox, where no candidate can reach it: written by `evogit adopt`.

The evaluator in task/ is theirs, as it was. It is given a file that stands in for the program: a call of one of its
functions is made in the sandbox, and what it returns comes back as plain data. What the evaluator does not check of
that data can still be false: make it compute the score from answers, not from scores that the program reports.
"""

import json
import sys
from pathlib import Path

from evogit import Case{invalid}
from evogit.evaluation.stand_in import stand_in

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "run"), str(HERE / "task")]
'''

OPENEVOLVE = (
    HEAD.replace("{invalid}", "")
    + """
from evaluate_openevolve import fitness, judged, loaded

PROGRAM = {program}
CONFIG = json.loads({config})


def evaluate(program, split):
    with stand_in(program, PROGRAM) as path:
        metrics, artifacts = judged(loaded(str(HERE / "task" / CONFIG["evaluator"])), path, CONFIG)
    told = [*(item for item in metrics.items() if not isinstance(item[1], int | float)), *artifacts.items()]
    feedback = "\\n".join(f"{{name}}: {{value}}" for name, value in told)
    case = Case("evaluation", feedback=feedback, combined_score=fitness(metrics, CONFIG["features"]))
    case.beside = {{**artifacts, **metrics}}
    yield case
"""
)

SHINKA = (
    HEAD.replace("{invalid}", ", Invalid").replace("import sys\n", "import runpy\nimport sys\nimport tempfile\n")
    + """
PROGRAM = {program}
ARGUMENTS = {arguments}


def evaluate(program, split):
    with stand_in(program, PROGRAM) as path, tempfile.TemporaryDirectory() as results:
        sys.argv = ["evaluate.py", "--program_path", path, "--results_dir", results, *ARGUMENTS]
        runpy.run_path(str(HERE / "task" / "evaluate.py"), run_name="__main__")
        correct = json.loads((Path(results) / "correct.json").read_text())
        metrics = json.loads((Path(results) / "metrics.json").read_text())
    if not correct.get("correct"):
        raise Invalid(f"not correct: {{correct.get('error')}}", metrics.get("text_feedback") or "")
    told = [f"{{name}}: {{value}}" for name, value in (metrics.get("public") or {{}}).items()]
    feedback = "\\n".join([*told, *filter(None, [metrics.get("text_feedback")])])
    case = Case("evaluation", feedback=feedback, combined_score=metrics["combined_score"])
    case.beside = metrics.get("public") or {{}}
    yield case
"""
)


def openevolve_outside(program: str, config: str, evaluator: File) -> tuple[str, str]:
    """The evaluator to be written, and why there is none (one of the two is empty)."""
    why = unfit(program, evaluator)
    return ("", why) if why else (OPENEVOLVE.format(program=repr(program), config=repr(config)), "")


def shinka_outside(program: str, evaluator: File, arguments: list[str]) -> tuple[str, str]:
    """The evaluator to be written, and why there is none (one of the two is empty)."""
    why = unfit(program, evaluator)
    return ("", why) if why else (SHINKA.format(program=repr(program), arguments=repr(arguments)), "")


def unfit(program: str, evaluator: File) -> str:
    """Why an evaluator cannot be given a stand-in for the program; empty when it may be tried."""
    if program == ".":
        return "the evaluator takes a whole repository, for which nothing can stand in"
    if not program.endswith(".py"):
        return f"{program} is no Python, so that its functions cannot be called from outside"
    text = evaluator[0].decode(errors="replace")
    if found := READS_TEXT.search(text):
        return f"the evaluator reads a text ({found[0]}): if it is the program's, a stand-in has another one"
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return "the evaluator is no Python that can be read"
    return ""
