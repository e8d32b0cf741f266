"""The graphics processors (GPUs) of this machine: which there are, of what kind, and who has them now."""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO

from msgspec import Struct

from evogit.core import SandboxError
from evogit.sandbox.cache import cache_folder

GIVEN = "CUDA_VISIBLE_DEVICES"  # variables in which a user, Slurm or Ray names them, by number or by UUID
DEVICES, DRIVER = Path("/dev"), Path("/proc/driver/nvidia")
VERSION = re.compile(r"\b\d+\.\d+(?:\.\d+)?\b")
POLL = 0.2  # seconds between two attempts to get GPUs that others have


class Gpu(Struct, frozen=True):
    """One: its name for Docker, and its UUID and model, empty where the driver does not tell."""

    id: str
    uuid: str = ""
    model: str = ""


def gpus(devices: Path = DEVICES, driver: Path = DRIVER) -> list[Gpu]:
    """All that this process may use: those of `CUDA_VISIBLE_DEVICES`, else all that there are."""
    told = os.environ.get(GIVEN)
    if told is None:
        ids = [file.name.removeprefix("nvidia") for file in devices.glob("nvidia[0-9]*")]
        ids = sorted(filter(str.isdigit, ids), key=int)
    else:
        ids = [each.strip() for each in told.split(",") if each.strip() not in ("", "-1")]
    known = dict.fromkeys(ids, ("", ""))
    for file in sorted(driver.glob("gpus/*/information"), reverse=True):  # of several the first counts
        with suppress(OSError):
            lines = file.read_text(errors="replace").splitlines()
            about = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
            minor, uuid, model = (about.get(name, "") for name in ("Device Minor", "GPU UUID", "Model"))
            matches = (id for id in ids if id == minor or (not id.isdigit() and uuid.startswith(id)))
            known |= dict.fromkeys(matches, (uuid, model))
    return [Gpu(id, *known[id]) for id in ids]


def alike(known: Sequence[Gpu]) -> list[Gpu]:
    """Those of the first one's model: times of others are not comparable with its."""
    return [each for each in known if each.model == known[0].model]


def kind(known: Sequence[Gpu], driver: Path = DRIVER) -> str:
    """The model and the driver's version, such as "NVIDIA H100 PCIe, driver 550.54.14"; empty where nothing tells."""
    models = sorted({each.model for each in known if each.model})
    try:
        version = VERSION.search((driver / "version").read_text(errors="replace"))
    except OSError:
        version = None
    return ", ".join([*models, *([f"driver {version[0]}"] if version else [])])


def asked_for(number: int, known: Sequence[Gpu]) -> list[Gpu]:
    """Return the GPUs to take turns with, else numbers. Raises SandboxError for fewer than one evaluation needs."""
    if not known and GIVEN not in os.environ:
        return [Gpu(str(each)) for each in range(number)]  # the daemon says whether it has them
    if len(known) < number:
        named = f" ({', '.join(each.id for each in known)})" if known else ""
        where = f"{GIVEN} gives" if GIVEN in os.environ else "this machine has"
        raise SandboxError(f"sandbox.gpus = {number}, and {where} {len(known)}{named}; ask for fewer, or give it more")
    return list(known)


def words(number: int) -> str:
    """Return which GPUs evaluations get that need so many, for `evogit doctor sandbox`."""
    if not (known := gpus()):
        asked = ", ".join(each.id for each in asked_for(number, known))
        return f"none is known here, so Docker is asked for the ids {asked}"
    named = ", ".join(f"{each.id} ({each.model})" if each.model else each.id for each in known)
    return f"each evaluation has {number} of {named}" + (f"; {kind(known)}" if kind(known) else "")


class Lender:
    """Lends this process GPUs that no other process of this user has; all sessions of an evaluation share them."""

    def __init__(self) -> None:
        self._users = 0
        self._lent: list[Gpu] = []
        self._held = ExitStack()

    @contextmanager
    def lent(self, number: int, say: Callable[[str], None], *, equal: bool = False) -> Iterator[Sequence[str]]:
        """Lend this many GPUs (`equal`: of one model). Raises SandboxError for fewer, or without a lock."""
        ids = self.take(number, say, equal=equal)
        try:
            yield ids
        finally:
            self.give_back()

    def take(self, number: int, say: Callable[[str], None], *, equal: bool = False) -> tuple[str, ...]:
        """Wait for this many GPUs, until `give_back`. Raises SandboxError for fewer, or without a lock."""
        if number and not self._lent:
            known = asked_for(number, gpus())
            self._lent = self._waited_for(number, alike(known) if equal else known, say)
        self._users += 1
        return tuple(each.id for each in self._lent[:number])

    def give_back(self) -> None:
        """End one use; with the last one others may have them."""
        self._users -= 1
        if not self._users:
            self._held.close()
            self._held, self._lent = ExitStack(), []

    def _waited_for(self, number: int, pool: Sequence[Gpu], say: Callable[[str], None]) -> list[Gpu]:
        if len(pool) < number:
            raise SandboxError(f"sandbox.gpus = {number} of one model, as exclusive = true compares times: {len(pool)}")
        told = False
        while True:
            with ExitStack() as stack:
                free: list[Gpu] = []
                for gpu in pool:
                    if len(free) < number and (file := _locked(gpu)):
                        free.append(gpu)
                        stack.callback(file.close)
                if len(free) == number:
                    self._held = stack.pop_all()
                    return free
            if not told:
                say(f"waiting for {number} of the GPUs {', '.join(each.id for each in pool)}, which others have")
                told = True
            time.sleep(POLL)


def _locked(gpu: Gpu) -> IO[str] | None:
    """A file that is locked until it is closed; None where another process has it."""
    name = f"gpu.{os.uname().nodename}.{re.sub(r'[^A-Za-z0-9-]', '_', gpu.uuid or gpu.id)}"
    try:
        folder = cache_folder() / "locks"
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / name).open("w")
    except OSError as error:
        raise SandboxError(
            f"GPUs are lent by a lock in {cache_folder()}, which cannot be taken: {error}; "
            "name a folder of yours with XDG_CACHE_HOME"
        ) from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


@cache
def lender() -> Lender:
    """The one of this process: its evaluations, and what prepares for them, must not wait for each other."""
    return Lender()
