"""What a person should know of the languages that the mutator reads; programs in others it edits as mere text."""

from __future__ import annotations

from evogit.config import Task
from evogit.repository import Repository
from evogit.repository.paths import named
from evogit.source import languages


def languages_read() -> str:
    """Which languages it reads here, as a sentence."""
    if languages.is_installed():
        return f"the mutator reads Python and {len(set(languages.GRAMMARS.values()))} further languages"
    return f"the mutator reads Python alone, and edits other programs as mere text; {languages.EXTRA} adds more"


def told_of_languages(task: Task, repository: Repository, tree: str) -> list[str]:
    """Which programs of a tree it would edit as mere text here: a sentence, or none."""
    if languages.is_installed():
        return []
    entries = [entry for entry in repository.trees.whole(tree) if entry.is_file]
    texts = [entry.path for entry in entries if task.is_editable(entry.path) and languages.grammar(entry.path)]
    said = "the mutator changes only numbers and lines of these; to have it read them as programs"
    return [f"{named(texts)}: {said}, {languages.EXTRA}"] if texts else []
