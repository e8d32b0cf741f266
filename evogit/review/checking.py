"""Evaluates a task's seed, as a run would, and says what is wrong with the task."""

from __future__ import annotations

import asyncio
import math
import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from evogit.adopt.foreign_task import kept_folder
from evogit.adopt.notes import admitted, is_scored
from evogit.adopt.packages import STAND_INS
from evogit.agents.briefs.digest import under_load
from evogit.config import REPOSITORY_FILE, TASK_FILE, Task
from evogit.config.values import REPEATS, measure_of
from evogit.core import HOLDOUT, Evaluation, Evidence, Files
from evogit.engine.profiles import Profile, keep_profile, profile
from evogit.evaluation.evaluator import Evaluator
from evogit.evaluation.evaluator_process import missing_variable
from evogit.evaluation.inputs import PUBLIC
from evogit.evaluation.seed_files import packed_seed, seed_of
from evogit.history.scores import Scores
from evogit.history.state import ROUNDING
from evogit.repository import Repository
from evogit.review.seed_numbers import unnoticed
from evogit.sandbox.archive import pack
from evogit.sandbox.providers import isolating, runs_here
from evogit.text import one_line

Evaluate = Callable[..., Coroutine[Any, Any, tuple[Evaluation, Evidence]]]
"""Evaluates the seed; `repeat` is which time it is."""

CLOSE = 1e-4
"""Relative difference up to which a published value counts as the measured one."""

LIMITS = {
    "timeout": "timeout",
    "out-of-memory": "memory",
    "process-limit": "pids",
    "disk-limit": "disk",
    "output-limit": "output",
}
"""Status -> the key in [sandbox] that it is about."""


AGAIN = 2
"""How often a valid seed is evaluated once more, at least, to see whether its scores repeat; one that failed once, and
so is one that is slow unless its two scores differ."""
SLOW = 30.0
"""Seconds that an evaluation takes at least for which each further one is worth a thought."""


class SeedEvaluation(Struct, frozen=True):
    """The seed's evaluation on one split; `timing` says how CPU is known, `again` what came of evaluating it again.

    `logs` are what the evaluator said in each of all these evaluations; `blind` is a sentence if the evaluator does not
    notice that a seed is broken.
    """

    evaluation: Evaluation
    evidence: Evidence
    provider: str
    timing: str
    again: tuple[Evaluation, ...] = ()
    logs: tuple[str, ...] = ()
    blind: str = ""
    profile: Profile = Profile()

    @property
    def slow(self) -> bool:
        """Whether it takes so long that it should not be evaluated more often than needed."""
        return self.evaluation.cost.wall >= SLOW

    @property
    def times(self) -> int:
        """How often it was evaluated."""
        return 1 + len(self.again)

    @property
    def failed(self) -> tuple[Evaluation, ...]:
        """Those of all evaluations that failed."""
        return tuple(each for each in (self.evaluation, *self.again) if not each.ok)

    @property
    def flaky(self) -> bool:
        """Whether it failed now and then."""
        return 0 < len(self.failed) < self.times

    def spread(self, metric: str) -> tuple[float, float] | None:
        """The least and the greatest value of a metric; None where all are alike, or nothing was evaluated again."""
        values = [each.metrics[metric] for each in (self.evaluation, *self.again) if each.ok]
        least, greatest = min(values, default=0.0), max(values, default=0.0)
        return None if math.isclose(least, greatest, rel_tol=ROUNDING) else (least, greatest)

    def told_spread(self, metric: str) -> str:
        """How far a metric spreads, as the end of a sentence; empty where it does not."""
        if (found := self.spread(metric)) is None:
            return ""
        least, greatest = found
        middle = abs(least + greatest) / 2
        apart = 100 * (greatest - least) / middle if middle else 0.0
        told = f", {apart:.0f} % apart" if apart >= 10 else f", {apart:.2g} % apart" if apart else ""
        return f"was {least:.6g} to {greatest:.6g} in {self.times} evaluations{told}"


