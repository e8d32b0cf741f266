"""ShinkaEvolve: its runner at its defaults, without embeddings; edits as blocks or as the whole program."""

from __future__ import annotations

import re
import sqlite3

from edits import Edit
from formats import Reading, blocks, code_after

from systems.base import MODEL, Job, Speaker, System

EVALUATE = """
import os
import sys

program, results = sys.argv[sys.argv.index("--program_path") + 1], sys.argv[sys.argv.index("--results_dir") + 1]
with open(program) as file:
    found = ask(file.read())
os.makedirs(results, exist_ok=True)
with open(os.path.join(results, "metrics.json"), "w") as file:
    public = {"score": found["score"]}
    json.dump({"combined_score": found["score"], "public": public, "text_feedback": found["feedback"]}, file)
with open(os.path.join(results, "correct.json"), "w") as file:
    json.dump({"correct": found["ok"], "error": None if found["ok"] else found["feedback"]}, file)
"""
RUN = """import os
import random

import numpy
from shinka.core import EvolutionConfig, ShinkaEvolveRunner
from shinka.database import DatabaseConfig
from shinka.launch import LocalJobConfig

random.seed({seed})
numpy.random.seed({seed})
{cores}
ShinkaEvolveRunner(
    evo_config=EvolutionConfig(
        task_sys_msg={goal!r},
        num_generations={generations},
        llm_models=["local/{model}@{url}"],
        embedding_model=None,
        init_program_path="initial.py",
        results_dir="results",
    ),
    job_config=LocalJobConfig(eval_program_path="evaluate.py"),
    db_config=DatabaseConfig(db_path="programs.sqlite"),
).run()
"""


class Shinka(System):
    """Its defaults, or `cores` of them, by which it bounds how many jobs it has."""

    def begin(self, job: Job) -> list[str]:
        """A program, an evaluator that imports nothing of its, a driver."""
        cores = f"os.cpu_count = lambda: {self.settings['cores']}\n" if self.settings else ""
        run = RUN.format(
            seed=job.seed, cores=cores, goal=job.goal, generations=2 * job.budget, model=MODEL, url=job.model
        )
        job.write(initial_py=job.program, evaluate_py=job.forward + EVALUATE, run_py=run)
        return self.resume(job)

    def resume(self, job: Job) -> list[str]:
        """The same command."""
        return [str(job.python), "run.py"]

    def kept(self, job: Job) -> int:
        """The programs of its database."""
        for file in job.folder.rglob("programs.sqlite"):
            with sqlite3.connect(file) as database:
                return int(database.execute("SELECT COUNT(*) FROM programs").fetchone()[0])
        return 0


class ShinkaSpeaker(Speaker):
    """The current program, two prior ones with their scores; by turns blocks, the whole program, or a cross."""

    CURRENT = "# Current program\n"
    SCORE = re.compile(r"Combined score to maximize: ([-\d.]+)")
    PRIOR = re.compile(r"^```\w*\n((?:.*\n)*?)```\n\nPerformance metrics:\nCombined score to maximize: ([-\d.]+)", re.M)

    def read(self, prompt: str) -> Reading | None:
        """The current program and the prior ones."""
        at = prompt.rfind(self.CURRENT)
        parent = code_after(self.CURRENT, prompt) or code_after("# Incorrect Program to Fix", prompt)
        if not parent:
            return None
        score = self.SCORE.search(prompt[at:])
        programs = [(code, float(value)) for code, value in self.PRIOR.findall(prompt)]
        feedback = prompt[at:].partition("additional text feedback about the current program")[2]
        return Reading(parent, float(score[1]) if score else None, feedback, programs)

    def write(self, reading: Reading, edit: Edit, prompt: str) -> str:
        """A name, a description, and what is asked for."""
        named = f"<NAME>\nsmall_edit\n</NAME>\n\n<DESCRIPTION>\n{edit.title}\n</DESCRIPTION>\n\n"
        if "SEARCH/REPLACE" in prompt:
            return f"{named}<DIFF>\n{blocks(reading.parent, edit.text)}\n</DIFF>\n"
        return f"{named}<CODE>\n```python\n{edit.text}```\n</CODE>\n"
