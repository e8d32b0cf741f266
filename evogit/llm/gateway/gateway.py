"""Access to models for programs without a key or a network: a Unix socket and an account for each program."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evogit.core import EvoGitError, UsageError
from evogit.llm import Account
from evogit.llm.endpoint import CROWD, Endpoint
from evogit.llm.gateway.forwarding import Call, DeniedError, Meter, Upstream
from evogit.llm.gateway.protocols import DIALECTS, Chat, Dialect, Messages
from evogit.llm.gateway.reading import Asked, UnreadableError
from evogit.llm.gateway.serving import MOST_IN_MEMORY, Caller, RejectedError, Request, Room
from evogit.llm.reader import ReaderProcess
from evogit.llm.registry import OpenModels

SOCKET = "models.sock"  # the name of a session's socket in its folder
MOST_CONNECTIONS = 32  # of one session; more are hung up on
ACCEPTED = 8  # connections that are taken in one turn of the loop
MOST_CALLS = 8  # of one session at once; others wait, so that no session takes all places at an endpoint
LONGEST_SOCKET = 100  # bytes of a socket's path, of which Linux takes 107
PAUSE_AFTER_END = 0.1  # seconds before each refusal of an ended session: programs that ask for ever keep nothing busy
MOST_HANG_UPS = 3  # calls of a session that its program went away from; each is charged all that was set aside for it
COUNTED_EVERY = 0.1  # seconds between two counts of tokens of a session, which cost nothing but time of ours
COUNTED = 8  # bytes that are counted for each token of a model's context: who asks wants to know whether it is too much
FREE_EVERY = 0.005  # seconds between two answers of a session that ask nobody, such as lists of models
LONGEST_HOLD = 10.0  # seconds at most that a call is held after its endpoint failed; it doubles with each in a row

JSON = {"content-type": "application/json"}


class HungUpError(EvoGitError):
    """A program went away from its calls too often."""


class Gateway:
    """The way to models of one engine, `calls` at a time to one endpoint; close it after its sessions."""

    def __init__(self, models: OpenModels, *, calls: int = CROWD) -> None:
        self._models = models
        self._calls = calls
        self._upstreams: dict[tuple[str, str], Upstream] = {}
        self.reader = ReaderProcess()  # of requests alone: endpoints' replies do not wait for what programs send

    def session(self, account: Account, models: Sequence[str]) -> GatewaySession:
        """Let a program ask these models. Raises CredentialError: no key; UsageError: no models, or no endpoint."""
        if not models:
            raise UsageError("expected a model for a program that asks models, got none")
        endpoints = [self._models.endpoint_of(name) for name in models]
        return GatewaySession(self, account, {each.name: each for each in endpoints})

    def upstream(self, endpoint: Endpoint) -> Upstream:
        """The connections to an endpoint, which all its models and sessions share."""
        where = (endpoint.client.base_url, endpoint.client.api_key)
        if where not in self._upstreams:
            self._upstreams[where] = Upstream(*where, calls=self._calls)
        return self._upstreams[where]

    @property
    def secrets(self) -> tuple[str, ...]:
        """What no program gets to see."""
        return self._models.secrets

    async def close(self) -> None:
        """Close all connections to endpoints."""
        await self.reader.close()
        for upstream in self._upstreams.values():
            await upstream.close()


@dataclass(slots=True, eq=False)
class GatewaySession:
    """What one program asks. Once `ended` is set no further call can succeed, and `end` says why."""

    gateway: Gateway
    account: Account
    models: dict[str, Endpoint]
    end: EvoGitError | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    _places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MOST_CALLS))
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock)
    _freely: asyncio.Lock = field(default_factory=asyncio.Lock)
    _failures: int = 0
    _hang_ups: int = 0
    _room: Room = field(default_factory=lambda: Room(MOST_IN_MEMORY))

    @contextlib.asynccontextmanager
    async def listen(self, folder: Path, *, mode: int = 0o600) -> AsyncIterator[Path]:
        """Serve on a socket for this user alone (`mode` 0o666: for a container's). Raises UsageError: no socket."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        place = folder / SOCKET
        if len(bytes(place)) > LONGEST_SOCKET:
            raise UsageError(f"expected a folder of at most {LONGEST_SOCKET - len(SOCKET) - 1} bytes, got {folder}")
        tasks: set[asyncio.Task[None]] = set()

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if len(tasks) >= MOST_CONNECTIONS or not server.is_serving():
                writer.transport.abort()
                return
            tasks.add(task := asyncio.ensure_future(self.serve(reader, writer)))
            task.add_done_callback(tasks.discard)
            task.add_done_callback(lambda _: writer.transport.abort())  # also if it never began

        listening = socket.socket(socket.AF_UNIX)
        try:
            listening.bind(str(place))
            place.chmod(mode)  # nobody can connect before it listens
            server = await asyncio.start_unix_server(accept, sock=listening, backlog=ACCEPTED)
        except OSError as error:
            listening.close()
            raise UsageError(f"cannot make the socket {place}: {error.strerror}") from error
        try:
            yield place
        finally:
            server.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            place.unlink(missing_ok=True)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until it ends; `listen` does for every one, a tunnel may do so without a socket."""
        caller = Caller(reader, writer, self._room)
        try:
            while request := await caller.request():
                await caller.attend(self._answer_in_turn(request, caller))
                caller.free()
            await caller.close()
        except RejectedError as error:
            caller.free()
            said = Chat().error(error.status, None, str(error))
            with contextlib.suppress(OSError):  # the program may be gone
                await caller.answer(error.status, {**JSON, "connection": "close"}, json.dumps(said).encode())
                await caller.close()
        except OSError:
            pass  # the program is gone
        finally:
            caller.free()
            writer.transport.abort()

    async def _answer_in_turn(self, request: Request, caller: Caller) -> None:
        async with self._places:
            await self._answer(request, caller)

    async def _answer(self, request: Request, caller: Caller) -> None:
        anthropic = "anthropic-version" in request.headers or request.path.startswith("/v1/messages")
        dialect = DIALECTS.get(request.path) or (Messages() if anthropic else Chat())  # whose errors it understands
        try:
            match request.method, request.path:
                case "POST", path if path in DIALECTS:
                    await self._call(dialect, request, caller)
                case "POST", "/v1/messages/count_tokens":
                    counted = {"input_tokens": await self._count(request)}
                    await caller.answer(200, JSON, json.dumps(counted).encode())
                case "GET", path if path.startswith("/v1/models"):
                    await self._free()
                    await caller.answer(200, JSON, json.dumps(self._listed(path)).encode())
                case method, path:
                    await self._free()
                    known = ", ".join(f"POST {known}" for known in DIALECTS)
                    raise DeniedError(403, f"expected {known} or GET /v1/models, got {method} {path[:80]}")
        except UnreadableError as error:
            await self._deny(dialect, DeniedError(error.status, str(error)), caller)
        except DeniedError as denied:
            if denied.ends:
                self._end(denied.ends)
            await self._deny(dialect, denied, caller)

    async def _deny(self, dialect: Dialect, denied: DeniedError, caller: Caller) -> None:
        if caller.begun:
            await caller.send(dialect.parting(denied.status, denied.code, str(denied)))
            await caller.end()
            return
        headers = {**JSON, **denied.headers}
        if denied.ends:
            headers["x-should-retry"] = "false"  # both makers' clients heed it
            await asyncio.sleep(PAUSE_AFTER_END)
        said = denied.body or json.dumps(dialect.error(denied.status, denied.code, str(denied)))
        await caller.answer(denied.status, headers, said.encode())

    async def _call(self, dialect: Dialect, request: Request, caller: Caller) -> None:
        if self.end:  # before anything is read: a session that ended takes no time
            raise DeniedError.ending(self.end)
        models = {**{each.id: each for each in reversed(self.models.values())}, **self.models}
        pause = next(iter(models.values())).patience.pause
        try:
            async with self._reading:
                known = {name: each.id for name, each in models.items()}
                told, content = await self._read(request, of="request", path=request.path, models=known)
            asked = Asked(**told, content=content)
            endpoint = models[asked.model]
            call = Call(
                session=self,
                dialect=dialect,
                endpoint=endpoint,
                upstream=self.gateway.upstream(endpoint),
                caller=caller,
                meter=Meter(asked.estimate, asked.size),
                asked=asked,
            )
            del asked, content  # the call has it, until it is sent
            pause = call.endpoint.patience.pause
            await call.run(request)
            self._failures = 0
        except UnreadableError as error:
            await self._wait(pause)
            raise DeniedError(error.status, str(error)) from None
        except DeniedError as denied:
            if not denied.ends:
                await self._wait(pause)
            raise

    async def _read(self, request: Request, **asked: Any) -> tuple[dict[str, Any], bytes]:
        """Read a request; leaving meanwhile counts as hanging up. Raises UnreadableError: it isn't passed on."""
        try:
            return await self.gateway.reader.ask(asked, request.body)
        except asyncio.CancelledError:
            self.hung_up()
            raise
        finally:
            request.body.clear()

    async def _wait(self, pause: float) -> None:
        """Hold a call that brought nothing, longer each time in a row."""
        self._failures += 1
        await self.account.pause(min(pause * 2 ** min(self._failures - 1, 16), LONGEST_HOLD))

    async def _count(self, request: Request) -> int:
        """How many tokens a request has, about; so often and of so much that nobody else waits for it."""
        if self.end:
            raise DeniedError.ending(self.end)
        most = COUNTED * max(each.context for each in self.models.values())
        if len(request.body) > most:
            raise DeniedError(413, f"expected a body of at most {most} bytes to count")
        async with self._reading:
            await asyncio.sleep(COUNTED_EVERY)
            told, _ = await self._read(request, of="count")
            return int(told["tokens"])

    async def _free(self) -> None:
        """Answers that take nobody's time but ours come one after the other."""
        async with self._freely:
            await asyncio.sleep(FREE_EVERY)

    def hung_up(self) -> None:
        """The program went away from a call that was sent; a few times are an accident."""
        self._hang_ups += 1
        if self._hang_ups >= MOST_HANG_UPS:
            self._end(HungUpError(f"the program hung up on {self._hang_ups} calls before they were answered"))

    def _end(self, why: EvoGitError) -> None:
        if not self.end:
            self.end = why
            self.ended.set()

    @property
    def secrets(self) -> tuple[str, ...]:
        """What the program does not get to see."""
        return self.gateway.secrets

    def _listed(self, path: str) -> dict[str, object]:
        """The models as both makers list them, or one of them."""
        names = list(dict.fromkeys(name for each in self.models.values() for name in (each.name, each.id)))
        openai = {"object": "model", "created": 0, "owned_by": "evogit"}
        anthropic = {"type": "model", "created_at": "1970-01-01T00:00:00Z"}
        models = [{"id": name, "display_name": name, **openai, **anthropic} for name in names]
        if path == "/v1/models":
            ends = {"first_id": names[0], "last_id": names[-1], "has_more": False}
            return {"object": "list", "data": models, **ends}
        for model in models:
            if path == f"/v1/models/{model['id']}":
                return model
        raise DeniedError(403, f"expected one of the models {', '.join(names)}; got {path[:80]}")