async def judge_seed(
    task: Task, splits: Sequence[str], provider: str, *, again: bool = False, break_it: bool = False
) -> AsyncIterator[SeedEvaluation]:
    """Evaluate the task's seed on each split in turn, on inputs that everybody can make, so that it repeats anywhere.

    `again`: on train, or else the first of them, its repeats too; where the task has none, twice more the same.
    `break_it`: there a copy of the seed that is broken, too. Raises EvoGitError: when the evaluator or the sandbox
    cannot be used at all.
    """
    with tempfile.TemporaryDirectory(prefix="evogit-check-") as folder:
        repository, tree = seed_of(task, Path(folder) / "seed")
        base = await packed_seed(repository, tree, task)
        files = Files(pack({}), (), base)
        jobs = 2 if again and task.command else 1
        async with Evaluator(task, provider=provider, jobs=jobs, drawing=PUBLIC) as evaluator:
            twice = "train" if "train" in splits else splits[0]
            for split in splits:
                look = again and split == twice and task.pairwise is None
                evaluate = partial(evaluator.evaluate, tree, files, split=split)
                (evaluation, evidence), *found = await _evaluated(task, evaluate, look)
                logs = (evidence.log, *(later.log for _, later in found))
                repeated = tuple(each for each, _ in found)
                judged = SeedEvaluation(evaluation, evidence, evaluator.provider, evaluator.timing, repeated, logs)
                if break_it and split == twice and not judged.failed and task.pairwise is None:
                    values = [each.metrics[task.primary.name] for each in (evaluation, *repeated)]
                    contents = repository.trees.files(tree, task.is_editable)
                    sentence = await unnoticed(task, evaluator, base, contents, split, values)
                    judged = replace(judged, blind=sentence)
                if look and evaluation.ok:
                    run = partial(evaluator.run, files, laid=True)
                    judged = replace(judged, profile=await profile(task, repository, tree, run))
                    keep_profile(task, tree, judged.profile.text)
                yield judged


async def _twice(evaluate: Evaluate, repeat: int) -> list[tuple[Evaluation, Evidence]]:
    """Both at a time; the first alone where it broke a limit, which takes long, or could not be evaluated at all."""
    first, second = asyncio.create_task(evaluate()), asyncio.create_task(evaluate(repeat=repeat))
    try:
        found = await first
        alone = not found[0].counts or found[0].status in LIMITS
        return [found] if alone else [found, await second]
    finally:
        for task in (first, second):
            task.cancel()
        await asyncio.gather(first, second, return_exceptions=True)


async def _evaluated(task: Task, evaluate: Evaluate, look: bool) -> list[tuple[Evaluation, Evidence]]:
    again = range(1, 1 + max(task.repeats, AGAIN)) if task.repeats else [0] * AGAIN
    if not look:
        return [await evaluate()]
    found = await _twice(evaluate, again[0])
    if len(found) > 1 and not any(evaluation.ok for evaluation, _ in found):
        found.append(await evaluate(repeat=again[0]))  # with nothing beside it: tests may measure time
    if len(found) < 2 or not all(evaluation.ok for evaluation, _ in found):
        return found
    slow = any(evaluation.cost.wall >= SLOW for evaluation, _ in found)
    one, two = (evaluation.metrics.get(task.primary.name, math.nan) for evaluation, _ in found)
    left = again[1:] if not slow else [] if math.isclose(one, two, rel_tol=ROUNDING) else again[1:2]
    return found + await asyncio.gather(*(evaluate(repeat=each) for each in left))


def problems(task: Task, judged: Sequence[SeedEvaluation]) -> list[str]:
    """What a run of this task would suffer from, one sentence each; empty when all is well."""
    evaluations = [each.evaluation for each in judged if not each.flaky]
    found = [f"{each.split}: {_failure(each)}: {each.reason}" for each in evaluations if not each.ok]
    for each in judged:
        found += [*_unsteady(task, each), *_admitted(task, each)]
        if each.profile.failure:
            found.append(unprofiled(task, each))
        if each.evaluation.ok and each.evaluation.split == "train":
            found += _wrong_baselines(task, each)
    return found


def _failure(evaluation: Evaluation) -> str:
    if evaluation.counts:
        return f"the seed fails ({evaluation.status})"
    return "the seed was not measured" if evaluation.status == "not-measured" else "the evaluator fails"


