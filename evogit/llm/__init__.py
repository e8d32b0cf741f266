"""Conversations with language models: one question, one reply, and an account that is charged.

The only importer of openai. Start with `endpoint.py`; `registry.py` opens models by name, `gateway/` serves programs.
"""

from __future__ import annotations

import time
from typing import Literal, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from evogit.core import PICO, EvoGitError


class ModelError(EvoGitError):
    """The model gave no usable reply to this question, however often it was asked; the message is journalled."""


class CredentialError(EvoGitError):
    """The endpoint refuses our key, or there is none: no further call can succeed."""


class UnknownModelError(EvoGitError):
    """The endpoint does not have this model: no further call can succeed."""


class RefusingModelError(EvoGitError):
    """The endpoint refuses question after question to this model: something in the settings does not suit it."""


Limit = Literal["dollars", "tokens", "calls"]  # what limits how much is asked


class SpendingLimitError(EvoGitError):
    """A limit is reached: nothing more may be asked; `limit` if what is left does not pay for a question."""

    def __init__(self, message: str, limit: Limit | None = None) -> None:
        super().__init__(message)
        self.limit = limit


class RunEndsError(EvoGitError):
    """The run is about to end: what was asked may be answered, and nothing more may be asked."""


class Message(Struct, frozen=True):
    """A part of a conversation; what is `measured`, or its piece `varying`, may differ when it is done again."""

    role: Literal["system", "user", "assistant"]
    content: str
    measured: bool = False
    varying: str = ""


class Question(Struct, frozen=True, kw_only=True):
    """What a model is asked. `move` is the number of the agent's move, `attempt` 0 for its first question in it."""

    messages: tuple[Message, ...]
    move: int = 0
    attempt: int = 0


class TokenUsage(Struct, frozen=True, kw_only=True):
    """Tokens of one attempt."""

    prompt: int = 0
    cached: int = 0  # of those of the prompt, those that the endpoint had in its cache
    completion: int = 0
    written: int = 0  # of those of the prompt, those that it put there, for which it charges more
    estimated: bool = False  # counted from the text, as the endpoint did not say: a call broke off, say


