"""The process of `reader.py`: no key, no environment, 2 GB of memory, and 20 s of CPU for each thing that it reads."""

from __future__ import annotations

import gc
import json
import resource
import sys
from math import ceil
from typing import Any, BinaryIO

from msgspec.structs import asdict, replace

from evogit.llm.gateway.reading import (
    LONGEST_READING,
    UnreadableError,
    count_tokens,
    head,
    read_event,
    read_request,
    read_whole,
)
from evogit.llm.replies import LostAttemptError, piece_of, plain_json, read_reply

MOST_MEMORY = 2 << 30  # bytes of address space; eight megabytes of empty lists take 300


def serve(coming: BinaryIO, going: BinaryIO) -> None:
    """Read what comes until there is nothing more."""
    while line := coming.readline():
        asked = json.loads(line)
        told, content = _answer(asked, coming.read(asked["bytes"]))
        going.write(head(told, len(content)))
        going.write(content)
        going.flush()


def _limit(kind: int, most: int) -> None:
    """Set a limit that can be raised again; one that we were started with may be lower."""
    _, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _answer(asked: dict[str, Any], body: bytes) -> tuple[dict[str, Any], bytes]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    _limit(resource.RLIMIT_CPU, ceil(used.ru_utime + used.ru_stime + LONGEST_READING))
    try:
        return _read(asked, body)
    except UnreadableError as error:
        return {"status": error.status, "message": str(error)}, b""
    except RecursionError:
        return {"status": 400, "message": "expected JSON that is not nested as deeply"}, b""
    except MemoryError:
        return {"status": 413, "message": "expected what can be read in little memory"}, b""


def _read(asked: dict[str, Any], body: bytes) -> tuple[dict[str, Any], bytes]:
    match asked["of"]:
        case "request":
            found = read_request(asked["path"], asked["models"], body)
            told = asdict(replace(found, content=b""))
            del told["content"]
            return told, found.content
        case "count":
            return {"tokens": count_tokens(body)}, b""
        case "event" | "whole" as kind:
            said, plain = (read_event if kind == "event" else read_whole)(asked["path"], body)
            return asdict(said), plain
        case "piece":
            told = asdict(piece_of(body))
            return told, told.pop("text").encode(errors="replace")
        case "plain":
            return {}, plain_json(body.decode()).encode(errors="replace")
        case _:
            try:
                text, usage = read_reply(body.decode(), asked["prompt"])
            except LostAttemptError as lost:
                return {"usage": asdict(lost.usage), "lost": str(lost), "again": lost.again, "fault": lost.fault}, b""
            return {"usage": asdict(usage), "lost": ""}, text.encode()


if __name__ == "__main__":
    gc.freeze()  # what was imported stays
    _limit(resource.RLIMIT_AS, MOST_MEMORY)
    serve(sys.stdin.buffer, sys.stdout.buffer)