SYSTEMS = frozenset(
    ["ale_bench", "codeevolve", "coral", "cobench", "frontier_cs", "funsearch", "gepa", "llm4ad", "weco"]
)
"""Modules of other systems that their evaluators import."""
ABSENT = {
    r"name resolution|getaddrinfo|resolve host|network is unreachable|urlopen error|ConnectionError|max retries|"
    r"\bdial tcp\b|no such host|go: downloading|failed to (?:download|fetch)|npm ERR! network": (
        "There is no network in the sandbox."
    ),
    r"CUDA (?:is )?not available|compiled with CUDA|NVIDIA driver|no CUDA GPUs": (
        "There is no graphics processor in the sandbox."
    ),
    r"(?:missing|invalid|provide|requires?|KeyError|set)\b.{0,60}api[ _-]?key|"
    r"api[ _-]?key.{0,60}(?:missing|not (?:set|found|provided)|required|invalid|must|empty)": (
        "There is no network in the sandbox, nor a key of yours."
    ),
    r"FileNotFoundError": "Only the files of the task's folder come along, and paths begin there.",
}
"""What errors say -> what is not there for tasks of other systems."""


def _admitted(task: Task, judged: SeedEvaluation) -> list[str]:
    if not judged.evaluation.ok or not is_scored(task):
        return []
    text = "\n".join([*judged.evidence.feedback.values(), judged.evidence.stderr.decode(errors="replace")])
    told, absent = admitted(text), _absent(task, judged.provider, text)
    return [f"{judged.evaluation.split}: {told}" + (f". {absent}" if absent else "")] if told else []


def _absent(task: Task, provider: str, said: str) -> str:
    if module := re.search(r"No module named '([\w.]+)'", said):
        if (system := module[1].partition(".")[0]) in STAND_INS:
            return (
                f"A stand-in takes the place of {system}: it has what evaluators mostly call, and no {module[1]}. "
                "Copy what is used of that beside the evaluator."
            )
        if is_scored(task) and system in {Path(path).stem for path in task.editable}:
            return (
                f"{system} is the program itself, which the evaluator imports by its name: it has to load the path "
                "that it is given, because a candidate lies elsewhere."
            )
        if system in SYSTEMS:
            return (
                f"{system} belongs to another system, of which only the evaluator's files are here: no package helps. "
                "Copy what is used of it beside the evaluator."
            )
        return (
            f"Name the package that has {module[1]} in a requirements.txt beside the evaluator. Of what lies above the "
            "task's folder, only modules come along that an evaluator imports from the folder above."
        )
    if PROGRAM.search(said) or MISSING.search(said):
        return _lacking(provider, said)
    return next((sentence for pattern, sentence in ABSENT.items() if re.search(pattern, said, re.IGNORECASE)), "")


def _unsteady(task: Task, judged: SeedEvaluation) -> list[str]:
    split, metric = judged.evaluation.split, task.primary.name
    if judged.flaky:
        return [f"{split}: {flaky(task, judged)}"]
    if judged.failed or not (spread := judged.told_spread(metric)):
        return []
    found = []
    if not task.repeats:
        found.append(
            f"{split}: {metric} of the seed {spread}, so scores are noisy: "
            f"set repeats = {REPEATS} or so in [evaluator] of {_file(task)}"
        )
    if not task.measures and (kind := measure_of(metric)):
        found.append(
            f"{split}: {metric} seems to depend on the machine's pace: set measures = '{kind}' in [metrics.{metric}] "
            f"of {_file(task)}, so that gains are measured side by side, or 'none'"
        )
    return found


def flaky(task: Task, judged: SeedEvaluation) -> str:
    """What is wrong with a seed that fails now and then, and what to do: sentences."""
    failed = judged.failed
    said = (
        f"the seed is flaky: it failed {len(failed)} of {judged.times} times ({failed[0].status}: {failed[0].reason})"
    )
    if task.command is None:
        return said
    more = f"raise retry = {task.command.retry}" if task.command.retry else "set retry = 1"
    remedy = f"fix that, or {more} in [evaluator] of {_file(task)}, so that what fails is run again"
    alone = "" if task.environment.exclusive else f". Tests that measure time need a core of their own: {EXCLUSIVE}"
    return f"{said}; {remedy}{alone}"


