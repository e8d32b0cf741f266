"""Reads task.toml and evogit.toml into a `Task`: what is evolved and how it is evaluated."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property, partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from evogit.config.instructions import instructs, names_dots
from evogit.config.names import REPOSITORY_FILE, TASK_FILE, TEMPLATES
from evogit.config.values import EvaluationCommand, Gate, MetricReader, Pairwise, Stage, is_safe_path, matches
from evogit.contained import file_at, walk
from evogit.core import HOLDOUT, ConfigError, Judged, Measure, Metric, NotFoundError, UsageError
from evogit.credentials import is_secret_name, secret_files
from evogit.sandbox import Environment, Limits
from evogit.trust import Claim, Trust

if TYPE_CHECKING:
    from evogit.config.task_file import EvaluatorTable, TaskTable
    from evogit.repository.trees import Trees


class Task(Struct, frozen=True, kw_only=True, dict=True):
    """What is evolved and how it is evaluated.

    `folder` holds the file it was read from; `seed` is the folder of the first candidate's files, None where the
    seed is a commit of the user's own repository. `withheld` paths are shown to no agent, and to no program but the
    command that evaluates; `excluded` ones never leave the repository. `secret` are the paths of the seed's files that
    hold credentials, known once the seed was `screened`; no agent is shown them, nor any other file with the name of
    such a one, unless `shared` covers it. `evaluator` is the trusted file, outside every
    candidate; where a `command` evaluates, it is the file that names it. With `pairwise` the command
    says only whether a candidate is valid; all of them are where its text is empty. Scores are noisy where `repeats` is
    above 0; with what the primary metric `measures` of the machine, values of different hours cannot be compared. With
    `fingerprints` a candidate that does the same as an earlier one is not evaluated again. `ignored_failures` are signs
    of failure beside a number that do not count. `variables` of the user's environment are the evaluator's, too. `plan`
    are the stages of the work. Agents may be told what was answered in `public` cases (True: all of "train" and of the
    stages before it). `review` names the model that reviews would-be bests. `untrusted` is the folder that the user
    must trust before anything that it names acts outside a sandbox; None once that is so.
    """

    name: str
    folder: Path
    goal: str
    editable: tuple[str, ...]
    withheld: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    secret: tuple[str, ...] = ()
    metrics: tuple[Metric, ...]
    splits: tuple[str, ...] = ("train",)
    gates: Mapping[str, Gate] = field(default_factory=dict)
    plan: tuple[Stage, ...] = ()
    evaluator: Path
    command: EvaluationCommand | None = None
    pairwise: Pairwise | None = None
    repeats: int = 0
    measures: Measure = ""
    fingerprints: bool = False
    ignored_failures: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    public: bool | tuple[str, ...] = False
    limits: Limits = field(default_factory=Limits)
    preload: tuple[str, ...] = ()
    environment: Environment = field(default_factory=Environment)
    seed: Path | None = None
    untrusted: Path | None = None
    review: str = ""

    @property
    def models(self) -> tuple[str, ...]:
        """The models that the task names: those that compare pairs, and the one that reviews would-be bests."""
        return tuple(filter(None, (*(self.pairwise.panel if self.pairwise else ()), self.review)))

    @property
    def primary(self) -> Metric:
        """The metric that candidates are ranked by."""
        return next(metric for metric in self.metrics if metric.primary)

    @property
    def paired(self) -> bool:
        """Return whether would-be bests are measured side by side with a reference."""
        return self.repeats > 0 and self.measures not in ("", "none")

    @property
    def metric_names(self) -> frozenset[str]:
        """The names of the metrics."""
        return frozenset(metric.name for metric in self.metrics)

    @property
    def judged(self) -> Judged:
        """Where scores come from."""
        if self.pairwise:
            return "pairs"
        return "inside" if self.command else "outside"

    @property
    def told_limits(self) -> Limits | None:
        """What agents are told of a candidate's limits."""
        return None if self.pairwise else self.limits

    @property
    def mending(self) -> str:
        """What a person does whose seed fails."""
        return f"fix it{' and commit that' if self.seed is None else ''}, or its evaluator, test it with `evogit check`"

    @property
    def purpose(self) -> str:
        """What agents are told to do: the goal, and by what criteria pairs are compared."""
        return f"{self.goal}\n\nWhat is better: {self.pairwise.criteria}" if self.pairwise else self.goal

    def purpose_in(self, number: int) -> str:
        """What agents are told to do in this stage; 0: before the first, or where there are none."""
        if not (number and self.plan):
            return self.purpose
        stage = self.plan[min(number, len(self.plan)) - 1]
        ends = f"\n\nThe stage ends when {stage.until}." if stage.until else ""
        return f"{self.purpose}\n\n### Now: stage {number} of {len(self.plan)}\n\n{stage.goal}{ends}"

    @property
    def evaluator_folder(self) -> Path:
        """The folder of the evaluator's own files; that of a command may be absent."""
        return self.folder / self.command.folder if self.command else self.evaluator.parent

    def evaluator_files(self) -> dict[str, tuple[bytes, int]]:
        """Return the evaluator's own files: path -> content and Git mode. Raises ConfigError: a link leads out."""
        return dict(_files(self.folder, self.evaluator_folder))

    def evaluator_secrets(self) -> dict[str, bytes]:
        """Return those not shared, which candidates of a command can read. Raises ConfigError: a link leads out."""
        folder = self.evaluator_folder.relative_to(self.folder).as_posix()
        found = {f"{folder}/{path}": data for path, (data, _) in self.evaluator_files().items()}
        secrets = {path: data for path, data in found.items() if not matches(path, self.shared)}
        return secrets | {f"{name}.env": f"{name}={os.environ.get(name, '')}".encode() for name in self.variables}

    @property
    def templates(self) -> Path:
        """The folder of the task's own templates of briefs, which may be absent."""
        return self.folder / TEMPLATES

    def check_trust(self, provider: str = "", model: str = "", *, evaluates: bool = True) -> None:
        """Refuse a stranger's task outside a sandbox. Raises UntrustedError: what would run, where, by which rights."""
        Trust.of_user().check(self.claims(provider, model, evaluates=evaluates))

    def claims(self, provider: str = "", model: str = "", *, evaluates: bool = True) -> Iterator[Claim]:
        """Yield what `check_trust` asks for."""
        if self.untrusted is None:
            return
        folder = str(self.untrusted.resolve())
        for effect in self._effects(provider, evaluates=evaluates):
            yield Claim("folder", folder, effect)
        if model:
            effect = f"its texts and files in {folder} are sent to {model}, which may cost money"
            yield Claim("sent", folder, effect)

    def _effects(self, provider: str, *, evaluates: bool) -> Iterator[str]:
        """Name what happens outside a sandbox when this task is used."""
        from evogit.sandbox.providers import isolates, may_need_image  # most tasks are trusted

        if evaluates and self.judged == "outside":
            given = f", and gets {', '.join(self.variables)} of your environment" if self.variables else ""
            yield f"its evaluator {self.evaluator} runs on this machine with your rights, outside the sandbox{given}"
        if not isolates(provider):
            rights = f"run on this machine with your rights: --sandbox {provider} isolates none"
            yield f"its programs in {self.untrusted} {rights}"
        if self.command and self.seed is None and self.command.folder != ".evogit" and self.evaluator_folder.is_dir():
            yield f"models may see all files of {self.evaluator_folder}, which lie beside candidates, committed or not"
        if self.environment.network:
            command = self.command.prepare if self.command else self.evaluator
            yield f"its `prepare` command has the network of this machine, with its local servers: {command}"
        box = self.environment
        if box.setup or (box.image and box.packages and may_need_image(provider)):
            made = "; ".join((*box.setup, *box.packages))
            image = box.image or "EvoGit's image"
            yield f"{image} is prepared as root in a container with this machine's network: {made}"

    def stages(self, split: str) -> tuple[str, ...]:
        """The splits that run before `split` is evaluated: those before "train", none before the holdout."""
        if split == HOLDOUT:
            return ()
        before = self.splits[: self.splits.index("train")]
        return before[: before.index(split)] if split in before else before

    def is_public(self, case: str, split: str) -> bool:
        """Whether agents may be told what a candidate answered in a case."""
        return split in (*self.stages("train"), "train") and (self.public is True or case in (self.public or ()))

    def draw(self, repeat: int) -> int:
        """Return which draw of inputs a repeat has: without `repeats` always the first, so that all scores compare."""
        return repeat if self.repeats else 0

    def check_split(self, split: str) -> None:
        """Raises UsageError: a command's split is misspelt; an evaluator in Python may know more than are listed."""
        if self.command is not None and split not in self.splits:
            raise UsageError(f"expected a split of {self.name} ({', '.join(self.splits)}), got {split!r}")

    @property
    def unseen(self) -> tuple[str, ...]:
        """Globs of the paths that no agent is shown and no candidate may change, whoever made it."""
        return (*self.withheld, *self.excluded)

    def is_visible(self, path: str) -> bool:
        """Whether agents may be shown `path`."""
        return not matches(path, self.unseen) and not self.is_secret(path)

    def is_secret(self, path: str) -> bool:
        """Return whether the file holds credentials, by its name or in the seed, and is not shared with agents."""
        return (path in self.secret or is_secret_name(path)) and not matches(path, self.shared)

    def screened(self, trees: Trees, tree: str) -> Task:
        """The task with the `secret` files of a seed in a repository; each is read to find tokens in it."""
        return self._screened(trees.readers(tree))

    def _screened(self, contents: Mapping[str, Callable[[], bytes]]) -> Task:
        secret = (path for path in secret_files(contents) if not matches(path, self.shared))
        screened = replace(self, secret=tuple(secret))
        vars(screened).update(vars(self))  # digests as they were read, which no secret changes
        return screened

    @property
    def withheld_for_credentials(self) -> list[str]:
        """The secret files of the seed that are not withheld or excluded anyway."""
        return [path for path in self.secret if not matches(path, self.unseen)]

    def is_judged(self, path: str) -> bool:
        """Whether the sandbox that evaluates is given `path`; a command sees what is withheld, but cannot change it."""
        return not matches(path, self.excluded if self.command else (*self.withheld, *self.excluded))

    def is_editable(self, path: str) -> bool:
        """Whether candidates may add, change or delete `path`, relative to the root of the tree.

        What agents or coding programs heed, such as AGENTS.md or CLAUDE.md in any folder, they may change only where
        `editable` names that file, not by a pattern. A name that begins with a dot has to stand in the pattern.
        """
        if instructs(path) and path not in self.editable:
            return False
        globs = [glob for glob in self.editable if matches(path, [glob])]
        return bool(globs) and names_dots(path, globs) and is_safe_path(path) and self.is_visible(path)

    def check_seed(self, paths: Collection[str]) -> None:
        """Raises ConfigError: agents could change no file of a seed commit with these paths."""
        if not any(map(self.is_editable, paths)):
            names = ", ".join(self.editable)
            covered = any(matches(path, self.editable) for path in paths)
            hidden = " but such as are withheld, excluded, settings of tools or secret" if covered else ""
            raise ConfigError(
                f"{self.folder / REPOSITORY_FILE}: editable: no file of the commit at HEAD matches {names}{hidden}"
            )

    def seed_files(self) -> dict[str, tuple[bytes, int]]:
        """Return path -> content and mode. Raises ConfigError: a link leads out; UsageError: the seed is a commit."""
        if self.seed is None:
            raise UsageError(f"the seed of {self.name} is a commit of {self.folder}, not a folder; read it from there")
        return dict(_files(self.folder, self.seed))

    @cached_property
    def evaluator_digest(self) -> str:
        """Identifies the way of evaluation: equal digests mean comparable scores (sha256, hex)."""
        metrics = [[m.name, m.direction, m.primary, m.aggregate] for m in self.metrics]
        gates = {split: str(gate) for split, gate in self.gates.items()}
        entry: Any = self.command.way if self.command else self.evaluator.name
        if self.pairwise:  # other judges are weighed by what they say, other criteria make other strengths
            entry = [entry, self.pairwise.criteria]
        if self.ignored_failures:
            entry = [entry, self.ignored_failures]
        if self.variables:
            entry = [entry, self.variables]
        return _digest([metrics, gates, self.splits, entry], _files(self.folder, self.evaluator_folder))

    @cached_property
    def digest(self) -> str:
        """Identifies the task: everything that defines it, but not its README (sha256, hex)."""
        paths = (self.editable, self.withheld, self.excluded)
        values = [self.name, self.goal, *paths, self.preload, self.evaluator_digest]
        metrics = [asdict(metric) for metric in self.metrics]
        for metric in metrics:
            del metric["scale"]  # that says how values are compared, not what they are
            del metric["bound"]  # that says when a run is over, and changes no score
        seed = _files(self.folder, self.seed) if self.seed else ()
        plan = [asdict(stage) for stage in self.plan]
        return _digest([values, metrics, asdict(self.limits), self.environment.described, *plan], seed)

    @cached_property
    def parts(self) -> dict[str, str]:
        """Return what `digest` covers, each with a digest: fields by name, the seed, the evaluator by its top."""
        values: dict[str, list[Any]] = {name: [getattr(self, name)] for name in self.__struct_fields__}
        for name in ("folder", "evaluator", "seed", "repeats", "measures", "fingerprints", "untrusted", "secret"):
            del values[name]  # no part of the way
        for name in ("shared", "ignored_failures", "variables", "plan", "public", "review"):  # not in earlier journals
            if not getattr(self, name):
                del values[name]
        if self.command and self.command.tests:  # in no `repr`, so that what earlier journals say still holds
            values["tests"] = [self.command.tests]
        if self.command and self.command.decimal:
            values["decimal"] = [self.command.decimal]
        if self.environment.links:
            values["links"] = list(self.environment.links)
        if self.seed:
            values["seed"] = list(_files(self.folder, self.seed))
        for name, file in _files(self.folder, self.evaluator_folder):
            values.setdefault(f"{self.evaluator_folder.name}/{name.split('/')[0]}", []).append((name, file))
        return {name: hashlib.sha256(repr(value).encode()).hexdigest()[:12] for name, value in values.items()}


