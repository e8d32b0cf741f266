from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from evogit.sandbox import CallReply, Limits
from evogit.sandbox.archive import pack
from evogit.sandbox.providers import kinds, provider
from evogit.sandbox.session import Sandbox, Session

Open = Callable[..., Session]
Ask = Callable[..., Any]


PROVIDERS = [
    pytest.param(name, marks=[pytest.mark.docker] * (name == "docker") + [pytest.mark.slow] * (not kind.isolates))
    for name, kind in kinds().items()
]
"""All providers that there are; a new one needs no entry here."""


@pytest.fixture(scope="session", params=PROVIDERS)
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    found = provider(request.param)
    yield found
    found.close()


@pytest.fixture
def open_session(sandbox: Sandbox) -> Iterator[Open]:
    """Opens a session on Python source, which becomes `m.py`, and closes it after the test."""
    with ExitStack() as stack:

        def open_(source: str = "", preload: tuple[str, ...] = (), **limits: Any) -> Session:
            files = pack({"m.py": source.encode()})
            return stack.enter_context(sandbox.open(files, Limits(**limits), preload))

        yield open_


@pytest.fixture
def ask() -> Ask:
    """Calls `m:function` and returns the parsed value, or the reply when there is none."""

    def ask_(session: Session, function: str, *args: Any, **options: Any) -> Any:
        reply: CallReply = session.call(f"m:{function}", json.dumps({"args": args}).encode(), **options)
        return reply if reply.failure else json.loads(reply.value)

    return ask_
