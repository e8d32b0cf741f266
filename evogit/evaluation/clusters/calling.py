"""Workers that call the run, as jobs of a queue do: where it is, and a key, are in a file that both can read.

Each side proves to the other that it has the key, which itself does not travel: a worker runs what the run sends.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import os
import secrets
import signal
import socket
import struct
import sys
from pathlib import Path
from typing import Any

from evogit.evaluation import worker_main

SIZE = 32
"""Bytes of keys, of what is drawn for each call, and of proofs."""

CALL = struct.Struct(f">{SIZE}s{SIZE}sI")
"""What a worker says: what it drew, its proof, and the number of its job; 0 for one that a person submitted."""

PATIENCE = 20.0
"""Seconds for a connection, and for what proves who is there."""


def _proof(key: bytes, who: bytes, *drawn: bytes) -> bytes:
    return hmac.digest(key, who + b"".join(drawn), "sha256")


async def accepted(key: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int | None:
    """The number of the job that calls; None for anybody else."""
    ours = secrets.token_bytes(SIZE)
    writer.write(ours)
    try:
        async with asyncio.timeout(PATIENCE):
            theirs, proof, number = CALL.unpack(await reader.readexactly(CALL.size))
    except (OSError, TimeoutError, asyncio.IncompleteReadError):
        return None
    if not hmac.compare_digest(proof, _proof(key, b"worker", ours, theirs, b"%d" % number)):
        return None
    writer.write(_proof(key, b"run", ours, theirs))
    return int(number)


def call(file: str, number: int = 0) -> None:
    """Work for the run that left this file, until it is gone."""
    for ending in (signal.SIGTERM, signal.SIGUSR2):  # submitit would go on, or queue again
        signal.signal(ending, signal.SIG_DFL)
    connection = _connected(json.loads(Path(file).read_bytes()), number)
    for stream in (0, 1):
        os.dup2(connection.fileno(), stream)
    connection.close()
    worker_main.main()


def _connected(about: dict[str, Any], number: int) -> socket.socket:
    failed = "it has no address"
    for host in about["hosts"]:
        try:
            connection = socket.create_connection((host, about["port"]), timeout=PATIENCE)
        except OSError as error:
            failed = f"{host}: {error}"
            continue
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _prove(connection, bytes.fromhex(about["key"]), number)
        connection.settimeout(None)
        return connection
    sys.exit(f"the run cannot be reached from here: {failed}")


def _prove(connection: socket.socket, key: bytes, number: int) -> None:
    theirs, ours = _received(connection), secrets.token_bytes(SIZE)
    connection.sendall(CALL.pack(ours, _proof(key, b"worker", theirs, ours, b"%d" % number), number))
    if not hmac.compare_digest(_received(connection), _proof(key, b"run", theirs, ours)):
        sys.exit("what answers at the run's address is not the run")


def _received(connection: socket.socket) -> bytes:
    received = b""
    while len(received) < SIZE:
        piece = connection.recv(SIZE - len(received))
        if not piece:
            sys.exit("the run does not want this worker: its job was given up, or it has enough")
        received += piece
    return received


if __name__ == "__main__":
    call(sys.argv[1])
