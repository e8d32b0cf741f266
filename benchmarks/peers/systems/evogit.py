"""EvoGit: editors on a task whose evaluator reads the candidate in its sandbox, and sends it to the gate."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from edits import Edit
from formats import Reading, blocks, section

from systems.base import MODEL, Job, Speaker, System

TASK = """name = "program"
editable = ["program.py"]

[metrics.score]
direction = "maximize"
primary = true

[evaluator]
kind = "python"
file = "evaluator/evaluate.py"
splits = ["train"]
"""
EVALUATE = """
from evogit import Case, Invalid


def evaluate(program, split):
    found = ask(program.run(["cat", "program.py"]).stdout)
    if not found["ok"]:
        raise Invalid(found["feedback"])
    yield Case("all", feedback=found["feedback"], score=found["score"])
"""
SETTINGS = """[models.{model}]
base_url = "{url}"
price = {{ input = 0, output = 0 }}
"""
FILE = re.compile(r"^File program\.py:\n(`{3,})\n(.*?)^\1$", re.DOTALL | re.MULTILINE)
TOLD = re.compile(r"^- ([0-9a-f]{7}) (.*): (?:same value|(failed) \(|[-\d.e]+ \(\w+, ([-+][\d.e-]+)\))", re.MULTILINE)
FAILED = -1.0
"""What a change that failed brought; how much does not matter."""
DIFF = re.compile(r"^Change of ([0-9a-f]{7}):\n((?:[-+ @].*\n)+)", re.MULTILINE)
CONFLICT = re.compile(r"^<{7,} ours\n(.*?)^\|{7,} base\n.*?^={7,}\n(.*?)^>{7,} theirs\n", re.DOTALL | re.MULTILINE)


class EvoGit(System):
    """So many editors, evaluating as many at a time as there are cores at most."""

    def begin(self, job: Job) -> list[str]:
        """A task folder and a price of nothing; the same command resumes."""
        for folder in ("task/seed", "task/evaluator"):
            (job.folder / folder).mkdir(parents=True)
        (job.folder / "task/seed/program.py").write_text(job.program)
        (job.folder / "task/evaluator/evaluate.py").write_text(job.forward + EVALUATE)
        (job.folder / "task/goal.md").write_text(job.goal)
        (job.folder / "task/task.toml").write_text(TASK)
        (job.folder / "settings.toml").write_text(SETTINGS.format(model=MODEL, url=job.model))
        return self.resume(job)

    def resume(self, job: Job) -> list[str]:
        """The command, which knows where it ended."""
        agents = f"editor@{MODEL}:{self.at_once}"
        options = ["--agent", agents, "-j", str(min(self.at_once, 2)), "--seed", str(job.seed)]
        given = [f"--{key}={value}" for key, value in self.settings.items()]
        command = [str(Path(sys.executable).with_name("evogit")), "run", "task", "--evaluations", str(job.budget)]
        return [*command, *options, "--sandbox", "bubblewrap", *given]

    def kept(self, job: Job) -> int:
        """The evaluations of its journal."""
        import evogit

        return sum(each.evaluation is not None for each in evogit.read(job.folder / "evogit-program"))

    def environment(self, job: Job) -> dict[str, str]:
        """Return the paths of its settings and of a state folder that trusts the task."""
        from evogit.trust import Claim, Trust

        Trust(job.folder / "state/evogit/trust").add(Claim("tree", str(job.folder.resolve())))
        return {"EVOGIT_SETTINGS": str(job.folder / "settings.toml"), "XDG_STATE_HOME": str(job.folder / "state")}


class EvoGitSpeaker(Speaker):
    """Briefs with ancestors, siblings and failures; SEARCH and REPLACE blocks behind a title."""

    def read(self, prompt: str) -> Reading | None:
        """The file, what was said of it, and what was tried from it and its ancestors."""
        found = FILE.search(prompt)
        if not found:
            return None
        feedback = section("## What the evaluator said of cases", prompt)
        return Reading(found[2], feedback=feedback, changes=self._changes(prompt))

    def _changes(self, prompt: str) -> list[tuple[str, str, float]]:
        """What is told of others as a title, or with the lines that it changed."""
        told = {
            identifier: (title, FAILED if failed else float(gain or 0))
            for identifier, title, failed, gain in TOLD.findall(prompt)
        }
        found = [(*title.split(" -> "), gain) for title, gain in told.values() if title.count(" -> ") == 1]
        for identifier, lines in DIFF.findall(prompt):
            old, new = ("\n".join(line[1:] for line in lines.splitlines() if line[0] == sign) for sign in "-+")
            if identifier in told:
                found.append((old, new.partition("\n")[2], told[identifier][1]))
        return found

    def write(self, reading: Reading, edit: Edit, prompt: str) -> str:
        """The edit; where there are conflicts, one side of each, by a coin that the edit is."""
        if CONFLICT.search(reading.parent):
            side = len(edit.title) % 2 + 1
            whole = CONFLICT.sub(lambda found: found[side], reading.parent)
            return f"Settled.\n\nTITLE: settle what differs\n\n<<<<<<< WRITE program.py\n{whole}>>>>>>> END\n"
        return f"One more try.\n\nTITLE: {edit.title[:72]}\n\n{blocks(reading.parent, edit.text, 'program.py')}\n"
