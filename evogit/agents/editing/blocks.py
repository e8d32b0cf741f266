"""What a reply asks to change, whatever format it was written in, and the error where it cannot be told or done."""

from __future__ import annotations

from dataclasses import dataclass

from evogit.core import EvoGitError


class EditError(EvoGitError):
    """A reply that cannot be carried out. The message is one sentence; `hint` helps the model to do better."""

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Replace:
    """The lines `search`, which occur exactly once in the file, become `replace`."""

    path: str
    search: tuple[str, ...]
    replace: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Write:
    """The file, new or not, consists of these lines."""

    path: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Delete:
    """The file goes."""

    path: str


@dataclass(frozen=True, slots=True)
class Rename:
    """The file moves to `to`, which is not there yet."""

    path: str
    to: str


Block = Replace | Write | Delete | Rename
