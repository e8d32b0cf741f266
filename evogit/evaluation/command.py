"""Evaluates by a shell command that runs in the candidate's own sandbox, and reads numbers from what it did.

Such scores can be forged by the code that they are about: an evaluation says so (`judged: inside`).
"""

from __future__ import annotations

import re
import signal
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager

from evogit.config import Task
from evogit.config.values import ALL, SEED, STRENGTH, EvaluationCommand, MetricReader, matches
from evogit.core import BaseFiles, ConfigError, Files
from evogit.evaluation.command_output import Output, Source, shown_lines
from evogit.evaluation.junit import Report
from evogit.evaluation.program import CandidateFailedError, Case, Invalid, Program, Ran
from evogit.sandbox.archive import covered, entries_of, laid_over

SCRIPT = (
    'cd -- "$1" || exit 126; EVOGIT_SPLIT="$2"; export EVOGIT_SPLIT; command=$3; shift 3; '
    'rm -f -- "$@"; exec sh -c "$command"'
)
"""For the shell: directory, split, command, and the reports, of which none may be left from an earlier run."""
TESTS, COMMAND = "the tests", "the command"
"""What may fail."""
LAST_LINES, LONGEST_SHOWN, LONGEST_TAIL = 60, 500, 6000
"""How much of a command's output agents are shown: lines, characters of a line, and of all."""
LONGEST_READING = 5.0
"""Seconds of CPU for reading the numbers: patterns must not take hours on what a candidate prints."""
LINES_BESIDE = 20
"""Last lines of each stream that are told beside failures, which they mostly repeat."""


class CommandEvaluator:
    """The evaluator of a task that a command evaluates: its `evaluate` and `prepare`, as a Python file has them."""

    def __init__(self, task: Task, command: EvaluationCommand) -> None:
        """Read the evaluator's folder, once for all. Raises ConfigError when a link in it leads elsewhere."""
        self._task = task
        self._command = command
        own = task.evaluator_files().items()
        self._own = {f"{command.folder}/{path}": (data, mode == 0o100755) for path, (data, mode) in own}
        tops = {path: path.removeprefix(f"{command.folder}/").partition("/") for path in self._own}
        self._apart = {path: top for path, (top, below, _) in tops.items() if below and top in task.splits}
        self._reports = [read.what for read in command.reads.values() if read.how == "junit"]
        self._laid: dict[str, BaseFiles] = {}
        self.skips_tests = False
        """True while only the command is to run, as the same files passed the tests."""
        self._ignored: tuple[str, ...] = task.ignored_failures

    def evaluate(self, program: Program, split: str) -> Iterator[Case]:
        """Run the tests and the command, retried as allowed, and read every metric. Raises CandidateFailedError."""
        what, ran = self._tried(program, split)
        for _ in range(self._command.retry):
            if ran.code == 0:
                break
            print(f"{what} {_ending(ran)}; all was run again, from the candidate's files alone")
            with program.anew() as life:
                what, ran = self._tried(life, split)
        if what == TESTS and ran.code != 0:
            raise Invalid(f"{what} {_ending(ran)}", _tail(ran))
        with in_time(LONGEST_READING):
            case = case_of(self._command, ran, self._ignored)
        yield case

    def validate(self, program: Program, split: str) -> Iterator[Case]:
        """Yield cases worth the same, for candidates compared by pairs. Raises as `evaluate` does."""
        for case in self.evaluate(program, split) if self._command.text else [Case("valid")]:
            yield Case(case.name, case.feedback, **{STRENGTH: 0.0})

    def _tried(self, program: Program, split: str) -> tuple[str, Ran]:
        """How the command ended, or the tests before it where they fail; and which of the two it is."""
        if self._command.tests and not self.skips_tests:
            ran = self._run(program, self._command.tests, split, ())
            if ran.code != 0:
                return TESTS, ran
        return COMMAND, self._run(program, self._command.text, split, self._reports)

    def prepare(self, program: Program) -> None:
        """Run the command that prepares the seed. Raises CandidateFailedError when it fails."""
        ran = self._run(program, self._command.prepare, "", ())
        if ran.code != 0:
            raise Invalid(f"evaluator.prepare {_ending(ran)}", _tail(ran))

    def _run(self, program: Program, text: str, split: str, reports: Iterable[str]) -> Ran:
        paths = list(reports)
        argv = ["sh", "-c", SCRIPT, "sh", self._command.directory or ".", split, text, *paths]
        ran = program.run(argv, out=[_place(self._command, path) for path in paths])
        if ran.breach:
            raise CandidateFailedError(ran.breach, ran.detail or f"the command broke a limit: {ran.breach}", _tail(ran))
        return ran

    # --- the files that it sees -----------------------------------------------------------------------------------

    def lay(self, files: Files, split: str) -> Files:
        """The candidate's files on a base that has the evaluator's own folder too, with all that is withheld read-only.

        What a folder there holds that is named after a split is laid for that split alone, and for those that it is a
        stage of.

        Raises:
            CandidateFailedError: when the candidate has something in the place of what is read-only.
            ConfigError: when the seed has.
        """
        assert files.base  # the engine has seen to that
        splits = (*self._task.stages(split), split) if self._apart else ()
        key = "+".join((files.base.id, self._task.evaluator_digest, *splits))
        if key not in self._laid:
            self._laid = {known: laid for known, laid in self._laid.items() if known.startswith(f"{files.base.id}+")}
            self._laid[key] = self._lay(files.base, key, splits)
        base = self._laid[key]
        roots = set(base.readonly)
        changed = [*(entry[0] for entry in entries_of(files.changed)[0]), *files.removed]
        ignored = self._task.ignored_failures
        self._ignored = (*ignored, ALL) if SEED in ignored and not changed else ignored
        for path in changed:
            if covered(path, roots) or any(root.startswith(f"{path}/") for root in roots):
                raise Invalid(f"{path} is in the way of what the evaluator needs there ({', '.join(sorted(roots))})")
        return Files(files.changed, files.removed, base)

    def _lay(self, base: BaseFiles, key: str, splits: Collection[str]) -> BaseFiles:
        own = {path: file for path, file in self._own.items() if self._apart.get(path, "") in ("", *splits)}
        archive = laid_over(base.archive, self._command.folder, own)
        entries, _ = entries_of(archive)
        wholes = [glob.removesuffix("/**") for glob in self._task.withheld if re.fullmatch(r"[^*?]+/\*\*", glob)]
        readonly = {whole for whole in wholes if any(path.startswith(f"{whole}/") for path, *_ in entries)}
        readonly -= {whole for whole in readonly if covered(whole.rpartition("/")[0], readonly)}
        for path, kind, *_ in entries:
            if matches(path, self._task.withheld) and not covered(path, readonly):
                if kind == "link":
                    raise ConfigError(
                        f"{self._task.evaluator}: withheld: {path} is a symbolic link, which cannot be made read-only; "
                        "withhold the whole folder that it is in (FOLDER/**), or exclude it"
                    )
                readonly.add(path)
        return BaseFiles(key, archive, tuple(sorted(readonly)))


