"""GEPA: `optimize_anything` at its defaults, which asks for the whole program anew."""

from __future__ import annotations

import subprocess

from edits import Edit
from formats import Reading, code_after

from systems.base import MODEL, Job, Speaker, System

RUN = """
from gepa.optimize_anything import EngineConfig, GEPAConfig, ReflectionConfig, optimize_anything


def evaluate(candidate):
    found = ask(candidate)
    return found["score"], {{"feedback": found["feedback"]}}


with open("program.py") as file:
    seed = file.read()
optimize_anything(
    seed_candidate=seed,
    evaluator=evaluate,
    objective={goal!r},
    config=GEPAConfig(
        engine=EngineConfig(run_dir="results", seed={seed}, max_metric_calls={calls}),
        reflection=ReflectionConfig(reflection_lm="openai/{model}"),
    ),
)
"""


class GEPA(System):
    """Its single-task mode."""

    def begin(self, job: Job) -> list[str]:
        """A program, and a driver with the evaluator in it."""
        run = RUN.format(goal=job.goal, seed=job.seed, calls=2 * job.budget, model=MODEL)
        job.write(program_py=job.program, run_py=job.forward + run)
        return self.resume(job)

    def resume(self, job: Job) -> list[str]:
        """The same command, with the same folder."""
        return [str(job.python), "run.py"]

    def kept(self, job: Job) -> int:
        """The evaluations that its saved state counts, asked in its own environment."""
        count = "from gepa.core.state import GEPAState; print(GEPAState.load('results').total_num_evals)"
        done = subprocess.run([job.python, "-c", count], cwd=job.folder, capture_output=True, text=True)
        return int(done.stdout) if done.returncode == 0 else 0

    def environment(self, job: Job) -> dict[str, str]:
        """Where the model is."""
        return {"OPENAI_API_KEY": "none", "OPENAI_API_BASE": job.model, "OPENAI_BASE_URL": job.model}


class GEPASpeaker(Speaker):
    """The current component and its evaluation; the whole one in backticks."""

    CURRENT = "## Current Component"

    def read(self, prompt: str) -> Reading | None:
        """The component and the feedback."""
        parent = code_after(self.CURRENT, prompt)
        return Reading(parent, feedback=prompt.partition("## Evaluation Results")[2]) if parent else None

    def write(self, reading: Reading, edit: Edit, prompt: str) -> str:
        """The whole program."""
        return f"```python\n{edit.text}```"
