"""What a reply asks to change, whatever format it was written in, and the error where it cannot be told or done."""

from __future__ import annotations

from msgspec import Struct

from evogit.core import EvoGitError


class EditError(EvoGitError):
    """A reply that cannot be carried out. The message is one sentence; `hint` helps the model to do better."""

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.hint = hint


class Replace(Struct, frozen=True):
    """The lines `search`, which occur exactly once in the file, become `replace`."""

    path: str
    search: tuple[str, ...]
    replace: tuple[str, ...]


class Write(Struct, frozen=True):
    """The file, new or not, consists of these lines."""

    path: str
    lines: tuple[str, ...]


class Delete(Struct, frozen=True):
    """The file goes."""

    path: str


class Rename(Struct, frozen=True):
    """The file moves to `to`, which is not there yet."""

    path: str
    to: str


Block = Replace | Write | Delete | Rename
