"""What evaluators of other systems say went wrong though they give a score: most catch errors, and give 0 for them."""

from __future__ import annotations

import re

from evogit.adopt.foreign_task import kept_folder
from evogit.config import Task
from evogit.contained import joined_lines
from evogit.text import one_line

LONGEST = 200
"""Characters of it that are shown."""
_SPEAKS = r"\w{0,40}?(?:error|traceback|timeout|crash)\w{0,40}|failure(?:_(?:reason|stage))?"
ADMITTED = re.compile(
    rf"^(?:\[(?P<name>{_SPEAKS})\][ \t]+|\[(?P<block>{_SPEAKS})\]\n|(?P<same>error|traceback):[ \t]+|"
    r"(?:\[\w+\]|\w+:)[ \t]+\{[\"'](?P<key>error)[\"']:[ \t]+[\"'])"
    r"(?!(?:none|no|null|false|0|\d+(?:\.\d+)?|[\[{(][\])}])$)(?P<said>\S.*(?(block)(?:\n(?!\[|{\").+){0,9}))$",
    re.MULTILINE | re.IGNORECASE,
)
"""What stand-ins for other systems print of an artifact, or of a metric that is a text, which speaks of a failure."""
TRACEBACK = re.compile(
    r"^(?:\w+:[ \t]+)?Traceback \(most recent call last\):\n(?:[ \t].*\n)+(?P<said>\w[\w.]*(?:: .*)?)$", re.MULTILINE
)
"""An error as Python prints it."""


def is_scored(task: Task) -> bool:
    """Whether the score of a task is that of another system's evaluator, which may be that of a failure."""
    return task.folder.is_relative_to(kept_folder()) and task.primary.name == "combined_score"


def admitted(text: str) -> str:
    """The failure that what an evaluation printed tells of, such as `error: no cargo here`; empty where it is none."""
    text = joined_lines(text)
    found, printed = ADMITTED.search(text), TRACEBACK.search(text)
    if found and not found["said"].startswith("Traceback ("):
        name, said = found["name"] or found["block"] or found["same"] or found["key"], " ".join(found["said"].split())
    elif printed:
        name, said = "traceback", printed["said"]
    else:
        return ""
    return f"the score of the seed may be that of a failure: the evaluator says {name}: {one_line(said, LONGEST)}"
