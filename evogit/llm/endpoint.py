"""A model behind an OpenAI-compatible endpoint: time-outs, retries, costs. Importing it takes a third of a second."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import re
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import httpx2
import openai
from msgspec import Struct
from msgspec.structs import replace

from evogit.core import UsageError
from evogit.llm import (
    Account,
    CredentialError,
    Price,
    Question,
    RefusingModelError,
    Reservation,
    TokenUsage,
    UnknownModelError,
    estimate_tokens,
    set_aside,
)
from evogit.llm.bounds import EACH_MESSAGE, PREAMBLE, USUAL_REPLY, most_tokens
from evogit.llm.gateway.events import EndlessEventError, redacted, whole_events
from evogit.llm.reader import INLINE, ReaderProcess
from evogit.llm.replies import (
    LONGEST_BODY,
    LONGEST_ERROR,
    LONGEST_STREAM,
    MAY_BE_BILLED,
    NAMES_STREAM,
    REFUSALS,
    UNAVAILABLE,
    Fault,
    LostAttemptError,
    StreamedReply,
    StreamPiece,
    piece_of,
    plain_json,
    quote,
    read_error,
    retry_after,
)
from evogit.llm.thoughts import without_thoughts

OPENAI = "api.openai.com"

ORDINARY_HEADERS = re.compile(
    "accept(-encoding)?|authorization|connection|content-(length|type)|host|transfer-encoding|user-agent|x-stainless-.*",
    re.IGNORECASE,
)
"""What any endpoint is sent."""

LONGEST_PAUSE = 60.0  # seconds between two attempts at most, where the endpoint asks for no longer wait
LONGEST_OUTAGE_PAUSE = 300.0  # the same once all attempts were lost and the endpoint is waited for

DOUBTFUL = 20
"""Further attempts, of an hour or more, after which a question is given up if it may be what brings the endpoint down.
"""

ASLEEP = 30.0  # seconds by which the clocks of a machine that slept differ
REFUSALS_IN_A_ROW = 3  # questions refused with no reply in between: nothing will do

NEVER_ARRIVED = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
"""Errors after which the endpoint has not got the question, so that it cannot charge for it."""

NO_CREDIT = frozenset({"402", "insufficient_quota"})  # OpenRouter's in a stream are HTTP's statuses
CROWD = 16  # questions that one client of openai's has in flight


class ErrorAnswer(openai.OpenAIError):
    """An answer with a status that is an error, and the beginning of what it says; openai's own hold all of it."""

    def __init__(self, status: int, said: bytes, headers: Mapping[str, str]) -> None:
        super().__init__(f"status {status}")
        self.status = status
        self.said = said.decode(errors="replace")
        self.headers = headers


class EncodedAnswer(openai.OpenAIError):
    """An answer that would have to be unpacked."""


async def _drop_headers(request: httpx2.Request) -> None:
    """Take out what openai's client adds from OPENAI_ORG_ID and the like, which is for one endpoint alone."""
    if request.url.host != OPENAI and not str(request.url).startswith(os.environ.get("OPENAI_BASE_URL") or "/"):
        for name in [name for name in request.headers if not ORDINARY_HEADERS.fullmatch(name)]:
            del request.headers[name]


async def _refuse(response: httpx2.Response) -> None:
    """Raise what is an error, or compressed and so maybe a million times as long, before it is read to its end."""
    if (coding := response.headers.get("content-encoding", "identity")) != "identity":
        raise EncodedAnswer(f"expected an answer as it is, got one in {coding[:40]!r}")
    if response.is_success:
        return
    said = bytearray()
    async for part in response.aiter_bytes():
        said += part
        await asyncio.sleep(0)
        if len(said) > LONGEST_ERROR:
            break
    raise ErrorAnswer(response.status_code, bytes(said[:LONGEST_ERROR]), response.headers)


def _awake() -> float:
    """By how much the event loop's clock is ahead of the wall's, which goes on while the machine sleeps."""
    return asyncio.get_running_loop().time() - time.time()


class _TooLongError(Exception):
    """A reply has more than so many bytes; `size` of them came."""

    def __init__(self, most: int, size: int) -> None:
        super().__init__(f"the reply has more than {most} bytes")
        self.size = size


class _BrokenOffError(Exception):
    """A stream ended before the reply did."""


async def _parts(answer: Any, most: int) -> AsyncIterator[bytes]:
    """Yield a body as it comes, in turns with all else. Raises _TooLongError: it has more than `most` bytes."""
    size = 0
    async for part in answer.iter_bytes():
        size += len(part)
        yield part
        await asyncio.sleep(0)
        if size > most:
            raise _TooLongError(most, size)


FAULTS = (
    ErrorAnswer,
    EncodedAnswer,
    _TooLongError,
    _BrokenOffError,
    TimeoutError,
    openai.APIConnectionError,
    httpx2.RequestError,
)
"""Errors by which an attempt is lost."""


