"""What a model answers, read strictly: one JSON object of a known shape, or nothing."""

from __future__ import annotations

import json
import re
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evogit.core import EvoGitError

LONGEST_REPLY = 20_000
"""Characters of a reply that is read at all."""

FENCED = re.compile(r"```(?:json)?\n(.*)\n```", re.DOTALL)
"""A reply that is one block of code from its first to its last character, as models are used to write JSON."""


class UnusableAnswerError(EvoGitError):
    """A model answered something else than it was asked for; the message says what, for a second try."""


class Verdict(BaseModel):
    """Which side is better, and why."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    winner: Literal["first", "second", "tie"]
    reason: str = Field(max_length=4000)


def read(reply: str) -> Verdict:
    """The answer that a whole reply is; nothing is looked for inside of other text.

    Raises:
        UnusableAnswerError: it is something else.
    """
    text = reply.strip()
    if len(text) > LONGEST_REPLY:
        raise UnusableAnswerError(f"expected one JSON object, got {len(text):,} characters")
    fenced = FENCED.fullmatch(text)
    try:
        return Verdict.model_validate(json.loads(fenced[1] if fenced else text, object_pairs_hook=_once))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the object"
        raise UnusableAnswerError(f"expected winner and reason alone, but {where}: {first['msg']}") from None
    except (ValueError, RecursionError) as error:
        raise UnusableAnswerError(f"expected one JSON object and nothing else, got something else: {error}") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(found := dict(pairs)) < len(pairs):
        raise ValueError("a key comes twice")
    return found
