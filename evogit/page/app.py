"""The routes of the page: static files of `graphs/`, and what is known of the runs of one repository."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from evogit.content import content
from evogit.core import Candidate, EvoGitError, NotFoundError, RefusedError, RepositoryError, UsageError
from evogit.page import decisions, details
from evogit.page.assets import AGAIN
from evogit.page.payload import FollowedRun, Record
from evogit.repository import Repository
from evogit.review.run_list import RunOverview

TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}

SMALL = 1_000
"""Bytes up to which a body is not compressed."""

LEVEL = 6

Answer = TypeVar("Answer")

MOST_FOLLOWED = 32
"""Runs that are kept in memory; of more, those that were looked at last, and those that somebody looks at."""

LONGEST_NUMBER = 20  # digits of a position in a journal: fewer
LOOK = 0.05  # seconds between two looks at a run while nothing happens in it
EVERY = 0.2  # seconds from one delta to the next: of a quick run a browser is told in few pieces
HEARTBEAT = 15.0  # seconds after which a stream with no news says that it is there
MOST_WAITING = 100  # deltas that wait for one browser

RELOAD = b"event: reload\ndata: {}\n\n"

BEGIN = b"retry: 1000\n\n"
"""The delay before a browser reconnects, in milliseconds."""


class Live:
    """The listeners of one run; while there are any, it is looked at."""

    def __init__(self, news: Callable[[], Awaitable[list[Record]]]) -> None:
        """`news`: reads what came since, and tells it."""
        self._news = news
        self._listeners: set[asyncio.Queue[bytes | None]] = set()
        self._looking: asyncio.Task[None] | None = None

    @property
    def watched(self) -> bool:
        """True if a browser listens."""
        return bool(self._listeners)

    async def events(self, missed: list[Record] | None) -> AsyncIterator[bytes]:
        """Server-sent events: what was missed (None: too much), then what comes, until the browser must start over."""
        queue: asyncio.Queue[bytes | None] = asyncio.Queue(MOST_WAITING)
        self._listeners.add(queue)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        try:
            yield BEGIN + (RELOAD if missed is None else b"".join(map(event, missed)))
            while True:
                try:
                    told = await asyncio.wait_for(queue.get(), HEARTBEAT)
                except TimeoutError:
                    yield b": still here\n\n"
                    continue
                if told is None:
                    yield RELOAD
                    return
                yield told
        finally:
            self._listeners.discard(queue)

    async def _look(self) -> None:
        try:
            while self._listeners:
                news = await self._news()
                for told in map(event, news):
                    for queue in self._listeners:
                        if queue.full():  # it does not keep up
                            _start_over(queue)
                        else:
                            queue.put_nowait(told)
                await asyncio.sleep(EVERY if news else LOOK)
        except EvoGitError:  # it was removed, or cannot be read any more: who asks anew is told
            pass
        finally:  # whatever it was that could not be read, nobody waits for news that do not come
            for queue in self._listeners:
                _start_over(queue)


def _start_over(queue: asyncio.Queue[bytes | None]) -> None:
    while not queue.empty():
        queue.get_nowait()
    queue.put_nowait(None)


def event(delta: Record) -> bytes:
    """One delta as it goes over the stream."""
    data = json.dumps(delta, separators=(",", ":"), allow_nan=False)
    return f"event: delta\nid: {delta['position']}\ndata: {data}\n\n".encode()


STATUSES = (
    (decisions.StalePlanError, 409),
    (NotFoundError, 404),
    (UsageError, 400),
    (RefusedError, 409),
    (RepositoryError, 409),
)


class Followed:
    """A run that somebody looks at: one thread at a time reads it, off the server's loop."""

    def __init__(self, path: Path, name: str) -> None:
        self._path = path
        self._name = name
        self._lock = asyncio.Lock()
        self._run: FollowedRun | None = None
        self.live = Live(partial(self.ask, FollowedRun.news))

    async def ask(self, question: Callable[[FollowedRun], Answer]) -> Answer:
        """What `question` answers about the run."""
        async with self._lock:
            return await asyncio.to_thread(self._asked, question)

    def _asked(self, question: Callable[[FollowedRun], Answer]) -> Answer:
        if self._run is None:
            repository = Repository.open(self._path)
            if self._name not in repository.runs():
                raise _no_run(self._name)
            self._run = FollowedRun(repository, self._name)
        try:
            return question(self._run)
        except RepositoryError:
            try:
                self._run.run.journal.refresh()  # what is missing may be an object of one candidate
            except (
                EvoGitError
            ):  # the run was removed, perhaps begun again: the next question reads it from its beginning
                self._run = None
            raise


