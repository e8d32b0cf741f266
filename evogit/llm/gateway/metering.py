"""What one call costs while it goes on and when it is over, from what the endpoint says or else from the texts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from evogit.llm import TokenUsage, estimate_tokens
from evogit.llm.gateway.protocols import Dialect, attachments

ATTACHMENT = 1500
"""Tokens that a picture or a page of a file comes to, about; its base64 says nothing about that."""


def estimate_prompt(body: Mapping[str, Any]) -> int:
    """About how many tokens a request has."""
    files = [each.text for each in attachments(body) if not each.elsewhere]
    text = estimate_tokens(json.dumps(body, ensure_ascii=False))
    return max(1, text - sum(map(estimate_tokens, files)) + ATTACHMENT * len(files))


class Meter:
    """Runs along with one call. `expected` is what its prompt will probably cost."""

    def __init__(self, dialect: Dialect, expected: TokenUsage) -> None:
        self._dialect = dialect
        self._expected = expected
        self._said: TokenUsage | None = None
        self._last = False
        self._bytes = 0

    def read_event(self, event: Mapping[str, Any]) -> bool:
        """Count one event of a stream; says whether it made the reply longer."""
        new = sum(len(text.encode(errors="replace")) for text in self._dialect.text(event))
        self._bytes += new
        self._read(event)
        return new > 0

    def read_reply(self, text: str, reply: Mapping[str, Any]) -> None:
        """Count a reply that came whole."""
        self._bytes = len(text.encode(errors="replace"))
        self._read(reply)

    def _read(self, said: Mapping[str, Any]) -> None:
        if new := self._dialect.usage(said):
            old, usage = self._said or TokenUsage(), new.usage
            self._said = TokenUsage(
                prompt=max(old.prompt, usage.prompt),
                cached=max(old.cached, usage.cached),
                written=max(old.written, usage.written),
                completion=usage.completion if new.last else max(old.completion, usage.completion),
            )
            self._last |= new.last

    @property
    def told(self) -> TokenUsage | None:
        """What the endpoint counted for all of the call, None if it did not or says that a reply was free."""
        said = self._said
        return said if said and self._last and said.prompt and (said.completion or not self._bytes) else None

    @property
    def so_far(self) -> TokenUsage:
        """The most that is known of a call that goes on or was broken off."""
        prompt = self._said if self._said and self._said.prompt else self._expected
        return TokenUsage(
            prompt=prompt.prompt,
            cached=prompt.cached,
            written=prompt.written,
            completion=max(-(-self._bytes // 4), self._said.completion if self._said else 0),
            estimated=True,
        )