def _files(task: Path, root: Path) -> Iterator[tuple[str, tuple[bytes, int]]]:
    """Yield path -> content and Git mode of a folder. Raises ConfigError: it has links out, or what is no file."""
    if not root.is_dir():
        return
    if root.is_relative_to(task) and root.resolve() != task.resolve() / root.relative_to(task):
        raise ConfigError(f"{root}: expected a folder of {task}, got a link; put a copy there")
    for name in sorted(walk(root), key=PurePosixPath):
        if "__pycache__" in name.split("/"):
            continue
        if not is_safe_path(name):
            raise ConfigError(f"{root / name}: expected a path that every system can have; rename it")
        yield name, file_at(root, name, whole=True)


def _digest(values: Any, files: Iterable[tuple[str, tuple[bytes, int]]]) -> str:
    listing = [[name, mode, hashlib.sha256(data).hexdigest()] for name, (data, mode) in files]
    return hashlib.sha256(json.dumps([values, listing], sort_keys=True).encode()).hexdigest()


# --- reading ----------------------------------------------------------------------------------------------------


def load_task(folder: Path) -> Task:
    """Read a task folder. Raises ConfigError: naming every problem; NotFoundError: there is no task.toml."""
    task = _load(folder / TASK_FILE)
    task = replace(task, seed=task.folder / "seed")
    if task.command:
        task = replace(task, withheld=(*task.withheld, f"{task.command.folder}/**"))
    seed = task.seed_files()
    task = task._screened({path: partial(bytes, content) for path, (content, _) in seed.items()})
    if not any(task.is_editable(path) for path in seed):
        raise ConfigError(f"{folder / TASK_FILE}: editable: no file of seed/ matches {', '.join(task.editable)}")
    return task


