"""How a run is driven: the limits and choices that a person gives with `evogit run`."""

from __future__ import annotations

import math
import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self, SupportsFloat

from msgspec import Struct, field
from msgspec.structs import replace

from evogit.core import UsageError
from evogit.credentials import tokens

TURNS = 100  # replies in a session of a coder, at most

CALLS = {"editor": 2, "coder": TURNS, "plain-loop": 1}
"""Kinds of agents that ask a model, and calls for a proposal, at most: an editor's reply may have to be mended."""

KINDS = ("mutator", *CALLS)  # kinds of agents that are EvoGit's own
PROGRAM_CALLS = 30  # the same for coding programs: a guess, as they decide themselves
LONGEST_GRACE = 60.0  # seconds that are kept for the end of a run with a limit on minutes, where nobody says how many
DEFAULT_SELECTOR = "elitist"  # how parents and survivors are chosen by default


Trust = Literal["believe", "verify"]

RAY_HEAD = r"ray:(?:ray://)?[\w-]*[A-Za-z.][\w.-]*:\d+"  # an address of Ray, whose port is no number of workers

# limits that can end a run
ENDS = ("evaluations", "proposals", "calls", "dollars", "tokens", "minutes", "target", "patience")

Total = Literal["dollars", "tokens", "calls", "proposals", "evaluations"]  # limits on the whole history of a run


MAX_ROLE_BYTES = 4_000
"""The length of a role's words: they stand in every brief of its agents, about 1,000 tokens."""


class AgentSpec(Struct, frozen=True):
    """Agents of one kind or own class `FILE.py:Name`; several models, joined by commas, take turns as they earn.

    `role` names what they care for, `words` say it in each of their briefs; both are empty for agents without a role.
    """

    kind: str
    model: str = ""
    count: int = 1
    role: str = ""
    words: str = ""

    @classmethod
    def parse(cls, text: str, folder: Path = Path()) -> AgentSpec:
        """Read `KIND[@MODEL][:N][+ROLE.md]` or `FILE.py:Name[:N][+ROLE.md]`; `folder` is where ROLE.md is looked for.

        Only digits at the very end are N, so a model's name may hold `@` and `:`.

        Raises UsageError: when it is something else, or there is no role to read.
        """
        end = r"(?::(\d+))?(?:\+([^+]+\.(?:md|txt)))?"
        match = re.fullmatch(rf"([a-z0-9][a-z0-9_-]*)(?:@(.+?))?{end}", text)
        match = match or re.fullmatch(rf"(.+\.py:[A-Za-z_]\w*)(){end}", text)
        if not match or match[3] is not None and int(match[3]) == 0:
            raise UsageError(
                "expected --agent KIND[@MODEL][:N][+ROLE.md], such as editor@gpt-5:4 or mutator:2, or FILE.py:Name[:N] "
                f"for a class of your own, got {text!r}"
            )
        spec = cls(match[1], match[2] or "", int(match[3] or 1))
        return spec._in_role(folder / Path(match[4]).expanduser()) if match[4] else spec

    def _in_role(self, file: Path) -> AgentSpec:
        """The same agents with the role that a file describes. Raises UsageError: it cannot, or they read no brief."""
        if self.kind in ("mutator", "plain-loop"):
            raise UsageError(
                f"expected a role for agents that read a brief, which {self.kind} does not; name an editor"
            )
        if not re.fullmatch(r"[\w.-]{1,60}", file.stem):
            raise UsageError(f"expected a role's file with a name of letters and digits, got {str(file)!r}")
        try:
            with file.open("rb") as stream:
                content = stream.read(MAX_ROLE_BYTES + 1)
            words = content.decode().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"cannot read the role {file}, expected a file of text: {error}") from error
        if not words or len(content) > MAX_ROLE_BYTES or tokens(content):
            what = "one that holds what looks like a key" if tokens(content) else f"{len(content):,} bytes or more"
            raise UsageError(f"expected a role of 1 to {MAX_ROLE_BYTES:,} bytes without keys in {file}, got {what}")
        return replace(self, role=file.stem, words=words)

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> AgentSpec:
        """The agents that a journal tells of; a later version may tell more of them."""
        return cls(**{name: value for name, value in told.items() if name in cls.__struct_fields__})

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the models that it may ask, an empty one for the person's usual model."""
        return tuple(self.model.split(","))

    def __post_init__(self) -> None:
        if len(self.models) > 1 and (not all(self.models) or len(set(self.models)) < len(self.models)):
            raise UsageError(f"expected the names of models, each once, joined by commas, got {self.model!r}")

    @property
    def asks(self) -> bool:
        """Whether it asks a model; of coding programs those do that were given one."""
        return self.kind in CALLS or bool(self.model)

    @property
    def calls(self) -> int:
        """How often it asks a model for a proposal, at most."""
        return CALLS.get(self.kind, PROGRAM_CALLS if self.model else 0)

    def __str__(self) -> str:
        model, count = f"@{self.model}" if self.model else "", f":{self.count}" if self.count > 1 else ""
        return f"{self.kind}{model}{count}{self.role and f'+{self.role}'}"


