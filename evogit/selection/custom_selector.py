"""A person's own selector, from a file of theirs: what goes wrong in it is said in a sentence."""

from __future__ import annotations

import random
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import ValidationError, convert, to_builtins

from evogit.config.custom_classes import load
from evogit.core import ConfigError, UsageError
from evogit.history import History
from evogit.selection import KINDS, Move, Mutation, Selector


class Own:
    """The selector that `FILE.py:Name` names, its class called without arguments, or an instance of the caller.

    Such a file needs no more than this:

        from evogit import History, Move

        class Climber:
            def next_move(self, history: History, agent: str, rng) -> Move:
                valid = [each for each in history.judgements if history.fitness(each) is not None]
                few = rng.sample(valid, min(3, len(valid)))
                best = max(few, key=history.fitness, default=history.head(agent))
                return Move(operator="mutation", parents=(best,))

            def adopts(self, history: History, agent: str, child: str) -> bool:
                return not history.fitter(history.head(agent), child)
    """

    def __init__(self, text: str, instance: Any = None) -> None:
        self._text = text
        self._file = str(Path(text.rpartition(":")[0]).resolve())
        made: Any = load(text) if instance is None else None
        with self._explained():
            self._selector: Selector = made() if made else instance
        missing = [name for name in ("next_move", "adopts") if not callable(getattr(self._selector, name, None))]
        if missing or isinstance(self._selector, type):
            needs = " and ".join(missing) or "next_move and adopts, an instance"
            raise UsageError(f"expected {text} to be a selector with {needs}, got {self._selector!r:.200}")
        if instance is not None:
            code = getattr(type(instance).next_move, "__code__", None)
            self._file = code.co_filename if code else ""

    def next_move(self, history: History, agent: str, rng: random.Random) -> Move:
        """What the person's selector says, if it can be done.

        Raises:
            ConfigError: it fails, or says what cannot be done.
        """
        with self._explained():
            move = self._selector.next_move(history, agent, rng)
        if not isinstance(move, KINDS):
            raise ConfigError(f"expected next_move of {self._text} to return a Move, got {move!r:.200}")
        donor = move.donor if isinstance(move, Mutation) else None
        for commit in (*move.parents, *(() if donor is None else (donor,))):
            if not isinstance(commit, str) or commit not in history.phylogeny:
                raise ConfigError(f"expected next_move of {self._text} to choose candidates, got {commit!r:.200}")
        try:
            convert(to_builtins(move), type(move))
        except ValidationError as error:
            raise ConfigError(f"expected next_move of {self._text} to return a sound Move: {error}") from error
        return move

    def adopts(self, history: History, agent: str, child: str) -> bool:
        """What the person's selector says.

        Raises:
            ConfigError: it fails.
        """
        with self._explained():
            return bool(self._selector.adopts(history, agent, child))

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Say which line of the person's file failed, and how."""
        try:
            yield
        except (Exception, SystemExit) as error:
            frames = traceback.extract_tb(error.__traceback__)
            lines = [frame.lineno for frame in frames if frame.filename == self._file]
            place = f", line {lines[-1]}" if lines else ""
            raise ConfigError(f"the selector {self._text} failed{place}: {type(error).__name__}: {error}") from error