def load_repository_task(root: Path) -> Task:
    """Read a repository's evogit.toml. Raises ConfigError: naming every problem; NotFoundError: there is none."""
    task = _load(root / REPOSITORY_FILE)
    own = f"{task.evaluator_folder.relative_to(task.folder).as_posix()}/**"
    ours = (REPOSITORY_FILE, f"{TEMPLATES}/**")
    if task.command:
        return replace(task, withheld=(*task.withheld, own), excluded=(*task.excluded, *ours))
    return replace(task, withheld=(*task.withheld, own, *ours))


def _load(file: Path) -> Task:
    from evogit.config.task_file import read  # its pydantic takes 0.1 s, and evaluator processes are given their task

    if not file.is_file():
        how = "`evogit new NAME` makes a task folder" if file.name == TASK_FILE else "`evogit init` makes one"
        raise NotFoundError(f"there is no {file.name} in {file.parent}; {how}")
    folder = file.parent.resolve()
    return _task(read(file, folder), file.name, folder)


def _command(table: EvaluatorTable) -> EvaluationCommand | None:
    if table.kind == "python":
        return None
    reads = {metric: MetricReader.parse(text) for metric, text in table.read.items()}
    same = ("directory", "folder", "prepare", "tests", "retry", "profile", "decimal", "same_output")
    more = {name: getattr(table, name) for name in same}
    return EvaluationCommand(text=table.command, reads=reads, same_inputs=tuple(table.same_inputs), **more)


