"""Frames, pipes and the one exception that the parts of the supervisor share."""

import json
import os
import struct
import sys

FRAME = struct.Struct(">II")
LENGTH = struct.Struct(">I")
CHUNK = 1 << 16
HOST_GONE = 3  # exit code
JAILED = os.getpid() == 1  # then every process that we can see is ours, or the program's


class Broken(Exception):
    """The program broke a limit or the protocol: `failure` is the status, `detail` the sentence."""

    def __init__(self, failure, detail):
        super().__init__(detail)
        self.failure = failure
        self.detail = detail


def read_exactly(fd, size):
    """Read so many bytes, or fewer where the file or pipe ends."""
    data = bytearray()
    while len(data) < size and (piece := os.read(fd, size - len(data))):
        data += piece
    return bytes(data)


def write_all(fd, data):
    """Write everything."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def receive(before_body=lambda header: None):
    """The next request of the host; the host closing the pipe is the end.

    The body can be overwritten: what a program is not to see must not be in our memory when one is forked.
    """
    lengths = read_exactly(0, FRAME.size)
    if len(lengths) < FRAME.size:
        sys.exit(HOST_GONE)
    header, size = FRAME.unpack(lengths)
    header = json.loads(read_exactly(0, header))
    before_body(header)
    body, read = bytearray(size), 0
    while read < size and (more := os.readv(0, [memoryview(body)[read:]])):
        read += more
    return header, body


def pieces(body):
    """What is in a body of pieces, each after its length."""
    rest = memoryview(body)
    while rest:
        size = LENGTH.unpack_from(rest)[0]
        yield rest[LENGTH.size : LENGTH.size + size]
        rest = rest[LENGTH.size + size :]


def send(header, body=b""):
    """Answer the host."""
    text = json.dumps(header).encode()
    write_all(1, FRAME.pack(len(text), len(body)) + text + body)