class WorkerSpec(Struct, frozen=True):
    """A remote worker, as `--workers COMMAND[:N]` names it; `jobs` are N, None for as many as its machine has cores.

    `label` is what it is called on the screen: its name in the settings, or the command. `ray` in place of a
    command stands for N workers on a Ray cluster, each with one place.
    """

    command: str
    jobs: int | None = None
    label: str = ""

    @classmethod
    def parse(cls, text: str, known: Mapping[str, WorkerSpec] | None = None) -> WorkerSpec:
        """Read `COMMAND[:N]`, or `NAME[:N]` of one that is `known`. Only digits at the very end are N.

        Raises UsageError: when it is something else.
        """
        match = re.fullmatch(rf"({RAY_HEAD}|.*?)(?::(\d+))?", text, re.DOTALL)
        assert match  # anything is a command
        command, jobs = match[1].strip(), int(match[2]) if match[2] else None
        if named := (known or {}).get(command):
            return cls(named.command, jobs or named.jobs, command)
        return cls(command, jobs, command)

    @property
    def name(self) -> str:
        """What it is called."""
        return self.label or self.command

    @property
    def ray(self) -> str | None:
        """The address of a Ray cluster, empty for Ray's usual one; None for a command."""
        kind, _, address = self.command.partition(":")
        return address if kind == "ray" and not re.search(r"\s", address) else None

    @property
    def argv(self) -> list[str]:
        """The command in its words; no shell reads it."""
        return shlex.split(self.command)

    def __post_init__(self) -> None:
        try:
            words = self.argv
        except ValueError as error:
            raise UsageError(f"expected a command after --workers, got {self.command!r}: {error}") from None
        if queue := re.fullmatch(r"slurm(?::(\S+))?|sbatch(?::\S+)?", self.command):
            jobs, partition = self.jobs or 1, f" -p {queue[1]}" if queue[1] else ""
            raise UsageError(
                f"--workers {self.command} is gone; srun starts workers on Slurm: "
                f"--workers 'srun -n1 -c{jobs}{partition} evogit worker:{jobs}'"
            )
        if not words or self.jobs == 0:
            raise UsageError(
                "expected --workers COMMAND[:N], a command that runs `evogit worker` somewhere, such as "
                f"'ssh gpu1 evogit worker:4', got {self.command!r}"
            )


