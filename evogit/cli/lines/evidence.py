"""Evidence for a person: what the evaluator said of a candidate, and what its agent was told, said and did."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from rich.text import Text

from evogit.cli.lines.view import MAX_LINE_CHARS
from evogit.cli.terminal import Terminal, table
from evogit.cli.text import count, escape
from evogit.core import NotFoundError
from evogit.repository.evidence import (
    FEEDBACK,
    SESSION,
    ends_tell_most,
    is_prompt,
    is_transcript,
    read_feedback,
    session_facts,
)
from evogit.review import SCHEMA
from evogit.review.evidence_files import texts

EXCERPT = 12
"""Lines of each piece of evidence that are shown."""

LONGEST = 240
"""Characters of a line of an excerpt: some programs print all that they do as one."""

Command = Callable[[str], str]
"""From the name of a file to the command line that prints it whole."""


def whole(terminal: Terminal, files: Mapping[str, bytes], name: str, lost: str = "") -> None:
    """Print one file, all of it; `lost` says why some are not here.

    Raises:
        NotFoundError: there is none of this name.
    """
    if name not in files:
        known = f"one of {', '.join(map(escape, files))}" if files else f"no file, as {lost or 'none is kept'}"
        if files and lost:
            raise NotFoundError(f"expected {known}, got {name!r}; of others, {lost}")
        raise NotFoundError(f"expected {known}, got {name!r}")
    if terminal.json:
        terminal.data({"schema": SCHEMA, "file": name, "text": texts(files)[name]})
        return
    terminal.show((Text(escape(line)) for line in texts(files)[name].splitlines()), fit="ignore")


def said(files: Mapping[str, bytes], command: Command) -> Iterator[Text]:
    """What the evaluator said: the beginning of everything."""
    for name, content in files.items():
        lines = _lines(name, content)
        yield Text("")
        yield Text(f"  {escape(name.removesuffix('.json'))}", "dim")
        yield from (Text(f"    {_short(line, MAX_LINE_CHARS)}") for line in lines[:EXCERPT])
        if lines[EXCERPT:] or any(len(line) > MAX_LINE_CHARS for line in lines):
            more = count(len(lines) - EXCERPT, "more line") if lines[EXCERPT:] else "more of these lines"
            yield Text(f"    and {more}: {command(escape(name))}", "dim")


def missing(lost: str) -> Iterator[Text]:
    """That there was more; nothing where there was not."""
    if lost:
        yield Text("")
        yield Text(f"  {lost}", "dim")


def session(agent: str, files: Mapping[str, bytes], command: Command) -> Iterator[Text]:
    """What an agent was told, said and did: facts, then every file with its size and of most an excerpt."""
    if not files:
        return
    facts = [(name, _short(text)) for name, text in session_facts(files.get(SESSION, b""))]
    yield Text("")
    yield Text(f"  session of {escape(agent)}", "dim")
    yield from table(((Text(f"    {name}", "dim"), Text(text)) for name, text in facts), "ll")
    shown = {name: content for name, content in files.items() if not (name == SESSION and facts)}
    for name, content in shown.items():
        lines, at_end = _excerpt(name, content)
        where = f", {'ends' if at_end else 'begins'}:" if lines else ""
        yield Text(f"    {escape(name)}, {count(len(content), 'byte')}{where}", "dim")
        yield from (Text(f"      {_short(line)}") for line in lines)
    name = max(files, key=lambda name: (is_transcript(name), name in shown) if files[name] else (False, False))
    yield Text(f"    all of it:  {command(escape(name))}", "dim")


def _lines(name: str, content: bytes) -> list[str]:
    """Feedback as `case: text`, anything else as it is."""
    feedback = read_feedback(content) if name == FEEDBACK else {}
    told = [f"{case}: {line}" for case, text in feedback.items() for line in text.splitlines()]
    return told or content.decode(errors="backslashreplace").splitlines()


def _excerpt(name: str, content: bytes) -> tuple[list[str], bool]:
    """Some lines, and whether they are the last ones, which tell most of what was done; prompts are all alike."""
    if is_prompt(name):
        return [], False
    lines = [line for line in content.decode(errors="backslashreplace").splitlines() if line.strip()]
    at_end = ends_tell_most(name)
    return lines[-EXCERPT:] if at_end else lines[:EXCERPT], at_end


def _short(text: str, most: int = LONGEST) -> str:
    """The beginning of a line of foreign text, harmless."""
    return escape(text if len(text) <= most else f"{text[:most]}...")
