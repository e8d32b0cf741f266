"""The list of commands: grouped by what a person is after, each with an example, loaded when it is used."""

from __future__ import annotations

import gc
import importlib
import keyword
from collections.abc import Collection
from types import ModuleType

import click
from msgspec import Struct

from evogit import __version__
from evogit.cli.options.shared import color_option, repo_option
from evogit.cli.renamed import renamed_command, renamed_options


class Listed(Struct, frozen=True):
    """One command: the module under evogit.cli that defines it, what it does, how it is typed."""

    module: str
    does: str
    example: str


SECTIONS: dict[str, dict[str, Listed]] = {
    "Begin": {
        "init": Listed("init", "improve your own repository", "evogit init"),
        "tasks": Listed("tasks", "list the shipped tasks", "evogit tasks"),
        "new": Listed("tasks", "create a task", "evogit new my_task"),
        "import": Listed("importing", "another system's run", "evogit import openevolve_output"),
        "check": Listed("check", "evaluate a task's seed", "evogit check my_task"),
        "audit": Listed("audit", "attack a task's evaluator", "evogit audit my_task"),
        "run": Listed("run", "evolve, or resume", "evogit run circle_packing --minutes 5"),
        "stop": Listed("stop", "stop the engine at work", "evogit stop"),
        "sync": Listed("sync", "exchange with a Git server", "evogit sync origin"),
        "worker": Listed("worker", "evaluate for a run elsewhere", "evogit worker"),
    },
    "Look": {
        "status": Listed("status", "how a run stands", "evogit status"),
        "watch": Listed("watch", "a run on the screen, live", "evogit watch"),
        "log": Listed("log", "candidates, newest first", "evogit log -n 20"),
        "graph": Listed("graph", "the family tree", "evogit graph -n 12"),
        "show": Listed("show", "one candidate in full", "evogit show best"),
        "diff": Listed("diff", "what changed, gains first", "evogit diff seed best"),
        "blame": Listed("diff", "who brought which line", "evogit blame best main.py"),
        "report": Listed("report", "the summary of a run", "evogit report"),
        "ideas": Listed("ideas", "what models tried, by family", "evogit ideas"),
        "serve": Listed("serve", "the same as a page", "evogit serve --open"),
        "export": Listed("export", "files, figures, page, table", "evogit export best ./out"),
    },
    "Decide": {
        "land": Listed("land", "merge into your branch", "evogit land best --squash"),
        "promote": Listed("decide", "favour as a parent", "evogit promote 9f2c1ab -m 'simple'"),
        "prune": Listed("decide", "exclude from breeding", "evogit prune 41d07e2 -m unsafe"),
        "judge": Listed("judge", "compare pairs yourself", "evogit judge"),
        "guide": Listed("decide", "tell all agents something", "evogit guide 'keep it in one file'"),
        "note": Listed("decide", "say something about one", "evogit note 9f2c1ab -m 'too clever'"),
        "undo": Listed("decide", "undo a decision", "evogit undo"),
        "add": Listed("add", "your commits as candidates", "evogit add my-branch"),
        "merge": Listed("merge", "merge two candidates", "evogit merge 9f2c1ab 41d07e2"),
    },
    "Check": {
        "verify": Listed("verify", "check that a score holds", "evogit verify best"),
        "shell": Listed("shell", "a command in the sandbox", "evogit shell best -- ls -l"),
        "minimize": Listed("minimize", "the smallest part as good", "evogit minimize best"),
        "ablate": Listed("minimize", "without each of its steps", "evogit ablate best"),
        "lessons": Listed("lessons", "what steps taught, proven", "evogit lessons add best"),
        "bench": Listed("bench", "evolution against controls", "evogit bench circle_packing --split lite"),
        "rescore": Listed("rescore", "evaluate again, task changed", "evogit rescore --dry-run"),
        "doctor": Listed("doctor", "check this machine", "evogit doctor"),
        "clean": Listed("clean", "free room", "evogit clean circle_packing"),
        "trust": Listed("trust", "let a stranger's code act", "evogit trust ./clone"),
    },
}

FIRST_WEEK = (
    *("init", "tasks", "new", "check", "run", "stop"),
    *("status", "watch", "log", "graph", "show", "diff", "serve", "export"),
    *("land", "doctor"),
)
"""The commands that `evogit --help` lists; `evogit help --all` lists all."""

UNLISTED = {
    "demo": Listed("demo", "evolve for a minute, offline", "evogit demo"),
    "adopt": Listed("tasks", "the old name of `new --from`", "evogit new my_task --from ./example"),
}


class Commands(click.Group):
    """Loads commands by name and prints the grouped list."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of the sections."""
        return [name for commands in SECTIONS.values() for name in commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, from its module; None when there is none of that name."""
        if cmd_name == "help":
            return HELP
        listed = next((commands[cmd_name] for commands in (*SECTIONS.values(), UNLISTED) if cmd_name in commands), None)
        if listed is None:
            return None
        name = f"{cmd_name}_" if keyword.iskeyword(cmd_name) else cmd_name
        command: click.Command = getattr(_imported(f"evogit.cli.commands.{listed.module}"), name)
        command.epilog = f"Example: {listed.example}"
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read `--help --all` as `help --all`."""
        if "--all" in args and {*args} <= {"--all", "--help", "-h"}:
            args = ["help", "--all"]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command, under its old or new name; an error names the nearest one."""
        args, note = renamed_command(args)
        notes = [note] if note else []
        try:
            name, command, rest = super().resolve_command(ctx, args)
        except click.UsageError as error:
            import difflib

            near = difflib.get_close_matches(args[0], self.list_commands(ctx), 1)
            raise click.UsageError(error.message + (f" Did you mean {near[0]!r}?" if near else ""), ctx) from error
        rest, more = renamed_options(name or "", rest)
        if not ctx.resilient_parsing:
            for line in (*notes, *more):
                click.echo(line, err=True)
        return name, command, rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Each command of a first week with what it does and an example."""
        _write_commands(formatter, FIRST_WEEK)
        rest = len(self.list_commands(ctx)) - len(FIRST_WEEK)
        formatter.write(f"\n`evogit help --all` lists {rest} more commands.\n")


def _write_commands(formatter: click.HelpFormatter, names: Collection[str]) -> None:
    for section, commands in SECTIONS.items():
        lines = [
            f"  {name:<10} {listed.does:<28} {listed.example}\n" for name, listed in commands.items() if name in names
        ]
        if lines:
            formatter.write(f"\n{section}:\n" + "".join(lines))


@click.command("help", add_help_option=False)
@click.argument("command", required=False)
@click.option("--all", "everything", is_flag=True, help="List all commands.")
@click.pass_context
def HELP(context: click.Context, command: str | None, everything: bool) -> None:  # noqa: N802
    """Show help for COMMAND, or list the commands."""
    root = context.find_root()
    if command is not None:
        name, found, _ = CLI.resolve_command(root, [command])
        assert found is not None
        with click.Context(found, info_name=name, parent=root) as inner:
            click.echo(found.get_help(inner))
    elif everything:
        formatter = context.make_formatter()
        _write_commands(formatter, CLI.list_commands(root))
        click.echo(formatter.getvalue().strip("\n"))
    else:
        click.echo(root.get_help())


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