def unprofiled(task: Task, judged: SeedEvaluation) -> str:
    """Return sentences on a profile command that fails: the problem, and what to do."""
    return (
        f"no profile ({judged.profile.failure}), so agents do not see where the time goes: correct `profile` in "
        f"[evaluator] of {_file(task)}, which runs as `command` does, or remove it"
    )


EXCLUSIVE = "exclusive = true in [sandbox]"
"""The key that keeps EvoGit's other processes off the core of what is measured."""


def exposed(task: Task) -> str:
    """Return a sentence on a holdout that candidates can read while they are evaluated on "train"; empty if none is."""
    files = task.evaluator_files() if task.command and HOLDOUT in task.splits else {}
    if not files or any(path.startswith(f"{HOLDOUT}/") for path in files):
        return ""
    folder = task.evaluator_folder.name
    return (
        f"candidates can read and print all of {folder}/ while they are evaluated on train, and agents are shown what "
        f"they print: move what the {HOLDOUT} compares with into {folder}/{HOLDOUT}/, which is there for it alone"
    )


def advice(task: Task, judged: SeedEvaluation) -> str:
    """What to change where the seed fails: a sentence; empty where its reason says enough."""
    status, reason = judged.evaluation.status, judged.evaluation.reason
    if status == "not-measured":
        return "Try again when the machine is less busy, or give it more with timeout in [sandbox]."
    said = f"{reason}\n{judged.evidence.log}\n{judged.evidence.stderr.decode(errors='replace')}"
    if reason.startswith("prepare() failed") and "not found" not in said:
        return (
            "`prepare` runs on the files that are committed, in the sandbox, with an empty home, and with a network "
            "only where [sandbox] says network = true."
        )
    if reason.startswith("a failure is told beside"):
        return f"If such a number counts, name the sign in ignored_failures, in [evaluator] of {_file(task)}."
    if task.folder.is_relative_to(kept_folder()) and (
        sentence := _of_another_system(task, status, judged.provider, said)
    ):
        return sentence
    if judged.evaluation.judged == "outside" and (sentence := missing_variable(said)):
        return sentence
    if task.seed is None and (sentence := _left_behind(task, said)):
        return sentence
    if status in LIMITS:
        return f"Give it more with {LIMITS[status]} in [sandbox], or evaluate by a command that needs less."
    if re.search(r"\bnot found\b|No module named|Cannot find (module|package)|exit code 127", said):
        return _lacking(judged.provider, said)
    if load := under_load(judged.evaluation):
        return (
            f"It failed{load}. If its tests measure time, try again on a calm machine, and set retry = 1 in "
            f"[evaluator] or {EXCLUSIVE}."
        )
    if "exit code" in reason:
        return (
            "It has only the files that are committed, no network, and a home that is empty. If it fails in a fresh "
            'clone too and agents are to fix that, let a metric read "exit" or "junit:FILE".'
        )
    if status == "invalid" and judged.evaluation.judged == "inside":
        return "Change how the number is read ([evaluator.read]) or what the command prints."
    return ""


NAMED_PATH = re.compile(r"['\"]([^'\"\n]{1,300})['\"]|(?:^|\s)((?:[\w.-]+/)*[\w.-]+)(?=: No such file|$)", re.MULTILINE)
"""A path in an error: in quotes, or before what a shell says."""
GIT_MISSING = re.compile(
    r"not a git repository|\bgit\b.{0,80}exit status 128|InvalidGitRepositoryError|unable to detect version",
    re.IGNORECASE,
)


def _left_behind(task: Task, output: str) -> str:
    """Return a sentence on what the folder has and the sandbox has not: files that Git ignores, and the repository."""
    if GIT_MISSING.search(output):
        return (
            "Candidates are files: the sandbox has no Git repository. Leave out the tests that ask Git, or let "
            "`prepare` in [evaluator] make one: git init && git add -A && git -c user.name=x -c user.email=x commit "
            "-m x. A version that comes from tags is given by SETUPTOOLS_SCM_PRETEND_VERSION=1.2 before a command."
        )
    names = {quoted or plain for quoted, plain in NAMED_PATH.findall(output)}
    below = [name for name in sorted(names) if not name.startswith("/") and ".." not in name.split("/")]
    there = [name for name in below if (task.folder / name).is_file()]
    if not (ignored := Repository.discover(task.folder).ignores(there) if there else []):
        return ""
    return (
        f"{one_line(', '.join(ignored[:3]), 300)} is here but ignored by Git, so no candidate has it: let `prepare` in "
        f"[evaluator] of {_file(task)} make it, or put it into the evaluator's folder ({task.evaluator_folder.name}/) "
        "and copy it from there."
    )


