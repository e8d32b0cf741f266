"""The first process of a sandbox: a worker that serves one session after the other.

Runs on the sandbox's own interpreter (Python >= 3.11) with the standard library alone; README.md has the protocol.
Arguments: the kind of place (see jail_places.py), the folder that sessions may write to, and where the host made a
control group for us, the files by which we enter it and that tell what it used: a JSON object of open descriptors.
"""

import contextlib
import importlib
import json
import os
import signal
import sys

from jail_bytes import HOST_GONE, receive, send
from jail_cgroup import enter
from jail_places import KINDS, seal, volunteer
from jail_program import SET_CHILD_SUBREAPER, SET_DUMPABLE, prctl, wake_no_crash_handler
from jail_session import Supervisor

PROTOCOL = 7


class Start:
    """What a worker is started with, for all of its sessions."""

    def __init__(self, header, body, counted):
        self.limits = header["limits"]
        self.base = header["base"]
        self.network = header["network"]
        self.cpus = header["cpus"]
        self.readonly = header["readonly"]
        self.counted = counted
        self.filter = bytes(body[: header["filter"]])
        self.contents = memoryview(body)[header["filter"] :]


def add_libraries():
    """Let programs import what is installed for this interpreter, without the cost of `site`."""
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    for folder in (f"{version}/site-packages", f"{version}/dist-packages", "python3/dist-packages"):
        paths = (f"{top}/lib/{folder}" for top in dict.fromkeys((sys.prefix, "/usr/local")))
        sys.path += filter(os.path.isdir, paths)


def preload(names):
    """Import modules for all programs, which are copies of this process: of its threads they would only have one."""
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError as error:
            sys.exit(
                f"cannot import {name}, as sandbox.preload asks: {error}; "
                "add its package to sandbox.packages, or take it out of preload"
            )
        threads = len(os.listdir("/proc/self/task")) - 1  # noqa: PTH208 - pathlib is slow to import
        if threads:
            sys.exit(
                f"importing {name} starts threads ({threads}): it cannot be done beforehand; take it out of preload"
            )


def main():
    """Serve until the host goes away, and leave no process behind, nor a folder of the host."""
    kind, folder, *group = sys.argv[1:]
    try:
        begin(kind, folder, group)
    except SystemExit as ended:
        if kind == "plain" and ended.code == HOST_GONE:  # killed, else it would remove the folder
            os.execvp("rm", ["rm", "-rf", "--", folder])
        raise


def begin(kind, folder, group):
    """Say hello, and serve sessions in a place of some kind."""
    opened = json.loads(*group) if group else {}
    enter(opened)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # which the first process of a jail does not get from inside
    if kind == "namespaces":
        with contextlib.suppress(OSError):
            volunteer()
    if kind != "plain":
        seal()
    wake_no_crash_handler()
    prctl(SET_DUMPABLE, 0)
    prctl(SET_CHILD_SUBREAPER, 1)
    send({"protocol": PROTOCOL})
    header, body = receive()
    add_libraries()
    preload(header["preload"])
    place = KINDS[kind](Start(header, body, opened), folder)
    del header, body
    send({"started": True})
    place.serve(lambda place: Supervisor(place).serve())


if __name__ == "__main__":
    del sys.path[0]  # our own folder is no place for the candidate to import from
    main()
