"""A small OpenAI-compatible server that can misbehave; alone: `python tests/openai_server.py --latency 2`.

In tests: `with serve([refusal(429, retry_after="0"), reply("hello")]) as server:` and give a model `server.url`. Every
request takes the next behaviour, the last one for ever after. A behaviour may be a function of the request. What came
in is in `server.requests`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Request:
    path: str
    headers: Mapping[str, str]
    """With lower-case names."""
    text: str

    @property
    def body(self) -> Any:
        return json.loads(self.text)

    @property
    def prompt(self) -> str:
        """All messages as one text."""
        return "\n".join(message["content"] for message in self.body["messages"])


@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """What becomes of a request, `latency` seconds after it came."""

    status: int = 200
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    latency: float = 0.0
    pieces: Sequence[str] = ()
    """Instead of `body`: a stream, `gap` seconds before each; a fault comes after all of them."""
    gap: float = 0.0
    fault: Literal["", "reset", "silent", "stalled", "cut"] = ""
    """`reset`: the connection ends without an answer, `cut`: in the middle of the body; `silent` and `stalled` are the
    same places, but the connection stays and nothing more comes."""


Behaving = Behaviour | Callable[[Request], Behaviour]


def reply(
    text: str | None, *, prompt: int = 100, cached: int = 0, completion: int = 20, latency: float = 0.0, fault: Any = ""
) -> Behaviour:
    """A complete answer."""
    return answer({"content": text}, prompt=prompt, cached=cached, completion=completion, latency=latency, fault=fault)


def answer(
    message: Mapping[str, Any],
    *,
    finish: str = "stop",
    prompt: int = 100,
    cached: int = 0,
    completion: int = 20,
    latency: float = 0.0,
    fault: Any = "",
) -> Behaviour:
    """An answer with any message, such as one with a refusal."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    usage = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
    body = {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": usage}
    return Behaviour(body=json.dumps(body), latency=latency, fault=fault)


def refusal(status: int, message: str = "no", *, retry_after: str | None = None) -> Behaviour:
    """An error as OpenAI's own endpoint words it."""
    headers = {} if retry_after is None else {"retry-after": retry_after}
    return Behaviour(status=status, body=json.dumps({"error": {"message": message}}), headers=headers)


def echo_of_the_key(request: Request) -> Behaviour:
    """The key in an otherwise proper reply."""
    return reply(f"Your key is {request.headers['authorization'].removeprefix('Bearer ')}")


RESET = Behaviour(fault="reset")
SILENT = Behaviour(fault="silent")
STALLED = reply("half of th", fault="stalled")
CUT = reply("half of th", fault="cut")
NOT_JSON = Behaviour(body="<html><body>Welcome to the proxy</body></html>", headers={"content-type": "text/html"})
EMPTY = Behaviour(body=json.dumps({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 0}}))
HUGE = reply("x" * 1_100_000)
UNKNOWN_MODEL = refusal(404, "The model `m` does not exist")
BAD_KEY = refusal(401, "Incorrect API key provided")


class Server:
    """Serves on a thread of its own with an event loop of its own."""

    def __init__(self, behaviours: Sequence[Behaving] = (), *, port: int = 0) -> None:
        self.behaviours = list(behaviours) or [reply("hello")]
        self._port = port
        self.requests: list[Request] = []
        self.answered: list[Behaviour] = []
        """What was sent to its end, which is what an endpoint counts."""
        self.connections = 0
        """How many are open now."""
        self.pieces_sent = 0
        """Of all streams."""
        self.url = ""

    def next_behaviour(self, request: Request) -> Behaviour:
        chosen = self.behaviours[min(len(self.requests), len(self.behaviours) - 1)]
        self.requests.append(request)
        return chosen(request) if callable(chosen) else chosen

    async def start(self) -> asyncio.Server:
        server = await asyncio.start_server(self._serve, "127.0.0.1", self._port, backlog=1000)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        return server

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while await self._answer(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client is gone
        except asyncio.CancelledError:
            pass  # the server ends
        finally:
            self.connections -= 1
            writer.transport.abort()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; says if the connection goes on."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        text = (await reader.readexactly(int(headers.get("content-length", 0)))).decode()
        behaviour = self.next_behaviour(Request(head[0].split()[1], headers, text))
        if behaviour.latency:
            await asyncio.sleep(behaviour.latency)
        if behaviour.fault == "silent":
            await reader.read()  # until the client gives up
        if behaviour.fault in ("silent", "reset"):
            return False
        if behaviour.pieces:
            await self._stream(behaviour, writer)
        else:
            body = behaviour.body.encode()
            fields = {"content-type": "application/json", **behaviour.headers, "content-length": str(len(body))}
            writer.write(_head(behaviour.status, fields) + (body[: len(body) // 2] if behaviour.fault else body))
            await writer.drain()
        if behaviour.fault == "stalled":
            await reader.read()
        elif behaviour.fault == "cut":
            writer.close()
            await writer.wait_closed()
        if not behaviour.fault:
            self.answered.append(behaviour)
        return not behaviour.fault

    async def _stream(self, behaviour: Behaviour, writer: asyncio.StreamWriter) -> None:
        fields = {"content-type": "text/event-stream", **behaviour.headers, "transfer-encoding": "chunked"}
        writer.write(_head(behaviour.status, fields))
        for piece in behaviour.pieces:
            await asyncio.sleep(behaviour.gap)
            data = piece.encode()
            writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            await writer.drain()
            self.pieces_sent += 1
        if not behaviour.fault:
            writer.write(b"0\r\n\r\n")
            await writer.drain()


def _head(status: int, fields: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} X", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join([*lines, "", ""]).encode()


@contextlib.contextmanager
def serve(behaviours: Sequence[Behaving] = (), *, port: int = 0) -> Iterator[Server]:
    """Serve until the block is left; without behaviours every answer is `hello`."""
    server, ready, loop = Server(behaviours, port=port), threading.Event(), asyncio.new_event_loop()
    done = asyncio.Event()

    async def live() -> None:
        running = await server.start()
        ready.set()
        await done.wait()
        running.close()
        await asyncio.sleep(0)  # what was accepted at the last moment begins
        connections = asyncio.all_tasks() - {asyncio.current_task()}
        for connection in connections:
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
        await asyncio.sleep(0)  # their sockets close

    thread = threading.Thread(target=loop.run_until_complete, args=(live(),), daemon=True)
    thread.start()
    ready.wait()
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(done.set)
        thread.join()
        loop.close()


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before every answer")
    parser.add_argument("--reply", default="hello", help="the text of every answer")
    parser.add_argument("--tokens", type=int, default=100, help="of every prompt and of every completion")
    args = parser.parse_args()
    spoken = reply(args.reply, prompt=args.tokens, completion=args.tokens, latency=args.latency)
    server = Server([spoken], port=args.port)
    async with await server.start() as running:
        print(server.url, flush=True)
        await running.serve_forever()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main())
