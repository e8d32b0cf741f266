"""Lets a model write a task from files in no known format: task.toml, goal.md, a command that evaluates, and the seed.

The model's evaluator is a command, so all that it writes runs in the sandbox beside the candidate (`judged: inside`).
A task that would do anything outside of one is refused. `evogit check` shows whether the task is right.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from evogit.adopt.foreign_task import PLAIN, File, write_files
from evogit.adopt.sources import files_below
from evogit.agents.briefs.bodies import files_text
from evogit.agents.editing.blocks import EditError
from evogit.agents.editing.draft import Draft
from evogit.agents.editing.reply import parse
from evogit.config import load_task
from evogit.contained import file_at, has_file
from evogit.core import ConfigError, RefusedError
from evogit.credentials import Redactor, secret_files
from evogit.llm import Account, Message, Model, Question
from evogit.repository.paths import UnfitChangeError, check_path
from evogit.text import cut, one_line

ROUNDS = 3  # questions in which the model may correct what is wrong with its task
MAX_SHOWN_TOKENS = 40_000  # tokens of files that a model with room for them is shown
READMES = ("README.md", "README.rst", "README", "program.md")
SEED, EVALUATOR = "seed/", ".evogit/"
RULES = """\
You turn a folder into a task of EvoGit, which improves a program by evolution: agents change the files that are
`editable`, and each version is evaluated by one shell command in a sandbox without a network.

Answer with blocks that write files, each like this, with the whole content:

<<<<<<< WRITE task.toml
name = "{name}"
editable = ["solver.py"] # globs below seed/: what agents may change; nothing that measures
[metrics.score] # a name of letters, digits and _
direction = "maximize" # or "minimize"
[evaluator]
kind = "command" # no other kind is allowed
command = "python3 .evogit/evaluate.py" # runs in the folder of the seed's files
read.score = "json" # the last line that it prints, such as {{"score": 1.5}}; or "regex:PATTERN" with one group
[sandbox]
timeout = 60 # seconds of one evaluation
memory = "1g"
packages = ["numpy"] # from PyPI, those that are needed and no others
>>>>>>> END

- `task.toml` and `goal.md` are needed. goal.md tells agents what to improve, which file has which function, what must
  hold, and what is measured and which way is better.
- The shown files are the seed already, below `{seed}`: write only those that have to be different, and remove one with
  a block `<<<<<<< DELETE seed/path`. They should run as they are and give a valid score.
- Files below `{evaluator}` evaluate: the command finds them there, and no agent may change them. Move what measures or
  checks there if it lies among the shown files. An evaluation checks answers, exits with another code than 0 if they
  are wrong, and prints its number last. It never trusts a number that the candidate prints of itself.
- Use no network, no key and no absolute path. `[sandbox]` must not set network, image, setup or gpus.
"""


class ShownFiles(Struct, frozen=True):
    """The files of a folder that a model is shown: those of the seed, and texts `beside` them; `secret` are neither."""

    seed: Mapping[str, File]
    beside: Mapping[str, File]
    secret: Mapping[str, File]

    @property
    def sizes(self) -> dict[str, int]:
        """The bytes of what may be sent, by the names of the user's files."""
        return {path: len(data) for path, (data, _) in {**self.beside, **self.seed}.items()}

    @property
    def shown(self) -> dict[str, bytes]:
        """The contents that may be sent, by their paths in the task."""
        seed = {f"{SEED}{path}": file for path, file in self.seed.items()}
        return {path: data for path, (data, _) in {**self.beside, **seed}.items()}


def shown_files(path: Path) -> ShownFiles:
    """Read the files of a folder, or a single file; those that hold credentials are kept back."""
    folder = path if path.is_dir() else path.parent
    found = files_below(folder) if path.is_dir() else {path.name: file_at(folder, path.name)}
    texts = {name: file_at(folder, name) for name in READMES if path.is_dir() and has_file(folder, name)}
    files = {**texts, **found}
    secret = set(secret_files({name: partial(bytes, data) for name, (data, _) in files.items()}))
    return ShownFiles(
        {name: file for name, file in found.items() if name not in secret},
        {name: file for name, file in texts.items() if name not in secret and name not in found},
        {name: files[name] for name in secret},
    )


async def draft_task(files: ShownFiles, name: str, model: Model, account: Account) -> dict[str, File]:
    """Return the files of the task that a model writes.

    Raises:
        RefusedError: it wrote none that can be used.
        ModelError, SpendingLimitError and others of `evogit.llm`: it cannot be asked.
    """
    redactor = Redactor({path: data for path, (data, _) in files.secret.items()})
    rules = RULES.format(name=name, seed=SEED, evaluator=EVALUATOR)
    shown = files_text(files.shown, min(MAX_SHOWN_TOKENS, model.context // 2))
    messages = [Message("system", rules), Message("user", redactor.text(shown))]
    problem = ""
    for attempt in range(ROUNDS):
        reply = await model.ask(Question(messages=tuple(messages), move=1, attempt=attempt), account)
        try:
            return _task_files(reply, files, name)
        except (ConfigError, EditError, UnfitChangeError) as error:
            problem = one_line(redactor.text(str(error)), 1000)
        messages += [
            Message("assistant", cut(redactor.text(reply), MAX_SHOWN_TOKENS)),
            Message("user", f"That is not a task yet: {problem}\n\nAnswer with all blocks again, corrected."),
        ]
    raise RefusedError(f"{model.name} wrote no task that can be used, {ROUNDS} times; the last problem: {problem}")


def _task_files(reply: str, files: ShownFiles, name: str) -> dict[str, File]:
    """Return the files of a task in a reply.

    Raises:
        ConfigError: EvoGit would not accept the task, or it would act outside of a sandbox.
        EditError, UnfitChangeError: the reply's blocks cannot be carried out.
    """
    base = {f"{SEED}{path}": file for path, file in files.seed.items()}

    def refusal(path: str) -> str:
        allowed = path in ("task.toml", "goal.md") or path.startswith((SEED, EVALUATOR))
        return "" if allowed else f"expected task.toml, goal.md, {SEED}... or {EVALUATOR}..., got {path}"

    draft = Draft({path: data for path, (data, _) in base.items()}, refusal)
    draft.carry_out(parse(reply).blocks)
    task_files = dict(base)
    for path, data in draft.changes.items():
        check_path(path)
        task_files.pop(path, None)
        if data is not None:
            task_files[path] = data, base.get(path, (b"", PLAIN))[1]
    for needed in ("task.toml", "goal.md"):
        if needed not in task_files:
            raise ConfigError(f"expected a block that writes {needed}")
    with tempfile.TemporaryDirectory(prefix="evogit-new-") as scratch:
        folder = Path(scratch) / name
        write_files(folder, task_files)
        task = replace(load_task(folder), untrusted=folder)
        if task.name != name:
            raise ConfigError(f"task.toml: expected name = {name!r}, got {task.name!r}")
        if task.command is None or task.judged != "inside":
            raise ConfigError('task.toml: expected [evaluator] kind = "command"')
        if task.environment.image:
            raise ConfigError("task.toml: [sandbox] image is not allowed here")
        if claims := [claim.effect for claim in task.claims()]:
            raise ConfigError(f"task.toml: nothing may happen outside of the sandbox, but {claims[0]}")
        if not any(map(task.is_editable, task.seed_files())):
            raise ConfigError(f"task.toml: editable = {list(task.editable)} covers no file below {SEED}")
    return task_files