class RunLimits(Struct, frozen=True, kw_only=True):
    """The limits of a run (None: no limit); all but `minutes`, which are this engine's, count its whole history."""

    evaluations: int | None = None
    proposals: int | None = None
    minutes: float | None = None
    dollars: float | None = None
    tokens: int | None = None
    calls: int | None = None  # calls of models
    target: float | None = None
    # seconds of `minutes` that are kept for what is in flight and the holdout; None: a tenth, 60 at most
    grace: float | None = None
    beyond: bool = False  # whether a run goes on where the best value that is known from elsewhere is reached
    patience: int | None = None  # evaluations without a better candidate after which a run ends
    # noisy scores: limit on all repeats of the run; None: those that would-be bests need, and some at the end
    confirmations: int | None = None
    count_repeats: bool = False  # whether repeats use up `evaluations`, as they must where equal budgets are compared

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """The limits among the settings that a journal tells of."""
        return cls(**{name: value for name, value in settings.items() if name in cls.__struct_fields__})

    @property
    def kept(self) -> float:
        """Seconds of `minutes` in which nothing new begins."""
        seconds = 60 * (self.minutes or 0.0)
        return min(seconds / 10, LONGEST_GRACE) if self.grace is None else self.grace

    @property
    def asking(self) -> tuple[float | None, int | None, int | None]:
        """What bounds questions to models alone: dollars, tokens, calls."""
        return self.dollars, self.tokens, self.calls

    @property
    def ceilings(self) -> dict[Total, float | None]:
        """What bounds what models cost, and holds on until others are given."""
        return {name: getattr(self, name) for name in ("dollars", "tokens", "calls", "proposals")}

    @property
    def totals(self) -> dict[Total, float | None]:
        """The limits on the whole history of a run."""
        return {**self.ceilings, "evaluations": self.evaluations}

    @property
    def ends(self) -> dict[str, float | None]:
        """All that can end a run."""
        return {name: getattr(self, name) for name in ENDS}

    def __post_init__(self) -> None:
        if self.confirmations is not None and self.confirmations < 1:
            raise UsageError(f"expected confirmations above 0, got {self.confirmations}")
        for name, value in self.ends.items():
            if name != "target" and value is not None and not is_above_zero(value):
                raise UsageError(f"expected {name} above 0, got {value!r}")
        if self.grace is not None and not 0 <= self.grace < 60 * (self.minutes or 0.0):
            raise UsageError(f"expected grace of 0 seconds or more, and less than minutes, got {self.grace:g}")
        for name, value in (("minutes", self.minutes), ("dollars", self.dollars), ("target", self.target)):
            if value is not None and not (isinstance(value, SupportsFloat) and math.isfinite(value)):
                raise UsageError(f"expected {name} to be a finite number, got {value!r}")


class Settings(RunLimits, frozen=True, kw_only=True):
    """How a run is driven: the population, how it searches, where candidates run, and what ends it."""

    population: tuple[AgentSpec, ...] = (AgentSpec("mutator", count=2),)
    jobs: int = field(default_factory=lambda: os.cpu_count() or 1)
    # where candidates are evaluated beside this machine, or with 0 `jobs` instead of it
    workers: tuple[WorkerSpec, ...] = ()
    trust: Trust = "believe"  # whether what workers say is believed, or some of it evaluated again here
    selector: str = DEFAULT_SELECTOR  # how parents and survivors are chosen: a name with its options, or `FILE.py:Name`
    split: str = "train"
    seed: int = 0
    deterministic: bool = False
    join: bool = False
    detached: bool = False  # whether it goes on without the terminal that it was started from
    sandbox: str = "auto"
    remote: str = ""  # the Git server through which engines of other hosts take part, as for `git push`; empty: none do
    sync_every: float = 10.0  # seconds between two exchanges with it
    review_every: int | None = None  # evaluations after which it waits for a person; 0: after each stage of the task
    review_minutes: float | None = None  # after which it goes on alone; None: it waits
    panel: tuple[str, ...] = ()  # models that compare or review candidates, which the task names
    lessons_from: tuple[str, ...] = ()  # runs or folders whose lessons briefs have; none: those of this repository
    agreed: tuple[str, ...] = ()  # models, each `NAME at ENDPOINT`, that a person agreed to pay and to send files to

    @property
    def agents(self) -> int:
        """How many agents there are."""
        return sum(spec.count for spec in self.population)

    def __post_init__(self) -> None:
        RunLimits.__post_init__(self)
        if self.agents < 1:
            raise UsageError(f"expected agents above 0, got {self.agents}")
        if self.jobs < (0 if self.workers else 1):
            raise UsageError(f"expected jobs above 0, or 0 with workers, got {self.jobs}")
        if self.deterministic and (self.minutes is not None or self.join):
            raise UsageError("deterministic cannot go with minutes or join, which depend on the clock")
        if self.deterministic and self.remote:
            raise UsageError("deterministic cannot go with remote, as it depends on when others are heard of")
        if self.review_minutes is not None and (self.review_every is None or not is_above_zero(self.review_minutes)):
            raise UsageError(f"expected review-minutes above 0 with review-every, got {self.review_minutes:g}")
        if not 0 < self.sync_every < math.inf:
            raise UsageError(f"expected sync-every above 0 seconds, got {self.sync_every}")


def is_above_zero(value: Any) -> bool:
    """Whether somebody gave a number above 0."""
    return isinstance(value, SupportsFloat) and float(value) > 0
