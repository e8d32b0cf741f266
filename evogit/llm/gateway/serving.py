"""HTTP/1.1 for one connection of an untrusted client. h11 knows the syntax; here are limits and time-outs."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any

import h11
from msgspec import Struct, field

from evogit.llm.gateway.reading import LONGEST_REQUEST

SLOWEST_REQUEST = 60.0  # seconds from the head of a request to its end
LONGEST_LINGER = 2.0  # seconds that a client is given to read a refusal before it has sent all
MOST_IN_MEMORY = 16_000_000  # bytes of all bodies of one session; others wait in their sockets
FEW_PIECES = 1000  # pieces of a body that may be of any size; all more have SMALLEST_PIECE bytes at least, on average
SMALLEST_PIECE = 256
AT_ONCE = 65536  # bytes that are read at once, and that may come before an answer is done


class RejectedError(Exception):
    """A request that is not even looked at; `status` says why in HTTP's way."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


TOO_LONG = RejectedError(413, f"expected a body of at most {LONGEST_REQUEST} bytes")


class Request(Struct, frozen=True, kw_only=True):
    """What a client asks for; names of headers are in lower case."""

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytearray = field(default_factory=bytearray)  # emptied when it was read


class Room:
    """What the bodies of requests may take of our memory, in bytes; who comes first gets it first."""

    def __init__(self, size: int) -> None:
        self._left = size
        self._turn = asyncio.Lock()
        self._given = asyncio.Event()

    async def take(self, size: int) -> None:
        """Wait until so many are left, which are all in the end, as nobody holds some and waits for more."""
        async with self._turn:
            while self._left < size:
                self._given.clear()
                await self._given.wait()
            self._left -= size

    def give(self, size: int) -> None:
        """Take no more of them."""
        self._left += size
        self._given.set()


class Caller:
    """The client at the other end of a connection; what it sends is held in `room`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, room: Room) -> None:
        self._room = room
        self._held = 0
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.SERVER)
        self._method = b""
        # whether an answer to the last request has begun, so that its status can no longer be changed
        self.begun = False

    async def request(self) -> Request | None:
        """Return the next request, None after the last. Raises ConnectionError: the client is gone; RejectedError."""
        if self._http.our_state is not h11.IDLE:
            if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
                return None
            self._http.start_next_cycle()
        self.begun = False
        try:
            head = await self._event()
            if not isinstance(head, h11.Request):
                return None
            size = _size(head)
            await self._room.take(size)
            self._held = size
            async with asyncio.timeout(SLOWEST_REQUEST):
                return await self._whole(head)
        except h11.RemoteProtocolError as error:
            if self._http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
                return None
            raise RejectedError(error.error_status_hint, f"expected HTTP/1.1: {error}") from None
        except TimeoutError:
            raise RejectedError(408, f"the request took more than {SLOWEST_REQUEST:g} s") from None

    async def _whole(self, head: h11.Request) -> Request:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
        self._method = head.method
        if headers.get("content-encoding", "identity") != "identity":
            raise RejectedError(415, f"expected a body as it is, got one in {headers['content-encoding']!r}")
        body, pieces = bytearray(), 0
        while isinstance(event := await self._event(), h11.Data):
            body += event.data
            pieces += 1
            if len(body) > LONGEST_REQUEST:
                raise TOO_LONG
            if pieces > FEW_PIECES + len(body) // SMALLEST_PIECE:
                raise RejectedError(413, "expected a body in fewer pieces")
            await asyncio.sleep(0)  # many may have come at once
        self.free(self._held - len(body))
        path, _, query = head.target.decode("latin-1").partition("?")
        return Request(method=head.method.decode(), path=path, query=query, headers=headers, body=body)

    def free(self, size: int | None = None) -> None:
        """Hold so many bytes less, or none."""
        size = self._held if size is None else size
        self._held -= size
        self._room.give(size)

    async def _event(self) -> Any:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            if self._http.they_are_waiting_for_100_continue:
                await self._send(h11.InformationalResponse(status_code=100, headers=[]))
            self._http.receive_data(await self._reader.read(AT_ONCE))
        return event

    async def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Begin an answer."""
        self.begun = True
        await self._send(h11.Response(status_code=status, headers=list(headers.items())))

    async def send(self, data: bytes) -> None:
        """Go on with it, once the client has taken what came before."""
        if self._method != b"HEAD":
            await self._send(h11.Data(data=data))

    async def end(self) -> None:
        """That was all."""
        await self._send(h11.EndOfMessage())

    async def answer(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """A whole answer."""
        await self.begin(status, {**headers, "content-length": str(len(body))})
        await self.send(body)
        await self.end()

    async def _send(self, event: h11.Event) -> None:
        if data := self._http.send(event):
            self._writer.write(data)
            await self._writer.drain()

    async def attend(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something while the client is there. Raises ConnectionResetError: it left, the work was cancelled."""
        working, gone = asyncio.ensure_future(work), asyncio.ensure_future(self._gone())
        try:
            await asyncio.wait((working, gone), return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                raise ConnectionResetError
            working.result()
        finally:
            working.cancel()
            gone.cancel()
            await asyncio.gather(working, gone, return_exceptions=True)

    async def _gone(self) -> None:
        """Return when the client hangs up, or sends more than anybody would before it has the answer."""
        while len(self._http.trailing_data[0]) < AT_ONCE and (data := await self._reader.read(AT_ONCE)):
            self._http.receive_data(data)

    async def close(self) -> None:
        """Hang up, when the client has read the answer or had the time to."""
        try:
            async with asyncio.timeout(LONGEST_LINGER):
                if self._writer.can_write_eof():
                    self._writer.write_eof()
                while await self._reader.read(AT_ONCE):
                    pass
        except (TimeoutError, OSError):
            pass  # it had its time, or is gone already
        finally:
            self._writer.transport.abort()


def _size(head: h11.Request) -> int:
    """Bytes of a body at most, before it comes. Raises RejectedError: it is too long."""
    headers = dict(head.headers)
    if b"transfer-encoding" in headers:
        return LONGEST_REQUEST
    if (size := int(headers.get(b"content-length", 0))) > LONGEST_REQUEST:
        raise TOO_LONG
    return size
