"""Commands and options of the last release still work, and print the new name on stderr alone."""

from __future__ import annotations

import re

import click
import pytest

from evogit.cli.renamed import COMMANDS, IGNORED, OPTIONS, REFUSED, renamed_command, renamed_options
from tests.cli.conftest import Cli, Small

ARGUMENTS = {
    "best": "--json",
    "runs": "--json",
    "brief": "--help",
    "decisions": "--json",
    "graft": "a2 best --dry-run --json",
    "drop": "a2 a2 --dry-run --json",
    "eval": "--help",
    "fsck": "--json",
    "sandbox build": "--help",
    "sandbox check": "--help",
    "sandbox clean": "--help",
    "sandbox": "--help",
    "gc": "--json",
    "rm": "toy --dry-run --json",
    "attach": "--json",
    "plot": "best -o best.svg",
}


@pytest.mark.parametrize("old", COMMANDS)
def test_an_old_command_runs_and_says_the_new_one(cli: Cli, small: Small, old: str) -> None:
    arguments = ARGUMENTS[old].split()
    done = cli(*old.split(), *arguments, cwd=small.folder)
    new = cli(*COMMANDS[old], *arguments, cwd=small.folder)
    assert (done.code, done.out) == (new.code, new.out)
    first, rest = done.err.split("\n", 1)
    assert re.findall(r"`evogit ([^`]*)`", first)[0] == old
    assert rest == new.err


def test_an_old_option_is_given_its_new_name() -> None:
    for (command, old), new in OPTIONS.items():
        joined = f"{new}=x" if new.startswith("--") else f"{new}x"
        assert renamed_options(command, [old, f"{old}=x", "--", old])[0] == [new, joined, "--", old]


@pytest.mark.parametrize(("command", "option"), IGNORED)
def test_an_ignored_option_is_taken_out_and_named(command: str, option: str) -> None:
    values, instead = IGNORED[command, option]
    words = [option, *["x"] * values, "rest", "--", option]
    rest, (note,) = renamed_options(command, words)
    assert rest == ["rest", "--", option]
    assert option in note
    assert instead in note
    assert renamed_options(command, [f"{option}=x", "rest"])[0] == ["rest"]


def test_other_old_options_are_refused() -> None:
    for command, option in REFUSED:
        for words in ([option, "x"], [f"{option}=x"]):
            with pytest.raises(click.UsageError):
                renamed_options(command, words)


def test_a_command_runs_in_spite_of_a_retired_option(cli: Cli, small: Small) -> None:
    done = cli("status", "--all-hosts", "--json", cwd=small.folder)
    assert (done.code, done.json["run"], done.err.split()[0]) == (0, "toy", "--all-hosts")


def test_rm_without_a_run_removes_nothing() -> None:
    with pytest.raises(click.UsageError):
        renamed_command(["rm", "--yes"])


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["rm", "sine"], ["clean", "--all", "sine"]),
        (["gc", "--evidence", "all-but-best"], ["clean", "--evidence", "all-but-best"]),
        (["gc"], ["clean", "--evidence", "failed"]),
        (["best", "--at", "@3"], ["status", "--at", "@3"]),
    ],
)
def test_an_old_command_means_what_it_meant(typed: list[str], meant: list[str]) -> None:
    assert renamed_command(typed)[0] == meant