class Patience(Struct, frozen=True, kw_only=True):
    """The time limits of an endpoint, in seconds; `first_byte`: until its first byte, None: as long as `total`."""

    first_byte: float | None = None
    total: float = 600.0

    connect: ClassVar[float] = 10.0  # seconds
    retries: ClassVar[int] = 5  # attempts after the first one, where another one may help
    pause: ClassVar[float] = 1.0  # seconds before the second attempt; it doubles from attempt to attempt

    @property
    def silence(self) -> float:
        """How long nothing may come."""
        return self.total if self.first_byte is None else self.first_byte

    @property
    def late(self) -> float:
        """How long what was counted is waited for when the text of a reply has come."""
        return self.total / 60


@dataclass(slots=True)
class Client:
    """Clients of openai's for CROWD questions each, as each question costs time for each; `at_once` limits them all."""

    base_url: str
    api_key: str
    at_once: int | None = None
    _room: asyncio.Semaphore | None = None
    _busy: dict[openai.AsyncOpenAI, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Make the first client. Raises UsageError: the proxy that the environment names cannot be used."""
        try:
            self._busy[self._another()] = 0
        except (ImportError, ValueError, httpx2.InvalidURL) as error:
            raise UsageError(
                f"expected a proxy that can be used in HTTPS_PROXY, HTTP_PROXY or ALL_PROXY, or none: {error}"
            ) from None

    def narrow(self, at_once: int | None) -> None:
        """Heed the limit of one more model, too; the lowest one counts. Before the first question."""
        limits = [each for each in (self.at_once, at_once) if each is not None]
        self.at_once = min(limits, default=None)

    @asynccontextmanager
    async def room(self) -> AsyncIterator[None]:
        """The time of one question; it begins once there are few enough."""
        if self.at_once is None:
            yield
            return
        self._room = self._room or asyncio.Semaphore(self.at_once)
        async with self._room:
            yield

    @contextmanager
    def borrow(self) -> Iterator[openai.AsyncOpenAI]:
        """A client that has room for another question."""
        client = next((each for each, questions in self._busy.items() if questions < CROWD), None) or self._another()
        self._busy[client] = self._busy.get(client, 0) + 1
        try:
            yield client
        finally:
            self._busy[client] -= 1

    def _another(self) -> openai.AsyncOpenAI:
        return openai.AsyncOpenAI(
            base_url=self.base_url,
            api_key=self.api_key,
            max_retries=0,
            default_headers={"accept-encoding": "identity", "authorization": f"Bearer {self.api_key}"},
            http_client=openai.DefaultAsyncHttpxClient(
                event_hooks={"request": [_drop_headers], "response": [_refuse]}, follow_redirects=False
            ),
        )

    async def close(self) -> None:
        """Close all connections."""
        for client in self._busy:
            await client.close()


@dataclass(slots=True, kw_only=True)
class Endpoint:
    """The `llm.Model` behind an endpoint."""

    name: str
    id: str
    price: Price | None
    context: int
    client: Client
    key_from: str  # where the key comes from, for people
    secrets: tuple[str, ...]  # redacted from all that the endpoint says
    rng: random.Random
    options: Mapping[str, Any] = field(default_factory=dict)  # sent with every question
    max_tokens: int | None = None  # of a reply; None: as many as the endpoint likes, while no limit is in force
    ceiling: str = "max_tokens"  # the endpoint's name of that
    patience: Patience = field(default_factory=Patience)
    reader: ReaderProcess = field(default_factory=ReaderProcess)  # reads what is long; who made it ends it
    streams: bool = True  # replies are asked for in pieces, until the endpoint refuses that
    suspect: bool = False  # the last question was lost in a way that an outage could explain
    refused: int = 0  # questions in a row

    async def ask(self, question: Question, account: Account) -> str:
        """Return the reply's text, after as many attempts as patience and the account allow. Raises as `Model.ask`."""
        prompt = sum(estimate_tokens(message.content) for message in question.messages)
        for attempt in itertools.count():
            try:
                async with self.client.room():
                    # what one attempt costs at most, if the endpoint heeds the ceiling that it is sent
                    most = PREAMBLE + sum(EACH_MESSAGE + most_tokens(each.content) for each in question.messages)
                    worst = TokenUsage(prompt=most, completion=self.longest_reply)
                    reservation = await set_aside(account, self, worst)
                    text = await self._charged(question, prompt, account, reservation)
            except LostAttemptError as lost:
                await self._wait(attempt, lost, account)
            else:
                self.suspect, self.refused = False, 0
                return without_thoughts(text)
        raise AssertionError("the loop ends by a reply or an error")

    async def _wait(self, attempt: int, lost: LostAttemptError, account: Account) -> None:
        """Pause before the next attempt. Raises LostAttemptError: there is none; RefusingModelError: nor ever."""
        if lost.fault == "question":
            self.refused += 1
            if self.refused >= REFUSALS_IN_A_ROW:
                raise RefusingModelError(
                    f"{self._where} refused {self.refused} questions to {self.name} in a row, the last one so: {lost}; "
                    f"see [models.{self.name}] of your settings"
                )
        if not lost.again:
            raise lost
        if attempt < self.patience.retries:
            await account.pause(self._pause(attempt, lost.wait, LONGEST_PAUSE))
            return
        doubtful = self.suspect and attempt < self.patience.retries + DOUBTFUL
        down = lost.fault == "endpoint" or (lost.fault == "unknown" and doubtful)
        self.suspect = lost.fault in ("endpoint", "unknown")
        seconds = self._pause(attempt, lost.wait, LONGEST_OUTAGE_PAUSE)
        if not (down and await account.wait_out(self, str(lost), seconds)):
            raise lost

    @property
    def longest_reply(self) -> int:
        """Tokens that a reply has at most where a limit is in force."""
        return self.max_tokens or min(USUAL_REPLY, self.context)

    async def _charged(self, question: Question, prompt: int, account: Account, reservation: Reservation) -> str:
        """One attempt, which is charged whatever comes of it."""
        failure, usage, streamed = "broken off", TokenUsage(prompt=prompt, estimated=True), StreamedReply()
        try:
            text, usage = await self._attempt(question, prompt, reservation.ceiling or self.max_tokens, streamed)
            failure = ""
        except asyncio.CancelledError:
            usage = replace(usage, completion=streamed.tokens)
            raise
        except LostAttemptError as lost:
            failure, usage = str(lost), lost.usage
            raise
        except (CredentialError, UnknownModelError) as error:
            failure, usage = str(error), TokenUsage()
            raise
        finally:
            account.charge(self, reservation.bound(usage, failure), failure, reservation)
        return text

    def _pause(self, attempt: int, wait: float | None, longest: float) -> float:
        """Seconds until the next attempt: they grow, and differ between agents that failed at the same time."""
        grown = min(self.patience.pause * 2 ** min(attempt, 40), longest) * self.rng.uniform(0.5, 1.0)
        return grown if wait is None else wait + self.rng.uniform(0.0, min(self.patience.pause, wait))

    async def _attempt(
        self, question: Question, prompt: int, most: int | None, streamed: StreamedReply
    ) -> tuple[str, TokenUsage]:
        awake = _awake()
        try:
            plain = await self._answered(question, most, streamed)
        except FAULTS as error:
            if not streamed.complete:
                lost = self._lost(error, prompt, streamed)
                if isinstance(lost, LostAttemptError) and awake - _awake() > ASLEEP:  # nobody's fault
                    lost = LostAttemptError(f"the machine slept: {lost}", lost.usage, again=True, fault="endpoint")
                raise lost from None
            plain = streamed.whole  # at most its usage did not come
        return await self.reader.reply(self._redacted(plain), prompt)

    async def _answered(self, question: Question, most: int | None, streamed: StreamedReply) -> str:
        """JSON of a whole reply; an endpoint that refuses to stream has charged nothing, and is asked without."""
        streams = self.streams
        try:
            return await self._exchange(question, most, streamed, streams=streams)
        except ErrorAnswer as error:
            if not (streams and error.status in REFUSALS and NAMES_STREAM.search(error.said)):
                raise
        plain = await self._exchange(question, most, streamed, streams=False)
        self.streams = False
        return plain

    async def _exchange(self, question: Question, most: int | None, streamed: StreamedReply, *, streams: bool) -> str:
        async with asyncio.timeout(self.patience.total), self._answer(question, most, streams=streams) as answer:
            if answer.headers.get("content-type", "").startswith("text/event-stream"):
                return await self._in_pieces(answer, streamed)
            body = bytearray()
            async for part in _parts(answer, LONGEST_BODY):
                body += part
        text = body.decode(errors="replace")
        return plain_json(text) if len(text) <= INLINE else await self.reader.plain(text)

    async def _in_pieces(self, answer: Any, streamed: StreamedReply) -> str:
        head = b""
        try:
            async with asyncio.timeout(None) as late:
                async for event in whole_events(_parts(answer, LONGEST_STREAM)):
                    head = head or event[:LONGEST_ERROR]
                    piece = piece_of(event) if len(event) <= INLINE else await self.reader.piece(event)
                    self._take(piece, streamed)
                    if piece.last:
                        break
                    if streamed.complete and late.when() is None:
                        late.reschedule(asyncio.get_running_loop().time() + self.patience.late)
        except EndlessEventError:
            raise _TooLongError(LONGEST_BODY, LONGEST_BODY) from None
        if streamed.complete:
            return streamed.whole
        if streamed.tokens or b"data:" in head or not head:
            raise _BrokenOffError("the connection broke: the stream ended before the reply did")
        said = quote(self._redacted(plain_json(head.decode(errors="replace"))))
        raise _BrokenOffError(f"the reply is not a stream of events: {said}")

    def _take(self, piece: StreamPiece, streamed: StreamedReply) -> None:
        if piece.error:
            code, said = read_error(self._redacted(plain_json(piece.error)))
            if code in NO_CREDIT and not streamed.tokens:
                raise CredentialError(f"{self._where} says that the account has no credit ({said})")
            raise _BrokenOffError(f"the endpoint broke the reply off: {said}")
        streamed.take(piece)
        if streamed.size > LONGEST_BODY:
            raise _TooLongError(LONGEST_BODY, streamed.size)

    @asynccontextmanager
    async def _answer(self, question: Question, most: int | None, *, streams: bool) -> AsyncIterator[Any]:
        patience = self.patience
        options = self.options if most is None else {**self.options, self.ceiling: most}
        if streams:
            options = {**options, "stream": True, "stream_options": {"include_usage": True}}
        messages = [{"role": each.role, "content": each.content} for each in question.messages]
        with self.client.borrow() as client:
            async with client.chat.completions.with_streaming_response.create(
                model=self.id,
                messages=(),  # the client takes milliseconds to look for files to encode in messages that it knows of
                timeout=openai.Timeout(patience.silence, connect=patience.connect),
                extra_body={"messages": messages, **options},
            ) as answer:
                yield answer

    def _lost(self, error: Exception, prompt: int, streamed: StreamedReply) -> Exception:
        """What becomes of an attempt that brought no reply, and what it is taken to have cost."""
        unknown = TokenUsage(prompt=prompt, completion=streamed.tokens, estimated=True)
        match error:
            case ErrorAnswer():
                return self.refusal(error, unknown)
            case _TooLongError():
                return LostAttemptError(str(error), replace(unknown, completion=error.size // 4), again=False)
            case TimeoutError():  # the same question would take as long again, and be paid again
                said = f"no complete reply within {self.patience.total:g} s"
                return LostAttemptError(said, unknown, again=False)
            case EncodedAnswer() | _BrokenOffError():
                return LostAttemptError(str(error), unknown, again=True, fault="unknown")
        return self.broken(error, unknown)

    def broken(self, error: Exception, unknown: TokenUsage) -> LostAttemptError:
        """No complete answer came."""
        cause = error.__cause__ if isinstance(error, openai.APIConnectionError) and error.__cause__ else error
        usage = TokenUsage() if isinstance(cause, NEVER_ARRIVED) else unknown
        if isinstance(cause, httpx2.ConnectTimeout):
            what = f"no connection within {self.patience.connect:g} s"
        elif isinstance(cause, httpx2.TimeoutException):
            what = f"nothing came for {self.patience.silence:g} s"
        else:
            what = f"the connection broke: {str(cause) or type(cause).__name__}"
        fault: Fault = "endpoint" if isinstance(cause, NEVER_ARRIVED) else "unknown"
        return LostAttemptError(what, usage, again=True, fault=fault)

    def refusal(self, error: ErrorAnswer, unknown: TokenUsage) -> Exception:
        """What an answer that is an error means for the run; `unknown` is what it costs where it may be billed."""
        status = error.status
        code, said = read_error(self._redacted(plain_json(error.said)))
        if status in (401, 403):
            return CredentialError(
                f"{self._where} does not accept the key from {self.key_from} ({status}: {said}); check it, or name "
                f"another in [models] of your settings"
            )
        if status == 402 or code in NO_CREDIT:
            return CredentialError(f"{self._where} says that the account has no credit ({status}: {said})")
        if status == 404:
            return UnknownModelError(f"{self._where} has no model {self.id!r}, or its address is wrong (404: {said})")
        if elsewhere := error.headers.get("location", "") if status < 400 else "":
            said = f"it redirects to {quote(self._redacted(elsewhere))}, which was not agreed to; see base_url"
        again = status in (408, 409, 429) or status >= 500 or bool(elsewhere)
        wait = retry_after(error.headers.get("retry-after"))
        usage = unknown if status in MAY_BE_BILLED else TokenUsage()
        fault: Fault = "endpoint" if status in UNAVAILABLE else "unknown" if again else "question"
        return LostAttemptError(f"the endpoint answered {status}: {said}", usage, again=again, wait=wait, fault=fault)

    @property
    def _where(self) -> str:
        return self.client.base_url.rstrip("/")

    def _redacted(self, text: str) -> str:
        """What the endpoint said, as `plain_json` spells it, without secrets."""
        return redacted(text, self.secrets)