class Price(Struct, frozen=True, kw_only=True):
    """Dollars for a million tokens: of the prompt, of its cached part, of the completion, of what goes into the cache.

    A call whose prompt has more than `long` tokens costs twice as much for the prompt and 1.5 times as much for the
    completion (https://developers.openai.com/api/docs/models/gpt-5.4); None: it never does.
    Where `written` is not known it is 1.25 times `prompt`, as Anthropic's pricing page says of its cache of 5 minutes
    (https://docs.claude.com/en/docs/build-with-claude/prompt-caching); no other endpoint tells of such tokens.
    """

    prompt: float
    cached: float
    completion: float
    written: float | None = None
    long: int | None = None

    def of(self, usage: TokenUsage) -> float:
        """Dollars for one attempt."""
        fresh = usage.prompt - usage.cached - usage.written
        prompt = fresh * _pico(self.prompt) + usage.cached * _pico(self.cached) + usage.written * self._to_write
        return ((1 + self._is_long(usage)) * prompt + usage.completion * self._each(usage)) / PICO

    def at_most(self, worst: TokenUsage) -> float:
        """Dollars for an attempt of no more tokens, whatever of its prompt is cached; what is `written` may be."""
        return (self._dearest(worst) + worst.completion * self._each(worst)) / PICO

    def reply_for(self, pico: int, worst: TokenUsage) -> int:
        """Up to how many tokens of a reply so many picodollars pay for beside the prompt; below 0 if not for that."""
        left, each = pico - self._dearest(worst), self._each(worst)
        if left < 0:
            return -1
        return min(worst.completion, left // each) if each else worst.completion

    def _dearest(self, worst: TokenUsage) -> int:
        may_write = worst.written or self.written is not None
        each = max(_pico(self.prompt), _pico(self.cached), self._to_write if may_write else 0)
        return (1 + self._is_long(worst)) * worst.prompt * each

    def _is_long(self, usage: TokenUsage) -> bool:
        return self.long is not None and usage.prompt > self.long

    def _each(self, usage: TokenUsage) -> int:
        """Picodollars for a token of the completion."""
        return _pico(1.5 * self.completion if self._is_long(usage) else self.completion)

    @property
    def _to_write(self) -> int:
        return _pico(1.25 * self.prompt if self.written is None else self.written)

    @property
    def free(self) -> bool:
        """Whether calls cost nothing."""
        return self.prompt == self.cached == self.completion == 0 and not self.written


class Reservation(Struct, frozen=True):
    """What is set aside for one attempt, and when."""

    entry: str = ""  # which says so
    worst: TokenUsage | None = None  # its tokens at most; None if no limit of the run is in force, and these bound it:
    held: int = 0  # tokens that a session holds of its own limit,
    most: int | None = None  # of which the reply may have so many
    bounds: bool = True  # False if no limit depends on how long the reply is, so that it may have any length
    made: float = field(default_factory=time.time)

    @property
    def ceiling(self) -> int | None:
        """The tokens that the reply may have, which the endpoint must be told; None: as many as it likes."""
        return self.worst.completion if self.worst and self.bounds else self.most

    def bound(self, usage: TokenUsage, failure: str = "") -> TokenUsage:
        """Return the usage to charge: as the endpoint reported it, else all that was set aside, as it may be billed.

        If no limit bounds it, a reply that came whole is charged by its text.
        """
        if not usage.estimated or self.worst is None or not (self.bounds or failure):
            return usage
        prompt, completion = (
            max(getattr(each, name) for each in (usage, self.worst)) for name in ("prompt", "completion")
        )
        return replace(self.worst, prompt=prompt, completion=completion, estimated=True)

    def cut(self, usage: TokenUsage) -> TokenUsage:
        """What comes of a reply whose tokens are known beforehand, when it ends at the ceiling."""
        return usage if self.ceiling is None else replace(usage, completion=min(usage.completion, self.ceiling))


class Account(Protocol):
    """What one move may spend; the engine journals every charge."""

    def check(self) -> None:
        """Ask before every attempt. Raises RunEndsError: the run ends; SpendingLimitError: a limit is reached."""

    async def reserve(self, model: Model, worst: TokenUsage) -> Reservation:
        """Set aside the cost of an attempt; its reply may be shortened. Raises RunEndsError, SpendingLimitError."""

    async def pause(self, seconds: float) -> None:
        """Wait before another attempt, but not when there will be none: `check` says so at once then."""

    async def wait_out(self, model: Model, why: str, seconds: float) -> bool:
        """Wait so long for an endpoint that is down, and have it asked again; False: the question is given up."""

    def exhaust(self, limit: Limit) -> None:
        """Count what is left of a limit as used up, since it does not pay for another question."""

    def charge(
        self, model: Model, usage: TokenUsage, failure: str = "", reservation: Reservation | None = None
    ) -> None:
        """Count an attempt that was sent, bounded by its `reservation`; `failure` says why it brought no reply."""


class Model(Protocol):
    """A model by the `name` that people use; `price` is None if unknown, `context` in tokens of a question."""

    name: str
    price: Price | None
    context: int

    async def ask(self, question: Question, account: Account) -> str:
        """Return the text of the reply.

        Raises ModelError: none came, whatever was tried; RunEndsError, SpendingLimitError: no attempt is allowed;
        CredentialError, RefusingModelError, UnknownModelError: no call can succeed.
        """


async def set_aside(account: Account, model: Model, worst: TokenUsage) -> Reservation:
    """Reserve for a question of the run's own; a limit that does not pay for it is used up. Raises as `reserve`."""
    try:
        return await account.reserve(model, worst)
    except SpendingLimitError as error:
        if error.limit:
            account.exhaust(error.limit)
        raise


def _pico(price: float) -> int:
    """Picodollars for a token: whole numbers, so that sums are exact."""
    return round(price * 1e6)


def estimate_tokens(text: str) -> int:
    """About how many tokens a text has: a quarter of its UTF-8 bytes, as tokenizers of English and code come to."""
    return -(-len(text.encode(errors="replace")) // 4)
