"""`pytest -m slow tests/torture`: a little of each trouble; with `--long` rounds of much (docs/design/testing.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.openai_server import serve
from tests.sandbox.own_daemon import OwnDaemon

from .world import World

ROUNDS = 10  # of the long form


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="rounds of fifty kills instead of a few: half an hour")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`rounds` are the seeds of what happens at random."""
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(ROUNDS if is_long(metafunc.config) else 1))


def is_long(config: pytest.Config) -> bool:
    return bool(config.getoption("--long", default=False))


@pytest.fixture
def long(request: pytest.FixtureRequest) -> bool:
    """Whether this may take minutes."""
    return is_long(request.config)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Callable[..., World]]:
    """Makes a world with an endpoint of its own, by the options of its engines."""
    with ExitStack() as stack:

        def make(*options: str, daemon: OwnDaemon | None = None) -> World:
            made = World(tmp_path / "world", *options, daemon=daemon)
            stack.callback(made.end)
            made.server = stack.enter_context(serve([made.propose]))
            return made

        yield make
