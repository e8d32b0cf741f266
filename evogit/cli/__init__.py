"""The command line: parse, call `run` or `review`, print. A command's module is imported only when it is used."""

from __future__ import annotations

import codecs
import io
import os
import sys
from typing import TYPE_CHECKING

from evogit.cli.group import CLI

if TYPE_CHECKING:
    from evogit.core import EvoGitError


PLAIN_CHARACTERS = {"×": "x", "±": "~", "…": "~", "→": ">", "–": "-", "—": "-", "µ": "u"}
"""Characters of titles and figures -> the same as wide, for a terminal that has ASCII alone."""


def _in_ascii(error: UnicodeError) -> tuple[str | bytes, int]:
    """Handle what a terminal's encoding lacks, as `codecs.register_error` describes."""
    if isinstance(error, UnicodeEncodeError) and (plain := PLAIN_CHARACTERS.get(error.object[error.start])):
        return plain, error.start + 1
    return codecs.backslashreplace_errors(error)


def main() -> None:
    """The console script: every error a user can meet becomes one sentence and an exit code."""
    # streams that were closed before we began (`>&-`) go somewhere: no other file may get their numbers
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123  # until the end
    codecs.register_error("evogit", _in_ascii)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="evogit")  # type: ignore[union-attr]
    while _command():
        pass


def _command() -> bool:
    """Run the command and exit; return True if it starts over, as the user agreed to what it was refused for."""
    import click

    try:
        code = CLI.main(prog_name="evogit", standalone_mode=False)
    except click.ClickException as error:
        said = io.StringIO()
        error.show(said)
        _write(said.getvalue())
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt) as error:
        open_line = sys.stderr.isatty() and error.__cause__ is None  # a prompt's; else click has ended it
        sys.stderr.write("\ninterrupted\n" if open_line else "interrupted\n")
        sys.exit(130)
    except _user_error() as error:
        from evogit.cli.confirming import granted
        from evogit.trust import UntrustedError

        if isinstance(error, UntrustedError) and granted(error):
            return True
        _say(str(error))
        sys.exit(error.exit_code)
    except OSError as error:
        _say(f"{error.strerror}: {error.filename}" if error.filename else error.strerror or str(error))
        sys.exit(1)
    sys.exit(code)


def _user_error() -> type[EvoGitError]:
    """Return the class of errors that a user can meet; `--help` does not load it."""
    from evogit.core import EvoGitError

    return EvoGitError


def _say(message: str) -> None:
    from evogit.cli.text import escape

    _write("\n".join(map(escape, f"evogit: {message}".splitlines())))


def _write(text: str) -> None:
    sys.stderr.write("".join(f"{_broken(line)}\n" for line in text.splitlines()))


def _broken(line: str) -> str:
    """A line that fits a terminal: broken between words, where it would be in the middle of one."""
    try:
        width = os.get_terminal_size(sys.stderr.fileno()).columns
    except OSError:  # it is no terminal
        return line
    if len(line) <= width or width == 0:  # a terminal that does not know its size
        return line
    import textwrap

    return textwrap.fill(line, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
