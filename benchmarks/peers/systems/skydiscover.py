"""SkyDiscover: its command line at its defaults, or with AdaEvolve; edits as SEARCH and REPLACE blocks."""

from __future__ import annotations

import json
import re

from edits import Edit
from formats import Reading, blocks, code_after, numbered

from systems.base import MODEL, Job, Speaker, System

EVALUATE = """
from skydiscover.evaluation.evaluation_result import EvaluationResult


def evaluate(program_path):
    with open(program_path) as file:
        found = ask(file.read())
    return EvaluationResult(metrics={"combined_score": found["score"]}, artifacts={"feedback": found["feedback"]})
"""
CONFIG = """random_seed: {seed}
llm:
  models:
    - name: {model}
      api_base: {url}
prompt:
  system_message: {goal}
search:
  type: {search}
  database:
    random_seed: {seed}
"""


class SkyDiscover(System):
    """One of its own searches."""

    def begin(self, job: Job) -> list[str]:
        """A program, an evaluator, a configuration."""
        goal, search = json.dumps(job.goal), self.settings.get("search", "topk")
        config = CONFIG.format(seed=job.seed, url=job.model, model=MODEL, goal=goal, search=search)
        job.write(initial_program_py=job.program, evaluator_py=job.forward + EVALUATE, config_yaml=config)
        return self._command(job)

    def _command(self, job: Job, *more: str) -> list[str]:
        files = ["initial_program.py", "evaluator.py", "--config", "config.yaml", "--output", "out"]
        return [job.program_of("skydiscover-run"), *files, "--iterations", str(2 * job.budget), *more]

    def _checkpoint(self, job: Job) -> int:
        return max((int(each.name.split("_")[1]) for each in job.folder.glob("out/checkpoints/*")), default=0)

    def resume(self, job: Job) -> list[str]:
        """From the last checkpoint, if there is one; else from the start."""
        last = self._checkpoint(job)
        return self._command(job, *(["--checkpoint", f"out/checkpoints/checkpoint_{last}"] if last else []))

    def kept(self, job: Job) -> int:
        """The iterations before the last checkpoint, and the seed."""
        last = self._checkpoint(job)
        return last + 1 if last else 0


class SkyDiscoverSpeaker(Speaker):
    """The current program, attempts, and other programs with their scores."""

    CURRENT = "# Current Program\n"
    SCORE = re.compile(r"^combined_score: ([-\d.]+)", re.MULTILINE)
    OTHER = r"### Program \d+ \(combined_score: ([-\d.]+)\)"
    CHANGE = re.compile(r"Change \d+: '(.*)' → '(.*)'\n(?:.*\n)*?- Outcome: (Improvement|Regression)")

    def read(self, prompt: str) -> Reading | None:
        """The current program and what is told of others."""
        parent = code_after(self.CURRENT, prompt)
        if not parent:
            return None
        before, _, current = prompt.rpartition(self.CURRENT)
        score = self.SCORE.search(current)
        others = [(code_after("", piece), value) for value, piece in numbered(self.OTHER, before)]
        tried = [(old, new, 1 if how == "Improvement" else -1) for old, new, how in self.CHANGE.findall(before)]
        return Reading(parent, float(score[1]) if score else None, current, others, tried)

    def write(self, reading: Reading, edit: Edit, prompt: str) -> str:
        """Blocks, or the whole program where it asks for that."""
        if "SEARCH/REPLACE" in prompt:
            return f"{edit.title}.\n\n{blocks(reading.parent, edit.text)}\n"
        return f"{edit.title}.\n\n```python\n{edit.text}```\n"
