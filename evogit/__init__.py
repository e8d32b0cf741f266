"""EvoGit: a population of coding agents improves a code base; the commit graph is the phylogeny."""

from typing import TYPE_CHECKING

from evogit.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from evogit.adopt import find_task
    from evogit.agents import Agent, Brief, NoUsableChangeError, Proposal
    from evogit.config import Task, load_repository_task, load_task
    from evogit.config.run_settings import AgentSpec, RunLimits, Settings
    from evogit.core import (
        Candidate,
        ConfigError,
        Evaluation,
        Evidence,
        EvoGitError,
        Files,
        NotFoundError,
        RefusedError,
        UsageError,
    )
    from evogit.engine.engine import Observer
    from evogit.engine.evaluations import EvaluationBackend
    from evogit.evaluation.binary_values import Array
    from evogit.evaluation.program import Case, Invalid
    from evogit.events import Entry, Stopped
    from evogit.history import History
    from evogit.history.context import RunContext, StoredRun
    from evogit.library.ask_and_tell import ToEvaluate, ToPropose
    from evogit.library.evolving import evolve, prepare
    from evogit.library.result import CandidateView, Result, read, runs
    from evogit.repository import Repository
    from evogit.run import Run
    from evogit.selection import Move, Selector

__version__ = "0.1.0"

_ROOMS = {
    "adopt": ("find_task",),
    "agents": ("Agent", "Brief", "NoUsableChangeError", "Proposal"),
    "config": ("Task", "load_repository_task", "load_task"),
    "config.run_settings": ("AgentSpec", "RunLimits", "Settings"),
    "core": (
        *("Candidate", "Evaluation", "Evidence", "Files"),
        *("ConfigError", "EvoGitError", "NotFoundError", "RefusedError", "UsageError"),
    ),
    "events": ("Entry", "Stopped"),
    "engine.engine": ("Observer",),
    "engine.evaluations": ("EvaluationBackend",),
    "evaluation.binary_values": ("Array",),
    "evaluation.program": ("Case", "Invalid"),
    "history": ("History",),
    "history.context": ("RunContext", "StoredRun"),
    "library.ask_and_tell": ("ToEvaluate", "ToPropose"),
    "library.evolving": ("evolve", "prepare"),
    "library.result": ("CandidateView", "Result", "read", "runs"),
    "repository": ("Repository",),
    "run": ("Run",),
    "selection": ("Move", "Selector"),
}
"""Module -> what it gives to users; loaded when asked for: no program loads what it does not use."""

__all__ = [
    "Agent",
    "AgentSpec",
    "Array",
    "Brief",
    "Candidate",
    "CandidateView",
    "Case",
    "ConfigError",
    "Entry",
    "Evaluation",
    "EvaluationBackend",
    "Evidence",
    "EvoGitError",
    "Files",
    "History",
    "Invalid",
    "Move",
    "NoUsableChangeError",
    "NotFoundError",
    "Observer",
    "Proposal",
    "RefusedError",
    "Repository",
    "Result",
    "Run",
    "RunContext",
    "RunLimits",
    "Selector",
    "Settings",
    "Stopped",
    "StoredRun",
    "Task",
    "ToEvaluate",
    "ToPropose",
    "UsageError",
    "evolve",
    "find_task",
    "load_repository_task",
    "load_task",
    "prepare",
    "read",
    "runs",
]


__getattr__ = lazy_exports(__name__, _ROOMS)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
