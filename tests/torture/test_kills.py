"""Engines, workers, what leads to them, evaluators, sandboxes, Docker are killed at random: nothing is lost or left."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from contextlib import closing, suppress

import docker
import pytest

from evogit.events import Evaluated
from tests.clock import wait_until
from tests.sandbox.own_daemon import own_daemon

from .world import DAEMON, TRANSPORT, World

pytestmark = pytest.mark.slow

KINDS = ("engine", "worker", "transport", "evaluator", "sandbox")
AGENTS = ("--agent", "mutator:3", "--agent", "editor@m", "--dollars", "1000")
WORKERS = ("--workers", f"{TRANSPORT}:2", "--workers", f"{TRANSPORT}:2")


def test_what_is_killed_anywhere_loses_nothing(world: Callable[..., World], seed: int, long: bool) -> None:
    run, rng = world(*AGENTS, "-j", str(seed % 2), *WORKERS), random.Random(seed)
    killed = run.storm(50 if long else 6, KINDS, rng)
    history = run.finish()
    print(f"\n{seed}: {dict(killed)}, {history.counts.evaluated} evaluated, {history.spent.calls} calls")


@pytest.mark.docker
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to start a daemon")
def test_a_docker_that_is_killed_loses_nothing(world: Callable[..., World], seed: int, long: bool) -> None:
    kinds = (DAEMON, "engine", "evaluator") if long else (DAEMON,)
    with own_daemon() as daemon:
        run, rng = world("--agent", "mutator:3", "--sandbox", "docker", "-j", "2", daemon=daemon), random.Random(seed)
        killed = run.storm(50 if long else 2, kinds, rng)
        history = run.finish()
        print(f"\n{seed}: {dict(killed)}, {history.counts.evaluated} evaluated")
        found = {event.evaluation.status for event in run.events() if isinstance(event, Evaluated)}
        assert found <= {"ok", "invalid", "crashed"}, "no program is blamed"
        with closing(docker.DockerClient(base_url=f"unix://{daemon.socket}")) as client:
            with suppress(AssertionError):
                wait_until(lambda: not client.api.containers(all=True))
            assert client.api.containers(all=True) == [], "one that is left says whose it is, and in what state"
