"""No engine: hill climbing and best of n, a loop of twenty lines that asks the model and the gate.

Run: `python plain.py GATE RUN MODEL BUDGET climb|best-of-n FILE`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
if __name__ == "__main__":
    sys.path[0] = str(ROOT)  # not the folder of this file, in which modules have the names of packages

from edits import Edit  # noqa: E402
from formats import Reading, code_after  # noqa: E402
from serving import asked  # noqa: E402

from systems.base import Job, Speaker, System  # noqa: E402


class Plain(System):
    """A loop of our own; the parent is the best so far, or the seed always."""

    def begin(self, job: Job) -> list[str]:
        """A program."""
        job.write(program_py=job.program)
        where = [job.gate, job.run, job.model, str(job.budget), self.settings["parent"], "program.py"]
        return [sys.executable, __file__, *where]


class PlainSpeaker(Speaker):
    """The program and its feedback; the whole program as the reply."""

    def read(self, prompt: str) -> Reading | None:
        """The program."""
        return Reading(code_after("Program:", prompt), feedback=prompt)

    def write(self, reading: Reading, edit: Edit, prompt: str) -> str:
        """The changed program."""
        return edit.text


def search(gate: str, run: str, model: str, budget: int, parent: str, seed: str) -> None:
    """Ask for an edit of the parent, evaluate it, again and again."""

    def evaluate(text: str) -> dict[str, Any]:
        return asked(f"{gate}/evaluate", run=run, text=text)

    best, found = seed, evaluate(seed)
    score = found["score"]
    for _ in range(budget - 1):
        question = f"{found['feedback']}\n\nProgram:\n```python\n{best}```\n"
        reply = asked(f"{model}/chat/completions", messages=[{"role": "user", "content": question}])
        text = reply["choices"][0]["message"]["content"]
        judged = evaluate(text)
        if parent == "climb" and judged["ok"] and judged["score"] >= score:
            best, found, score = text, judged, judged["score"]


if __name__ == "__main__":
    where = sys.argv[1:4]
    search(*where, int(sys.argv[4]), sys.argv[5], Path(sys.argv[6]).read_text())