class Site:
    """What the server has: the repository's runs, and the files of the page."""

    def __init__(self, repository: Repository, first: str | None, *, read_only: bool) -> None:
        """`first`: the run that is shown first; None for the one at work, or the latest."""
        self._repository = repository
        self._first = first
        self._read_only = read_only
        self._followed: dict[str, Followed] = {}
        self._files = {file.name: file.read_bytes() for file in content("graphs").iterdir() if file.suffix in TYPES}

    def app(self) -> Starlette:
        """The application; it needs a `Guard` before it."""
        about = "/api/runs/{run}"
        get: list[tuple[str, Callable[[Request], Awaitable[Response]]]] = [
            ("/", self._index),
            ("/{file}", self._file),
            ("/api/runs", self._runs),
            (about, self._about(lambda run: run.payload(read_only=self._read_only))),
            (f"{about}/block/{{number:int}}", self._block),
            (f"{about}/search", self._search),
            (f"{about}/candidates/{{index:int}}", self._candidate(details.summary)),
            (f"{about}/evaluation/{{index:int}}", self._candidate(details.evaluation)),
            (f"{about}/session/{{index:int}}", self._candidate(details.session)),
            (f"{about}/diff/{{index:int}}/{{other:int}}", self._diff),
            (f"{about}/report", self._about(details.report)),
            (f"{about}/decisions", self._about(details.decisions)),
            (f"{about}/events", self._events),
        ]
        post = [(f"{about}/plan", self._deciding(decisions.plan)), (f"{about}/decide", self._deciding(decisions.make))]
        routes = [Route(path, endpoint, methods=["GET"]) for path, endpoint in get]
        routes += [Route(path, endpoint, methods=["POST"]) for path, endpoint in post]
        return Starlette(routes=routes, exception_handlers={EvoGitError: _failure})

    # --- files ----------------------------------------------------------------------------------------------------

    async def _index(self, request: Request) -> Response:
        begun = f'<meta charset="utf-8">\n<script>{AGAIN}</script>'
        page = self._files["index.html"].decode().replace('<meta charset="utf-8">', begun, 1)
        return Response(page, media_type=TYPES[".html"])

    async def _file(self, request: Request) -> Response:
        name = request.path_params["file"]
        if name not in self._files:
            return _json({"error": "there is no such page"}, 404)
        return Response(self._files[name], media_type=TYPES[Path(name).suffix])

    # --- what is known --------------------------------------------------------------------------------------------

    async def _runs(self, request: Request) -> Response:
        def overview() -> Record:
            repository = Repository.open(self._repository.path)  # of its own, as this is another thread
            runs = [RunOverview.of(repository, name) for name in repository.runs()]
            runs.sort(key=lambda each: (each.history.run != self._first, not each.engines, -each.since))
            tasks = [run.history.started.task if run.history.started else "" for run in runs]
            return {"runs": [{**run.record(), "task": task} for run, task in zip(runs, tasks, strict=True)]}

        return _json(await asyncio.to_thread(overview))

    def _named(self, name: str) -> Followed:
        if name not in self._followed:
            if name not in self._repository.runs():
                raise _no_run(name)
            self._followed[name] = Followed(self._repository.path, name)
            for old, followed in list(self._followed.items())[:-MOST_FOLLOWED]:
                if not followed.live.watched:
                    del self._followed[old]
        self._followed[name] = self._followed.pop(name)  # the one looked at last is the last
        return self._followed[name]

    async def _block(self, request: Request) -> Response:
        return await self._told(request, lambda run: details.block(run, request.path_params["number"]))

    async def _search(self, request: Request) -> Response:
        text, path = request.query_params.get("text", ""), request.query_params.get("file", "")
        return await self._told(request, lambda run: details.search(run, text, path))

    async def _diff(self, request: Request) -> Response:
        def told(run: FollowedRun) -> Record:
            old, new = (_candidate(run, request.path_params[name]) for name in ("index", "other"))
            return details.diff(run.repository, old, new)

        return await self._told(request, told)

    def _candidate(self, told: Callable[[FollowedRun, Candidate], Record]) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            return await self._told(request, lambda run: told(run, _candidate(run, request.path_params["index"])))

        return endpoint

    def _about(self, told: Callable[[FollowedRun], Record]) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            return await self._told(request, told)

        return endpoint

    async def _told(self, request: Request, told: Callable[[FollowedRun], Record]) -> Response:
        run = self._named(request.path_params["run"])
        return await asyncio.to_thread(_json, await run.ask(told))

    async def _events(self, request: Request) -> Response:
        run = self._named(request.path_params["run"])
        after = request.headers.get("last-event-id") or request.query_params.get("after", "")
        position = int(after) if after.isdecimal() and len(after) < LONGEST_NUMBER else -1
        missed = await run.ask(lambda followed: followed.since(position))
        return StreamingResponse(run.live.events(missed), media_type="text/event-stream")

    # --- what is decided ------------------------------------------------------------------------------------------

    def _deciding(
        self, act: Callable[[FollowedRun, Mapping[str, Any]], Record]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            if self._read_only:
                raise RefusedError("this page is read only; decide with `evogit promote`, `prune` and so on")
            asked = await _asked(request)
            return await self._told(request, lambda run: act(run, asked))

        return endpoint


def _no_run(name: str) -> NotFoundError:
    return NotFoundError(f"expected a run of this repository, got {name!r}")


async def _asked(request: Request) -> Record:
    try:
        asked = json.loads(await request.body())
    except (ValueError, RecursionError, ClientDisconnect) as error:
        raise UsageError("expected JSON") from error
    if not isinstance(asked, dict):
        raise UsageError("expected an object")
    return asked


def _candidate(run: FollowedRun, index: int) -> Candidate:
    found = run.candidate(index)
    if found is None:
        raise NotFoundError(f"expected the number of a candidate, got {index}")
    return found


async def _failure(request: Request, error: Exception) -> Response:
    status = next((status for kind, status in STATUSES if isinstance(error, kind)), 500)
    more = {"plan": error.plan} if isinstance(error, decisions.StalePlanError) else {}
    return _json({"error": str(error), **more}, status)


def _json(told: Record, status: int = 200) -> Response:
    body = json.dumps(told, separators=(",", ":"), allow_nan=False).encode()
    if len(body) <= SMALL:
        return Response(body, status, media_type="application/json")
    packed = gzip.compress(body, LEVEL, mtime=0)
    return Response(packed, status, {"content-encoding": "gzip"}, media_type="application/json")