WAITS = 3
"""Times its CPU time that a request may take by the wall clock by default: others may be at work on the machine."""

_NOVELTY = {"python": "fingerprint", "command": "tree", "judge": "tree"}
"""What is told apart by default: a command may read the files themselves, and so do those who compare them."""


def _measures(table: TaskTable) -> Measure:
    """Return what the primary metric measures: as declared, or time if a clock gives it or runs are exclusive."""
    name, metric = next((n, m) for n, m in table.metrics.items() if m.primary or len(table.metrics) == 1)
    clock = table.evaluator.read.get(name, "").partition(":")[0] in ("cpu", "wall") or table.sandbox.exclusive
    return metric.measures or ("time" if clock else "")


def _metrics(table: TaskTable, measures: Measure) -> Iterator[Metric]:
    """The metrics; noise of what is measured of the machine is in proportion to the values."""
    for name, metric in table.metrics.items():
        primary = metric.primary or len(table.metrics) == 1
        clock = table.evaluator.read.get(name) in ("cpu", "wall") or (primary and measures not in ("", "none"))
        plain = metric.model_dump(exclude={"measures", "primary", "scale"})
        yield Metric(name=name, **plain, primary=primary, scale=metric.scale or ("log" if clock else ""))


def _task(table: TaskTable, name: str, folder: Path) -> Task:
    measures, box, way = _measures(table), table.sandbox, table.evaluator
    cpu = box.cpu or box.timeout or Limits().cpu
    wall = box.timeout or WAITS * cpu
    limits = Limits(
        wall=wall,
        cpu=cpu,
        total=box.total or max(Limits().total, 10 * wall),
        memory=box.memory,
        processes=box.pids,
        disk=box.disk,
        output=box.output,
    )
    return Task(
        name=table.name,
        folder=folder,
        goal=table.goal,
        editable=tuple(table.editable),
        withheld=tuple(table.withheld),
        excluded=tuple(table.excluded),
        shared=tuple(table.shared),
        metrics=tuple(_metrics(table, measures)),
        splits=tuple(table.evaluator.splits),
        gates={split: Gate.parse(text) for split, text in table.evaluator.gate.items()},
        plan=tuple(Stage(goal=each.goal.strip(), until=each.until, budget=each.budget) for each in table.stages),
        evaluator=folder / (table.evaluator.file or name),
        command=_command(table.evaluator),
        pairwise=Pairwise(way.criteria.strip(), tuple(way.panel)) if way.kind == "judge" else None,
        repeats=table.evaluator.repeats,
        measures=measures,
        fingerprints=(table.evaluator.novelty or _NOVELTY[table.evaluator.kind]) == "fingerprint",
        ignored_failures=tuple(table.evaluator.ignored_failures),
        variables=tuple(table.evaluator.environment),
        public=way.public if isinstance(way.public, bool) else tuple(way.public),
        review=table.review.model if table.review else "",
        limits=limits,
        preload=tuple(box.preload),
        environment=Environment(
            image=box.image,
            packages=tuple(box.packages),
            setup=tuple(box.setup),
            isolation=box.isolation,
            runtime=box.runtime,
            cpus=box.cpus,
            gpus=box.gpus,
            exclusive=box.exclusive,
            network=box.network,
            links=tuple(f"{path}={leads}" for path, leads in box.links.items()),
        ),
    )
