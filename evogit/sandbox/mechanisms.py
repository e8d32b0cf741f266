"""Tries what a sandbox promises, one mechanism after the other, with programs that do what they must not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from evogit.sandbox import CallReply, Limits
from evogit.sandbox.archive import pack
from evogit.sandbox.providers import Check
from evogit.sandbox.session import Sandbox

MIB = 1024**2
ROOMY = Limits(wall=5.0, cpu=5.0, memory=1024 * MIB, processes=32, disk=64 * MIB)
BREACHES: tuple[tuple[str, str, Limits, str], ...] = (
    ("memory", "128 MiB", replace(ROOMY, memory=128 * MIB), "out-of-memory"),
    ("processes", "16", replace(ROOMY, processes=16), "process-limit"),
    ("disk", "16 MiB", replace(ROOMY, disk=16 * MIB), "disk-limit"),
    ("CPU", "0.3 s", replace(ROOMY, cpu=0.3), "timeout"),
)
"""What a program uses without end, how much of it is allowed, and how that must be told."""
SHOWN = 5
PROGRAM = b"""
import ctypes, os, socket, time

def rights():
    pairs = (line.split(":", 1) for line in open("/proc/self/status"))
    about = {name: value.split() for name, value in pairs}
    return {name: about.get(name, [""])[0] for name in ("Uid", "CapEff", "CapBnd", "NoNewPrivs", "Seccomp")}

def allowed():
    libc = ctypes.CDLL(None, use_errno=True)
    found = []
    try:
        socket.socket(40, socket.SOCK_STREAM).close()
        found.append("VSOCK")
    except OSError:
        pass
    if libc.syscall(ctypes.c_long(425), 4, ctypes.create_string_buffer(120)) >= 0:
        found.append("io_uring")
    if libc.shmget(0, 4096, 0o1600) >= 0:
        found.append("shared memory")
    return found

def others():
    networks = {line.split(":")[0].strip() for line in open("/proc/net/dev") if ":" in line} - {"lo"}
    signalled = []
    for pid in (name for name in os.listdir("/proc") if name.isdigit() and int(name) not in (1, os.getpid())):
        try:
            os.kill(int(pid), 0)
            signalled.append(pid)
        except OSError:
            pass
    return sorted(networks) + ["process " + pid for pid in signalled]

def memory():
    held = []
    while True:
        held.append(bytearray(4 << 20))

def processes():
    for _ in range(64):
        if os.fork() == 0:
            time.sleep(5)
            os._exit(0)

def disk():
    with open("filler", "wb", buffering=0) as file:
        while True:
            file.write(bytes(1 << 20))

def CPU():
    while True:
        pass
"""


def mechanisms(sandbox: Sandbox) -> Iterator[Check]:
    """Yield each attack, whether the sandbox held, and a sentence; about two seconds. Raises SandboxError."""
    rights = _value(_run(sandbox, "rights"))
    if isinstance(rights, dict):
        powerless, final = int(rights["CapEff"], 16) == 0 and rights["Uid"] != "0", rights["NoNewPrivs"] in ("1", "")
        sentence = f"user {rights['Uid']}, {'no capabilities' if powerless else 'capabilities ' + rights['CapEff']}"
        sentence += ", none to be gained" if final else ", more to be gained"
        yield "privileges", powerless and final, sentence
    else:
        yield "privileges", False, str(rights)
    allowed = _value(_run(sandbox, "allowed"))
    refused = "VSOCK, io_uring and System V shared memory are refused"
    yield "system calls", allowed == [], refused if allowed == [] else f"programs may use {_list(allowed)}"
    others = _value(_run(sandbox, "others"))
    alone = "nobody else's processes, and no network"
    yield "namespaces", others == [], alone if others == [] else f"programs reach {_list(others)}"
    for name, most, limits, breach in BREACHES:
        reply = _run(sandbox, name, limits)
        told = reply.detail.removesuffix(" in call 1") or "nothing stopped the program"
        held = reply.failure == breach
        yield f"{name} limit", held, f"of {most}: " + (f"stopped a program ({told})" if held else told)


def _run(sandbox: Sandbox, function: str, limits: Limits = ROOMY) -> CallReply:
    with sandbox.open(pack({"probe.py": PROGRAM}), limits) as session:
        return session.call(f"probe:{function}", b"{}")


def _value(reply: CallReply) -> Any:
    return reply.detail if reply.failure else json.loads(reply.value)


def _list(found: Any) -> str:
    if not isinstance(found, list):
        return str(found)
    return ", ".join(map(str, found[:SHOWN])) + (f" and {len(found) - SHOWN} more" if len(found) > SHOWN else "")
