"""The list of commands: grouped by what a person is after, each with an example, loaded when it is used."""

from __future__ import annotations

import gc
import importlib
import keyword
from types import ModuleType

import click
from msgspec import Struct

from evogit import __version__
from evogit.cli.options.shared import color_option, repo_option


class Listed(Struct, frozen=True):
    """One command: the module under evogit.cli that defines it, what it does, how it is typed."""

    module: str
    does: str
    example: str


SECTIONS: dict[str, dict[str, Listed]] = {
    "Begin": {
        "demo": Listed("demo", "evolve for a minute, offline", "evogit demo"),
        "init": Listed("init", "improve your own repository", "evogit init"),
        "tasks": Listed("tasks", "list the shipped tasks", "evogit tasks"),
        "new": Listed("tasks", "create a task", "evogit new my_task"),
        "adopt": Listed("adopt", "a task of another system", "evogit adopt ./example my_task"),
        "import": Listed("importing", "another system's run", "evogit import openevolve_output"),
        "check": Listed("tasks", "evaluate a task's seed", "evogit check my_task"),
        "audit": Listed("audit", "attack a task's evaluator", "evogit audit my_task"),
        "run": Listed("run", "evolve, or resume", "evogit run circle_packing --minutes 5"),
        "sync": Listed("sync", "exchange with a Git server", "evogit sync origin"),
        "worker": Listed("worker", "evaluate for a run elsewhere", "evogit worker"),
    },
    "Look": {
        "runs": Listed("runs", "all your runs", "evogit runs"),
        "watch": Listed("watch", "a run on the screen, live", "evogit watch"),
        "attach": Listed("watch", "follow a run at work", "evogit attach"),
        "status": Listed("status", "how a run stands", "evogit status"),
        "log": Listed("log", "candidates, newest first", "evogit log -n 20"),
        "graph": Listed("graph", "the family tree", "evogit graph -n 12"),
        "show": Listed("show", "one candidate in full", "evogit show best"),
        "brief": Listed("brief", "what an agent is told", "evogit brief best"),
        "diff": Listed("diff", "what changed, gains first", "evogit diff seed best"),
        "blame": Listed("blame", "who brought which line", "evogit blame best main.py"),
        "best": Listed("status", "the best against the seed", "evogit best"),
        "report": Listed("report", "the summary of a run", "evogit report --format markdown"),
        "serve": Listed("serve", "the same as a page", "evogit serve --open"),
        "export": Listed("export", "files, figures, page, table", "evogit export best ./out"),
    },
    "Decide": {
        "promote": Listed("decide", "favour as a parent", "evogit promote 9f2c1ab -m 'simple'"),
        "prune": Listed("decide", "exclude from breeding", "evogit prune 41d07e2 -m unsafe"),
        "judge": Listed("judge", "compare pairs yourself", "evogit judge"),
        "guide": Listed("decide", "tell all agents something", "evogit guide 'keep it in one file'"),
        "note": Listed("decide", "say something about one", "evogit note 9f2c1ab -m 'too clever'"),
        "stop": Listed("stop", "stop the engine at work", "evogit stop --wait"),
        "add": Listed("add", "your commits as candidates", "evogit add my-branch"),
        "merge": Listed("merge", "merge two candidates", "evogit merge 9f2c1ab 41d07e2"),
        "graft": Listed("merge", "one step onto another", "evogit graft 9f2c1ab best --dry-run"),
        "drop": Listed("drop", "take one step out", "evogit drop 9f2c1ab best"),
        "land": Listed("land", "merge into your branch", "evogit land best --squash"),
        "undo": Listed("decide", "undo a decision", "evogit undo"),
        "decisions": Listed("decide", "list decisions", "evogit decisions"),
        "rm": Listed("rm", "remove a run for good", "evogit rm circle_packing"),
    },
    "Check": {
        "verify": Listed("verify", "check that a score holds", "evogit verify best"),
        "eval": Listed("eval", "evaluate uncommitted work", "evogit eval"),
        "shell": Listed("shell", "a shell in the sandbox", "evogit shell best -- ls -l"),
        "minimize": Listed("minimize", "the smallest part as good", "evogit minimize best"),
        "bench": Listed("bench", "evolution against controls", "evogit bench circle_packing --split lite"),
        "rescore": Listed("rescore", "evaluate again, task changed", "evogit rescore --dry-run"),
        "gc": Listed("gc", "free room, keep what counts", "evogit gc --evidence failed"),
        "fsck": Listed("fsck", "look for damage in runs", "evogit fsck --repair"),
        "trust": Listed("trust", "let a stranger's code act", "evogit trust ./clone"),
        "doctor": Listed("doctor", "check this machine", "evogit doctor"),
        "sandbox": Listed("sandbox", "build, test, clean sandboxes", "evogit sandbox check"),
    },
}


class Commands(click.Group):
    """Loads commands by name and prints the grouped list."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of the sections."""
        return [name for commands in SECTIONS.values() for name in commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, from its module; None when there is none of that name."""
        listed = next((commands[cmd_name] for commands in SECTIONS.values() if cmd_name in commands), None)
        if listed is None:
            return None
        name = f"{cmd_name}_" if keyword.iskeyword(cmd_name) else cmd_name
        command: click.Command = getattr(_imported(f"evogit.cli.commands.{listed.module}"), name)
        command.epilog = f"Example: {listed.example}"
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command; an error names the nearest one."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            import difflib

            near = difflib.get_close_matches(args[0], self.list_commands(ctx), 1)
            raise click.UsageError(error.message + (f" Did you mean {near[0]!r}?" if near else ""), ctx) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Every command with what it does and an example."""
        for section, commands in SECTIONS.items():
            formatter.write(f"\n{section}:\n")
            for name, listed in commands.items():
                formatter.write(f"  {name:<10} {listed.does:<28} {listed.example}\n")


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@repo_option
@color_option
@click.version_option(__version__, prog_name="evogit")
def CLI(repo: str | None, color: str | None) -> None:  # noqa: N802
    """A population of coding agents improves a code base; the Git commit graph is the phylogeny.

    A revision is `best`, `seed`, an agent's name or the beginning of an id. Every command takes --json; `evogit
    COMMAND --help` has the rest.
    """


def _imported(name: str) -> ModuleType:
    """A module and all that it imports, which stays: nobody need look for garbage there, now or when we end."""
    gc.disable()
    try:
        return importlib.import_module(name)
    finally:
        gc.freeze()
        gc.enable()
