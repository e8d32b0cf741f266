"""One call of a program through the gateway: sent on with the key, its reply handed back piece by piece and counted.

Nothing is asked twice: programs try again by themselves, and what they try again is checked against the limits. While
the endpoint is down that takes longer and longer, so that programs do not give up one session after the other.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

import httpx2
from msgspec.structs import replace

from evogit.core import EvoGitError
from evogit.llm import Account, CredentialError, Reservation, RunEndsError, SpendingLimitError, TokenUsage
from evogit.llm.bounds import USUAL_PROMPT, is_plausible
from evogit.llm.endpoint import LONGEST_OUTAGE_PAUSE, LONGEST_PAUSE, NEVER_ARRIVED, Endpoint, ErrorAnswer
from evogit.llm.gateway.events import (
    LONGEST_EVENT,
    EndlessEventError,
    read_json,
    redacted,
    redacted_event,
    whole_events,
)
from evogit.llm.gateway.protocols import OUT_OF_MONEY, Dialect, Messages, Told
from evogit.llm.gateway.reading import Asked, UnreadableError, read_event, read_whole
from evogit.llm.gateway.serving import Caller, Request
from evogit.llm.reader import INLINE, PIECE
from evogit.llm.replies import LONGEST_ERROR, LONGEST_STREAM, MAY_BE_BILLED, LostAttemptError, quote, retry_after

WRAPPING = 4000  # bytes of a whole reply that are not its text, as far as its count is doubted


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
        """Return the endpoint's count for the call; None if there is none, or it is below the possible minimum."""
        said = self._said
        if said is None or not self._last or not said.prompt or (self.bytes and not said.completion):
            return None
        return said if is_plausible(said, self._size, self.bytes - self._wrapping) else None

    @property
    def so_far(self) -> TokenUsage:
        """Estimate the usage of a call that is open or was broken off."""
        said = self._said or TokenUsage()
        completion = max(-(-self.bytes // 4), said.completion)
        if not said.prompt:
            return TokenUsage(prompt=self._estimate, completion=completion, estimated=True)
        return TokenUsage(
            prompt=said.prompt, cached=said.cached, written=said.written, completion=completion, estimated=True
        )


MOST_EVENTS = 300_000  # events of a reply; some endpoints send two for a token
MOST_REPLY = 64_000  # tokens of a reply at most where a limit is in force: what one call holds of it no other agent has
LONGEST_WORDS = 16  # bytes of text for each token of the ceiling, after which an endpoint does not heed it

BETAS = frozenset(
    {
        "claude-code-20250219",
        "context-management-2025-06-27",
        "effort-2025-11-24",
        "fine-grained-tool-streaming-2025-05-14",
        "prompt-caching-2024-07-31",
        "structured-outputs-2025-11-13",
        "token-efficient-tools-2025-02-19",
    }
)
"""What a program may ask for by `anthropic-beta`: it changes formats, and neither prices nor what bounds a reply."""

TOLD = ("retry-after", "retry-after-ms", "x-should-retry", "x-request-id", "request-id")
"""Headers of an answer that a program gets to see, besides the type of its content."""

_PLAIN = re.compile(r"[\w.,:; =-]{1,500}", re.ASCII)


class DeniedError(EvoGitError):
    """A call without a reply, `body` the endpoint's own; `ends`: so will all others; `free`: it costs nothing."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
        body: str = "",
        ends: EvoGitError | None = None,
        free: bool = False,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.headers = headers or {}
        self.body = body
        self.ends = ends
        self.free = free

    @classmethod
    def ending(cls, error: EvoGitError) -> DeniedError:
        """Nothing more may be asked; a program learns no more than that of what we say to people about keys."""
        if isinstance(error, SpendingLimitError):  # 402, as all clients try again after a 429
            return cls(402, f"Insufficient credits: {error}; no more calls are made", code=OUT_OF_MONEY, ends=error)
        secret = isinstance(error, CredentialError)
        said = "the endpoint does not accept EvoGit's credentials" if secret else str(error)
        return cls(403, f"{said}; do not try again", code="permission_denied", ends=error, free=True)


class Upstream:
    """The connections to one endpoint, and how many calls of it may be in flight."""

    def __init__(self, base_url: str, api_key: str, *, calls: int) -> None:
        self.base_url = base_url.rstrip("/")
        self._key = api_key
        self.places = asyncio.Semaphore(calls)
        self.client = httpx2.AsyncClient(follow_redirects=False, limits=httpx2.Limits(max_connections=calls))
        self.resumes = 0.0  # when it wants to be asked again, or is asked again as it was down, by the loop's clock
        self.down = ""  # why nobody could be reached there at last
        self._outages = 0

    def lost(self, why: str, pause: float) -> None:
        """Nobody could be reached: wait before the next call, longer each time; calls of one time count once."""
        now, self.down = asyncio.get_running_loop().time(), why
        if now >= self.resumes:
            self.resumes = now + min(pause * 2 ** min(self._outages, 40), LONGEST_OUTAGE_PAUSE)
            self._outages += 1

    def reached(self) -> None:
        """It answered."""
        self.down = ""
        self._outages = 0

    def headers(self, dialect: Dialect, request: Request) -> dict[str, str]:
        """Return ours, and the key where the program put its own: some of Anthropic's kind look in one place."""
        ours = {"content-type": "application/json", "accept-encoding": "identity", "user-agent": "evogit"}
        if not isinstance(dialect, Messages):
            return {**ours, "authorization": f"Bearer {self._key}"}
        betas = [each for each in re.split(r"[, ]+", request.headers.get("anthropic-beta", "")) if each in BETAS]
        theirs = {"anthropic-version": request.headers.get("anthropic-version", ""), "anthropic-beta": ",".join(betas)}
        passed = {name: value for name, value in theirs.items() if _PLAIN.fullmatch(value)}
        bearer = "authorization" in request.headers and "x-api-key" not in request.headers
        key = {"authorization": f"Bearer {self._key}"} if bearer else {"x-api-key": self._key}
        return {"anthropic-version": "2023-06-01", **passed, **ours, **key}

    async def close(self) -> None:
        """Close them."""
        await self.client.aclose()


class Watched(Protocol):
    """What a call needs of its session."""

    account: Account
    end: EvoGitError | None

    @property
    def secrets(self) -> tuple[str, ...]:
        """What no program gets to see."""

    def hung_up(self) -> None:
        """The program went away from a call that was sent."""


@dataclass(slots=True, kw_only=True, eq=False)
class Call:
    """One call."""

    session: Watched
    dialect: Dialect
    endpoint: Endpoint
    upstream: Upstream
    caller: Caller
    meter: Meter
    asked: Asked
    reservation: Reservation = field(default_factory=Reservation, init=False)

    async def run(self, request: Request) -> None:
        """Wait for a place, set aside what it costs at most, send, hand back, charge."""
        async with self.endpoint.client.room(), self.upstream.places:
            await self._wait()
            self.reservation = await self._reserve()
            failure, free = "broken off", False
            try:
                await self._exchange(request)
                failure = ""
            except DeniedError as denied:
                failure, free = self._clean(str(denied.ends or denied)), denied.free
                raise
            finally:
                told = self.meter.told
                if failure == "broken off":
                    if told:
                        failure = ""  # a program may leave at the last word
                    else:
                        self.session.hung_up()
                usage = TokenUsage() if free else self.reservation.bound(told or self.meter.so_far, failure)
                self.session.account.charge(self.endpoint, usage, failure, self.reservation)

    async def _reserve(self) -> Reservation:
        """Set aside what the call costs at most, where a limit is in force."""
        asked, dialect = self.asked, self.dialect
        reply = min(asked.reply or self.endpoint.longest_reply, self.endpoint.max_tokens or MOST_REPLY, MOST_REPLY)
        worst = TokenUsage(prompt=asked.prompt, written=asked.prompt if dialect.caches else 0, completion=reply)
        try:
            reservation = await self.session.account.reserve(self.endpoint, worst)
        except SpendingLimitError as error:
            if error.limit and asked.prompt > USUAL_PROMPT:
                error = SpendingLimitError(f"a question would take all {error.limit} left")
            raise DeniedError.ending(error) from None
        except RunEndsError as error:
            raise DeniedError.ending(error) from None
        if reservation.worst and reservation.bounds and asked.unbounded:
            self.session.account.charge(self.endpoint, TokenUsage(), asked.unbounded, reservation)
            raise DeniedError(403, f"expected a question whose cost can be told beforehand, got {asked.unbounded}")
        return reservation

    def _content(self) -> bytes:
        """What is sent, with the ceiling that holds: the program's, the person's or that of what is left."""
        asked, held = self.asked, self.reservation.ceiling
        preferred = self.endpoint.ceiling if self.endpoint.ceiling in self.dialect.limits else self.dialect.limits[0]
        known = (asked.reply, self.endpoint.max_tokens, held)
        ceiling = min((each for each in known if each is not None), default=None)
        heeded = [preferred] if held is not None or not asked.ceilings else asked.ceilings
        self.asked = replace(asked, content=b"")  # the connection has it
        return asked.filled(ceiling, heeded)

    async def _wait(self) -> None:
        """An endpoint that said when to come again is left alone until then, by all programs."""
        loop = asyncio.get_running_loop()
        while True:
            if self.session.end:
                raise DeniedError.ending(self.session.end)
            try:
                self.session.account.check()
            except (SpendingLimitError, RunEndsError) as error:
                raise DeniedError.ending(error) from None
            if (wait := self.upstream.resumes - loop.time()) <= 0:
                break
            if self.upstream.down:
                await self.session.account.wait_out(self.endpoint, self.upstream.down, wait)
            else:
                await self.session.account.pause(wait)

    async def _exchange(self, request: Request) -> None:
        patience = self.endpoint.patience
        timeout = httpx2.Timeout(patience.silence, connect=patience.connect)
        query = "?beta=true" if request.query == "beta=true" else ""
        url = f"{self.upstream.base_url}/{self.dialect.path}{query}"
        content = self._content()
        headers = {**self.upstream.headers(self.dialect, request), "content-length": str(len(content))}
        asking = self.upstream.client.stream("POST", url, content=_pieces(content), headers=headers, timeout=timeout)
        del content
        try:
            async with asyncio.timeout(patience.total), asking as answer:
                if (coding := answer.headers.get("content-encoding", "identity")) != "identity":
                    raise DeniedError(502, f"expected an answer as it is, got one in {coding[:40]!r}")
                if not answer.is_success:
                    raise await self._refusal(answer)
                self.upstream.reached()
                if answer.headers.get("content-type", "").startswith("text/event-stream"):
                    await self._stream(answer)
                else:
                    await self._whole(answer)
        except TimeoutError:
            raise DeniedError(504, f"no complete reply within {patience.total:g} s") from None
        except httpx2.RequestError as error:
            lost = self.endpoint.broken(error, TokenUsage())
            self._note(lost)
            raise DeniedError(502, str(lost), free=isinstance(error, NEVER_ARRIVED)) from None

    async def _stream(self, answer: httpx2.Response) -> None:
        headers = {**self._told(answer), "content-type": "text/event-stream", "cache-control": "no-cache"}
        size = number = 0
        try:
            async for event in whole_events(_parts(answer)):
                size, number = size + len(event), number + 1
                if size > LONGEST_STREAM or number > MOST_EVENTS:
                    raise EndlessEventError
                await asyncio.sleep(0)  # many may have come at once
                told, plain = await self._read("event", event)
                self.meter.read_event(told)
                ceiling = self.reservation.ceiling
                if ceiling is not None and self.meter.bytes > LONGEST_WORDS * ceiling:
                    raise DeniedError(502, f"the endpoint does not heed the ceiling of {ceiling} tokens")
                if self.asked.quiet and told.extra:
                    continue
                if not self.caller.begun:
                    await self.caller.begin(200, headers)
                await self.caller.send(redacted_event(event, plain, self.session.secrets))
        except EndlessEventError:
            raise DeniedError(502, "the reply does not end") from None
        if not self.caller.begun:
            await self.caller.begin(200, headers)
        await self.caller.end()

    async def _whole(self, answer: httpx2.Response) -> None:
        body = await _beginning(answer, LONGEST_EVENT + 1)
        told, plain = await self._read("whole", body) if len(body) <= LONGEST_EVENT else (Told(), body)
        self.meter.read_reply(told, len(body))
        if not told.readable:
            problem = "is not JSON" if len(body) <= LONGEST_EVENT else f"has more than {LONGEST_EVENT} bytes"
            raise DeniedError(502, f"the reply {problem}: {quote(self._clean(body.decode(errors='replace')))}")
        headers = {**self._told(answer), "content-type": "application/json"}
        await self.caller.answer(200, headers, redacted_event(plain, plain, self.session.secrets))

    async def _read(self, kind: Literal["event", "whole"], said: bytes) -> tuple[Told, bytes]:
        """What there is to know of an event or a whole reply, and the same in which every character is itself."""
        path = f"/v1/{self.dialect.path}"
        if len(said) <= INLINE:
            return (read_event if kind == "event" else read_whole)(path, said)
        try:
            told, plain = await self.endpoint.reader.ask({"of": kind, "path": path}, said)
        except UnreadableError:
            return Told(), said
        usage = told.pop("usage")
        return Told(**told, usage=usage and TokenUsage(**usage)), plain

    async def _refusal(self, answer: httpx2.Response) -> DeniedError:
        """What an answer that is an error means for the program and for the run."""
        status = answer.status_code
        said = await _beginning(answer, LONGEST_ERROR)
        fault = self.endpoint.refusal(ErrorAnswer(status, said, answer.headers), TokenUsage())
        self._note(fault)
        wait = retry_after(answer.headers.get("retry-after"))
        if wait and status in (429, 503, 529):
            self.upstream.resumes = asyncio.get_running_loop().time() + min(wait, LONGEST_PAUSE)
        if isinstance(fault, CredentialError):
            return DeniedError.ending(fault)
        if not 400 <= status < 600:
            return DeniedError(502, str(fault), free=True)
        own = read_json(said)
        body = self._clean(json.dumps(own, ensure_ascii=False)) if isinstance(own, dict) else ""
        free = status not in MAY_BE_BILLED
        return DeniedError(status, str(fault), headers=self._told(answer), body=body, free=free)

    def _note(self, fault: Exception) -> None:
        """Have further calls wait where the endpoint is down, and no longer where it answers, if only to refuse."""
        if not isinstance(fault, LostAttemptError) or fault.fault == "question":
            self.upstream.reached()
        elif fault.fault == "endpoint":
            self.upstream.lost(str(fault), self.endpoint.patience.pause)

    def _told(self, answer: httpx2.Response) -> dict[str, str]:
        found = {name: self._clean(answer.headers.get(name, "")) for name in TOLD}
        return {name: value for name, value in found.items() if _PLAIN.fullmatch(value)}

    def _clean(self, text: str) -> str:
        return redacted(text, self.session.secrets)


async def _pieces(content: bytes) -> AsyncIterator[bytes]:
    """A content in pieces, as a connection copies what it cannot send at once."""
    for at in range(0, len(content), PIECE):
        yield content[at : at + PIECE]


async def _parts(answer: httpx2.Response) -> AsyncIterator[bytes]:
    """An answer as it comes, in turns with all else: an endpoint may send a thousand pieces at once."""
    async for part in answer.aiter_raw():
        yield part
        await asyncio.sleep(0)


async def _beginning(answer: httpx2.Response, most: int) -> bytes:
    """The first bytes of an answer."""
    body = bytearray()
    async for part in _parts(answer):
        body += part
        if len(body) >= most:
            break
    return bytes(body[:most])
