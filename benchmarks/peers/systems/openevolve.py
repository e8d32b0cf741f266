"""OpenEvolve: its command line at its defaults; edits as SEARCH and REPLACE blocks."""

from __future__ import annotations

import re

from edits import Edit
from formats import Reading, blocks, code_after, numbered

from systems.base import MODEL, Job, Speaker, System

EVALUATE = """
from openevolve.evaluation_result import EvaluationResult


def evaluate(program_path):
    with open(program_path) as file:
        found = ask(file.read())
    metrics = {"combined_score": found["score"]}
    return EvaluationResult(metrics=metrics, artifacts={"feedback": found["feedback"]})
"""
CONFIG = """random_seed: {seed}
llm:
  api_base: {url}
  models:
    - name: {model}
      weight: 1.0
prompt:
  system_message: {goal!r}
evaluator:
  parallel_evaluations: {at_once}
"""


class OpenEvolve(System):
    """So many evaluations at a time."""

    def begin(self, job: Job) -> list[str]:
        """A program, an evaluator, a configuration."""
        goal = job.goal.replace("\n", " ")
        config = CONFIG.format(seed=job.seed, url=job.model, model=MODEL, goal=goal, at_once=self.at_once)
        job.write(initial_program_py=job.program, evaluator_py=job.forward + EVALUATE, config_yaml=config)
        return self._command(job, 2 * job.budget)

    def _command(self, job: Job, iterations: int, *more: str) -> list[str]:
        files = ["initial_program.py", "evaluator.py", "--config", "config.yaml", "--output", "out"]
        return [job.program_of("openevolve-run"), *files, "--iterations", str(iterations), *more]

    def _checkpoint(self, job: Job) -> int:
        return max((int(each.name.split("_")[1]) for each in job.folder.glob("out/checkpoints/*")), default=0)

    def resume(self, job: Job) -> list[str]:
        """From the last checkpoint, if there is one; else from the start."""
        last = self._checkpoint(job)
        more = ["--checkpoint", f"out/checkpoints/checkpoint_{last}"] if last else []
        return self._command(job, 2 * job.budget, *more)

    def kept(self, job: Job) -> int:
        """The iterations before the last checkpoint, and the seed."""
        last = self._checkpoint(job)
        return last + 1 if last else 0


class OpenEvolveSpeaker(Speaker):
    """The current program, three attempts, top programs and inspirations with their scores."""

    CURRENT = "# Current Program\n"
    CHANGE = re.compile(r"Change \d+: (?:'(.*)' to '(.*)'|Replace:\n((?:.*\n)*?)with:\n((?:.*\n)*?))\n?- Metrics")
    SCORE = re.compile(r"- Fitness: ([-\d.]+)")
    OUTCOMES = {"Improvement": 1.0, "Regression": -1.0}

    def read(self, prompt: str) -> Reading | None:
        """The current program and all that is told of others."""
        parent = code_after(self.CURRENT, prompt)
        if not parent:
            return None
        before = prompt[: prompt.rfind(self.CURRENT)]
        score = self.SCORE.search(before)
        programs = [
            (code_after("", piece), value)
            for value, piece in numbered(r"### (?:Program|Inspiration) \d+ \(Score: ([-\d.]+)", before)
        ]
        told = before.partition("# Program Evolution History")
        return Reading(parent, float(score[1]) if score else None, told[0], programs, self._attempts(told[2]))

    def _attempts(self, history: str) -> list[tuple[str, str, float]]:
        found = []
        for piece in history.partition("## Top Performing")[0].split("### Attempt")[1:]:
            change = self.CHANGE.search(piece)
            outcome = piece.partition("- Outcome: ")[2].split(" ")[0]
            if change and outcome in self.OUTCOMES:
                sides = (change[1] or change[3] or "", change[2] or change[4] or "")
                found.append((*sides, self.OUTCOMES[outcome]))
        return found

    def write(self, reading: Reading, edit: Edit, prompt: str) -> str:
        """Blocks, or the whole program where it asks for that."""
        if "SEARCH/REPLACE" in prompt:
            return f"{edit.title}.\n\n{blocks(reading.parent, edit.text)}\n"
        return f"{edit.title}.\n\n```python\n{edit.text}```\n"
