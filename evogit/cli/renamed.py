"""Names of the last release: they work until the next one, and print the new name on stderr."""

from __future__ import annotations

from collections.abc import Sequence

import click

UNTIL = "the old name goes in the next release"

COMMANDS: dict[str, tuple[str, ...]] = {
    "best": ("show", "best"),
    "runs": ("status", "--all"),
    "brief": ("show", "--brief"),
    "decisions": ("log", "--decisions"),
    "graft": ("merge", "--step"),
    "drop": ("merge", "--without"),
    "eval": ("check", "--uncommitted"),
    "fsck": ("doctor", "runs"),
    "sandbox build": ("doctor", "build"),
    "sandbox check": ("doctor", "sandbox"),
    "sandbox clean": ("clean", "--yes"),
    "sandbox": ("doctor",),
    "gc": ("clean", "--evidence", "failed"),
    "rm": ("clean", "--all"),
    "attach": ("watch",),
    "plot": ("export", "--figure"),
}
"""An old command -> the beginning of the new command line."""

OPTIONS: dict[tuple[str, str], str] = {
    ("check", "--any"): "--force",
    ("judge", "--pairs"): "-n",
    ("bench", "--methods"): "--method",
    ("bench", "--out"): "--output",
    ("bench", "--seeds"): "-n",
    ("audit", "--out"): "--output",
    ("judge", "--status"): "--list",
    ("prune", "--subtree"): "--all",
}
"""A command as it is called now, and an old option of it -> the new option."""


FIGURES = (
    "`evogit export --figure lineage run.svg` draws figures, `evogit export run.html` writes the page, and "
    "`evogit graph --json` and `evogit export run.csv` have the data"
)

IGNORED: dict[tuple[str, str], tuple[int, str]] = {
    ("audit", "--seconds"): (1, "an audit takes at most 50 s"),
    ("audit", "--split"): (1, "the split train is attacked"),
    ("bench", "--first-seed"): (1, "seeds begin at 0"),
    ("bench", "--curve-of"): (1, "runs are scored on --split"),
    ("bench", "--count-repeats"): (0, "repeats count towards N"),
    ("bench", "--extra-repeats"): (0, "repeats count towards N"),
    ("bench", "--keep"): (0, "repositories of runs are removed"),
    ("export", "--against"): (1, "the figure `best` is drawn by evaluations"),
    ("export", "--mean"): (0, "each run has a line of its own"),
    ("graph", "--expand"): (1, "--all folds nothing"),
    ("graph", "--against"): (1, FIGURES),
    ("graph", "--colour"): (1, FIGURES),
    ("graph", "--dark"): (0, FIGURES),
    ("judge", "--pair"): (0, "evogit judge A B --winner a|b|tie"),
    ("run", "--grace"): (1, "a tenth of --minutes, 60 s at most"),
    ("run", "--beyond"): (0, "remove `bound = true` from the task, and the run continues at its bound"),
    ("run", "--confirm"): (1, "repeats are made as needed"),
    ("run", "--sync-every"): (1, "hosts exchange every 10 s"),
    ("show", "--donor"): (1, "a brief of `show --brief` is of one candidate"),
    ("show", "--context"): (1, "a brief is as long as its run makes it"),
    ("status", "--all-hosts"): (0, "hosts are listed if there are several"),
    ("status", "--best"): (0, "`evogit status` compares the best with the seed"),
    ("stop", "--wait"): (0, "`evogit stop` waits until all have ended"),
}
"""A command and an old option of it that is ignored: its number of values, and what applies instead."""

REFUSED: dict[tuple[str, str], str] = {
    ("clean", "--older-than"): "evidence of any age goes",
    **dict.fromkeys((("graph", name) for name in ("--format", "--output", "-o", "--redact")), FIGURES),
    **{
        ("init", f"--{name}"): f"write {name} in evogit.toml"
        for name in ("disk", "excluded", "memory", "packages", "repeats", "retry", "withheld")
    },
    ("log", "--csv"): "`evogit export run.csv` has all candidates",
    ("report", "--format"): "`evogit report --json` has the data, `evogit export run.html` writes the page",
    **dict.fromkeys((("report", "--target"), ("report", "--until")), "`evogit export run.csv` has costs and values"),
    ("run", "--fork-of"): "--at RUN:ENTRY names the run",
    ("run", "--log"): "a run prints the events on stderr: 2>> FILE",
    ("run", "--on-best"): "`evogit watch` without a terminal prints a line per event, and --on-end runs a command",
    ("watch", "--once"): "`evogit status` prints the state of a run",
}
"""A command and an old option of it without which it would do, or delete, something else than was asked for."""


def renamed_command(args: Sequence[str]) -> tuple[list[str], str]:
    """Return the arguments with the command's new name, and a sentence that says it; empty where nothing changed."""
    for words in (2, 1):
        old = " ".join(args[:words])
        if new := COMMANDS.get(old):
            shown = " ".join(new)
            if old == "best" and "--at" in args:
                new, shown = ("status",), "status --at MOMENT"
            elif old == "gc" and "--evidence" in args:
                new, shown = ("clean",), "clean --evidence failed|all-but-best"
            elif old == "rm":
                shown = "clean RUN --all"
                if "--name" not in args and all(word.startswith("-") for word in args[1:]):
                    raise click.UsageError("expected the run to remove: `evogit clean RUN --all`")
            return [*new, *args[words:]], f"`evogit {old}` is now `evogit {shown}`; {UNTIL}"
    return list(args), ""


def renamed_options(command: str, args: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return a command's arguments without old options, and a sentence for each. Raise click.UsageError if refused."""
    result: list[str] = []
    notes, words = [], list(args)
    while words and words[0] != "--":
        name, sign, value = words.pop(0).partition("=")
        if new := OPTIONS.get((command, name)):
            result.append(new + (sign if new.startswith("--") else "") + value)
            notes.append(f"{name} is now {new}; {UNTIL}")
        elif refused := REFUSED.get((command, name)):
            raise click.UsageError(f"{name} is gone: {refused}")
        elif ignored := IGNORED.get((command, name)):
            values, instead = ignored
            del words[: 0 if sign else values]
            notes.append(f"{name} is ignored now: {instead}")
        else:
            result.append(name + sign + value)
    return [*result, *words], notes