# --- reading --------------------------------------------------------------------------------------------------------


@contextmanager
def in_time(seconds: float) -> Iterator[None]:
    """Raise CandidateFailedError after this CPU time, even inside a regular expression; for the main thread."""

    def late(*_: object) -> None:
        raise Invalid(f"its output cannot be read within {seconds:g} s of CPU time")

    before = signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def case_of(command: EvaluationCommand, ran: Ran, ignored: Collection[str] = ()) -> Case:
    """The one case of an evaluation: every metric, and what agents are told; `ignored` are signs of failure.

    Raises:
        CandidateFailedError: when the command failed though no metric allows for it, a metric cannot be read, or a
            failure is told beside it.
    """
    ways = {read.how for read in command.reads.values()}
    if ran.code != 0 and not ways & {"exit", "junit"}:
        raise Invalid(f"{COMMAND} {_ending(ran)}", _tail(ran))
    names = {read.what for read in command.reads.values() if read.how == "junit"}
    reports = {name: Report(name, ran.files.get(_place(command, name))) for name in names}
    ignored = (*ignored, "traceback") if ways & {"exit", "junit"} else ignored  # failing tests are measured themselves
    output = Output(command, ran.stdout, ran.stderr, ignored=ignored)
    try:
        sources = {name: _source(name, read, ran, reports, output) for name, read in command.reads.items()}
        if ways <= {"cpu", "wall"}:
            output.check_end(next(iter(sources), "the command"))
    except ValueError as error:
        ended = "" if ran.code == 0 else f"; the command {_ending(ran)}"
        raise Invalid(f"{error}{ended}", _said(ran, reports)) from None
    case = Case(
        "command", _said(ran, reports, sources.values()), **{name: each.value for name, each in sources.items()}
    )
    if "json" in ways:
        case.beside = output.others
    return case


def _said(ran: Ran, reports: Mapping[str, Report], sources: Iterable[Source] = ()) -> str:
    """Return the feedback for agents: failures, the lines that numbers are from, and the last lines of the output."""
    failures = [failed for name in sorted(reports) if (failed := reports[name].failures())]
    tail = _tail(ran, LINES_BESIDE if failures else LAST_LINES)
    lines = dict.fromkeys(each.text[:LONGEST_SHOWN] for each in sources)
    hidden = [line for line in lines if line and line not in tail]
    read = "\n".join(["lines that numbers are read from:", *hidden]) if hidden else ""
    return "\n\n".join(filter(None, [*failures, read, tail]))


def _place(command: EvaluationCommand, path: str) -> str:
    return f"{command.directory}/{path}" if command.directory else path


def _source(name: str, read: MetricReader, ran: Ran, reports: Mapping[str, Report], output: Output) -> Source:
    """Read one metric and its place. Raises ValueError when it is no finite number, or that of a failure."""
    match read.how:
        case "exit":
            return Source(float(ran.code == 0), "the exit code")
        case "junit":
            return Source(reports[read.what].share(), f"the report {read.what}")
        case "cpu" | "wall":
            return Source(ran.cpu if read.how == "cpu" else ran.wall, "the sandbox's clock")
    return output.read(name, read)


def _ending(ran: Ran) -> str:
    return f"was killed by signal {ran.signal}" if ran.signal else f"ended with exit code {ran.code}"


def _tail(ran: Ran, most: int = LAST_LINES) -> str:
    parts = []
    for stream, text in (("stdout", ran.stdout), ("stderr", ran.stderr)):
        if lines := shown_lines(text, most):
            tail = "\n".join(line[:LONGEST_SHOWN] for line in lines)[-LONGEST_TAIL:]
            parts.append(f"last lines of {stream}:\n{tail}")
    return "\n".join(parts)