def _of_another_system(task: Task, status: str, provider: str, said: str) -> str:
    """The same where the task is another system's, whose files say what happens; empty where a program is missing."""
    if status in LIMITS:
        return (
            "There is no network, for which some programs wait. If it needs more, `evogit new --from` writes a task "
            f"whose {LIMITS[status]} in [sandbox] can be raised."
        )
    if sentence := _absent(task, provider, said):
        return sentence
    if "left no reward" in said and not MISSING.search(said):
        return (
            "The verifier itself wrote no reward: it ended before, and what it printed tells why. It has no network, "
            "and of its image what no note says to be missing."
        )
    if UNTOLD.search(said):
        return (
            "It may expect arguments or an input, and gets neither: `evogit new --from` writes a task whose `command` "
            "in [evaluator] can have them."
        )
    return "" if MISSING.search(said) else "Its own evaluator refuses the seed: what it printed tells why."


MISSING = re.compile(r"^(?:\S+: )?(?:\d+: |line \d+: )*([\w.+-]+): (?:command )?not found$", re.MULTILINE)
"""How shells say that there is no such program."""
UNTOLD = re.compile(
    r"it printed nothing|arguments? (?:are|is) required|^usage: |EOFError", re.MULTILINE | re.IGNORECASE
)
"""What is said where a program misses its arguments, or its input."""
PROGRAM = re.compile(r"No such file or directory: '([\w+-]+)'")
"""How Python says it: a file mostly has an ending, or lies in a folder."""


def _lacking(provider: str, said: str) -> str:
    found = MISSING.search(said) or PROGRAM.search(said)
    end = "Nothing of your home is there, nor what Git ignores."
    if not runs_here(provider):
        lacks = found[1] if found else "a program or a package, as it seems"
        how = (
            'name it in [sandbox] packages, such as ["pytest"] or ["apt:gcc"], or install it by prepare in [evaluator]'
        )
        return f"The sandbox lacks {lacks}: {how}. {end}"
    if found is None:
        return (
            'The sandbox seems to lack a program or package: name Python packages in [sandbox] packages (["pytest"]), '
            f"install others by prepare in [evaluator], and programs on this machine, into /usr. {end}"
        )
    yours = shutil.which(found[1])
    why = f": it has what is in /usr of this machine, and yours is {yours}" if yours else ", and so does this machine"
    imaged = " or ".join(name for name in isolating() if not runs_here(name))
    how = f"Install it for all users (Debian: apt-get install), or use --sandbox {imaged}"
    return f"The sandbox lacks {found[1]}{why}. {how}. {end}"


def _file(task: Task) -> str:
    if task.folder.is_relative_to(kept_folder()):
        return f"the {TASK_FILE} that `evogit new --from` writes"
    return task.folder.name + "/" + (TASK_FILE if task.seed else REPOSITORY_FILE)


def _wrong_baselines(task: Task, judged: SeedEvaluation) -> list[str]:
    """Baselines that are not what the seed measures; within the 95 % interval of its repeats where it is noisy."""
    scores = Scores.of(task.metrics, judged.evaluation.split, task.repeats)
    for evaluation in (judged.evaluation, *(judged.again if task.repeats else ())):
        scores.record("seed", evaluation)
    found = scores.evaluation("seed")
    values = found.metrics if found and found.ok else judged.evaluation.metrics
    said = []
    for metric in task.metrics:
        value, noise = values[metric.name], scores.margin("seed", None, metric.name) or 0.0
        baseline = metric.baseline
        if baseline is None or abs(baseline - value) <= noise or math.isclose(baseline, value, rel_tol=CLOSE):
            continue
        within = f", give or take {noise:.3g}" if noise and math.isfinite(noise) else ""
        said.append(
            f"metrics.{metric.name}.baseline is {metric.baseline:g}, but the seed measures {value:.6g} on train"
            f"{within}; write that into {_file(task)}"
        )
    return said
