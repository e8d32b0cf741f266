"""What one call costs while it goes on and when it is over, from what the endpoint says or else from the texts."""

from __future__ import annotations

from evogit.llm import TokenUsage
from evogit.llm.bounds import is_plausible
from evogit.llm.gateway.protocols import Told

WRAPPING = 4000
"""Bytes of a whole reply that are not its text, at most, as far as what it says of its tokens is doubted."""


class Meter:
    """Runs along with one call, whose prompt has about `estimate` tokens in `size` bytes."""

    def __init__(self, estimate: int, size: int) -> None:
        self._estimate = estimate
        self._size = size
        self._said: TokenUsage | None = None
        self._last = False
        self.bytes = 0
        self._wrapping = 0

    def read_event(self, told: Told) -> None:
        """Count one event of a stream."""
        self.bytes += told.size
        self._read(told)

    def read_reply(self, told: Told, size: int) -> None:
        """Count a reply that came whole, in so many bytes."""
        self.bytes = told.size if told.readable else size
        self._wrapping = WRAPPING
        self._read(told)

    def _read(self, told: Told) -> None:
        if usage := told.usage:
            old = self._said or TokenUsage()
            self._said = TokenUsage(
                prompt=max(old.prompt, usage.prompt),
                cached=max(old.cached, usage.cached),
                written=max(old.written, usage.written),
                completion=max(old.completion, usage.completion),
            )
            self._last |= told.last

    @property
    def told(self) -> TokenUsage | None:
        """What the endpoint counted for all of the call, None if it did not, or not so much as it must have been."""
        said = self._said
        if said is None or not self._last or not said.prompt or (self.bytes and not said.completion):
            return None
        return said if is_plausible(said, self._size, self.bytes - self._wrapping) else None

    @property
    def so_far(self) -> TokenUsage:
        """What a call that goes on or was broken off comes to, about."""
        said = self._said or TokenUsage()
        completion = max(-(-self.bytes // 4), said.completion)
        if not said.prompt:
            return TokenUsage(prompt=self._estimate, completion=completion, estimated=True)
        return TokenUsage(
            prompt=said.prompt, cached=said.cached, written=said.written, completion=completion, estimated=True
        )
