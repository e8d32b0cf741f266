"""The command line: parse, call `run` or `review`, print. A command's module is imported only when it is used."""

from __future__ import annotations

import sys

from evogit.cli.group import CLI


def main() -> None:
    """The console script: every error a user can meet becomes one sentence and an exit code."""
    import click

    from evogit.core import EvoGitError

    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        sys.exit(CLI.main(prog_name="evogit", standalone_mode=False))
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.stderr.write("interrupted\n")
        sys.exit(130)
    except EvoGitError as error:
        _say(str(error))
        sys.exit(error.exit_code)
    except OSError as error:
        _say(f"{error.strerror}: {error.filename}" if error.filename else str(error))
        sys.exit(1)


def _say(message: str) -> None:
    from evogit.cli.text import escape

    lines = "\n".join(escape(line) for line in message.splitlines())
    sys.stderr.write(f"evogit: {lines}\n")
