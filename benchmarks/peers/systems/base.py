"""What the benchmark asks of a system: the files that a user would write, the command, and how it asks models."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from edits import Edit
from formats import Reading

MODEL = "synthetic"
"""What the model is called; the systems know none of this name, so nobody's price list or habit applies."""

FORWARD = """import http.client
import json


def ask(text):
    connection = http.client.HTTPConnection({host!r})
    connection.request("POST", "/evaluate", json.dumps({{"run": {run!r}, "text": text}}))
    reply = connection.getresponse()
    if reply.status != 200:
        raise RuntimeError("the gate is closed")
    return json.load(reply)
"""
"""The part of all evaluators that sends a candidate to the gate."""


@dataclass(frozen=True)
class Job:
    """One run: where, of what, with which addresses."""

    run: str
    folder: Path
    program: str
    goal: str
    gate: str
    model: str
    budget: int
    seed: int
    python: Path

    @property
    def forward(self) -> str:
        """The function `ask(text)` that evaluators call."""
        return FORWARD.format(host=self.gate.removeprefix("http://"), run=self.run)

    def write(self, **files: str) -> None:
        """Write what a user would write; `a_py` is the file a.py."""
        for name, text in files.items():
            stem, _, suffix = name.rpartition("_")
            (self.folder / f"{stem}.{suffix}").write_text(text)

    def program_of(self, name: str) -> str:
        """The path of a command of the system's environment."""
        return str(self.python.parent / name)


class Speaker(ABC):
    """How a system asks models, and what it expects them to answer."""

    @abstractmethod
    def read(self, prompt: str) -> Reading | None:
        """What a question holds; None where it asks for no edit."""

    @abstractmethod
    def write(self, reading: Reading, edit: Edit, prompt: str) -> str:
        """An edit in the format that the question asks for."""


@dataclass(frozen=True)
class System(ABC):
    """A way to search, at some parallelism; `packages` are what its environment needs, none that of EvoGit."""

    name: str
    at_once: int = 1
    settings: Mapping[str, str] = field(default_factory=dict)
    speaker: str = ""
    packages: tuple[str, ...] = ()
    share: float = 1.0
    """Of the seeds; less for what takes many times as long as others."""

    @abstractmethod
    def begin(self, job: Job) -> list[str]:
        """Write the files, and give the command that begins the run."""

    @property
    def resumes(self) -> bool:
        """Whether it has a way to go on after a kill."""
        return type(self).resume is not System.resume

    def resume(self, job: Job) -> list[str]:
        """The command that goes on after a kill, as documented; empty if there is none."""
        return []

    def kept(self, job: Job) -> int:
        """How many evaluations its files still have after a kill."""
        return 0

    def environment(self, job: Job) -> dict[str, str]:
        """Variables beside those that are there."""
        return {"OPENAI_API_KEY": "none"}
