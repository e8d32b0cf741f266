"""The inner end of a coding program's session: makes its workspace, starts it, carries all it says to the host.

Arguments: the port for the host, then those for models and evaluations. Frames in both directions are a letter, the
number of a channel and a length (four bytes each, big-endian) and as many bytes. From the host: `s` what to set up, as
JSON; `w` more of the bundle; `g` begin; `q` end the program; `d` and `f` bytes for a channel, and the end of them. From
here: `m` and `e` somebody connected to the port for models or for evaluations, which is a channel now; `d` and `f` as
above; `o` output of the program; `x` its end, as JSON. Standard library only.
"""

import asyncio
import contextlib
import json
import os
import signal
import struct
import subprocess
import sys
from pathlib import Path

HEAD = struct.Struct(">cII")
MOST = 32768
MOST_CHANNELS = 64
AS_IT_IS = "* -text -eol -filter -ident -working-tree-encoding\n"
"""Attributes with which Git checks out the bytes that are there: what came of others would come back as changes."""
GIT = ("git", "-c", "core.hooksPath=/dev/null", "-c", "advice.detachedHead=false")
TOOL = """#!/bin/sh\nexec python3 {tools}/evaluate.py {name} {port} {workspace} "{without}" "$@"\n"""
TOOLS = ("evaluate", "measure", "keep", "profile")
"""Commands that a program has beside those of its sandbox; the engine answers them."""
REMADE = ("__pycache__", "node_modules")
"""Folders that are left out of evaluations, as they can be large, unless the candidate has any of that name."""


class Host:
    """The connection to the host, and the channels on it."""

    def __init__(self, reader, writer):
        self.reader = reader
        self.writer = writer
        self.channels = {}
        self.last = 0
        self.program = None
        self.setup = {}
        self.bundle = bytearray()
        self.tasks = set()

    async def send(self, kind, channel=0, data=b""):
        """Send one frame, when there is room for it."""
        self.writer.write(HEAD.pack(kind, channel, len(data)) + data)
        await self.writer.drain()

    async def serve(self, models, evaluations):
        """Do what the host says until it is gone, or the program has ended."""
        self.ports = models, evaluations
        while head := await exactly(self.reader, HEAD.size):
            kind, channel, size = HEAD.unpack(head)
            data = await exactly(self.reader, size)
            if kind == b"s":
                self.setup = json.loads(data)
            elif kind == b"w":
                self.bundle += data
            elif kind == b"g":
                self.keep(self.run())
            elif kind == b"q":
                self.kill()
            elif channel in self.channels:
                await self.pass_on(self.channels[channel], kind, data)

    def keep(self, work):
        """Have something done meanwhile."""
        self.tasks.add(task := asyncio.ensure_future(work))
        task.add_done_callback(self.tasks.discard)

    async def pass_on(self, writer, kind, data):
        """Give a visitor what the host says."""
        with contextlib.suppress(OSError):
            if kind == b"d":
                writer.write(data)
                await writer.drain()
            else:
                writer.close()

    async def visit(self, kind, reader, writer):
        """Be the host for somebody who connected."""
        if len(self.channels) >= MOST_CHANNELS:
            writer.transport.abort()
            return
        self.last += 1
        channel, self.channels[self.last] = self.last, writer
        try:
            await self.send(kind, channel)
            with contextlib.suppress(OSError):
                while data := await reader.read(MOST):
                    await self.send(b"d", channel, data)
            await self.send(b"f", channel)
            with contextlib.suppress(OSError):
                await writer.wait_closed()
        finally:
            del self.channels[channel]
            writer.transport.abort()

    async def run(self):
        """Make the workspace, start the program, and tell what it prints and how it ends."""
        try:
            code = await self.carry_out()
        except (OSError, ValueError, subprocess.CalledProcessError) as error:  # such as a NUL in an argument
            said = getattr(error, "stderr", b"") or b""
            await self.send(b"x", 0, json.dumps({"failed": f"{error}\n{said.decode(errors='replace')}"}).encode())
            return
        await self.send(b"x", 0, json.dumps({"code": code, "message": message(self.setup["branch"])}).encode())

    async def carry_out(self):
        """The exit code of the program, negative for a signal."""
        furnish(self.setup, bytes(self.bundle), self.ports[1])
        env = {name: filled(value) for name, value in self.setup["env"].items()}
        self.bundle.clear()
        path = f"{our_folder()}:{env.pop('PATH', os.environ['PATH'])}:/usr/local/bin"
        output, theirs = os.pipe()  # not asyncio's own, which waits for all who hold it open
        self.program = await asyncio.create_subprocess_exec(
            *map(filled, self.setup["argv"]),
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "PWD": str(Path.cwd()), **env, "PATH": path},
            start_new_session=True,
        )
        os.close(theirs)
        telling = asyncio.ensure_future(self.tell_output(output))
        code = await self.program.wait()
        await asyncio.wait([telling], timeout=1)
        return code

    async def tell_output(self, output):
        """Send what the program and all that it started print."""
        reader = asyncio.StreamReader()
        with os.fdopen(output, "rb") as pipe:
            await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
            while data := await reader.read(MOST):
                await self.send(b"o", 0, data)

    def kill(self):
        """End the program."""
        if self.program and self.program.returncode is None:
            with contextlib.suppress(OSError):
                os.killpg(self.program.pid, signal.SIGKILL)


def furnish(setup, bundle, port):
    """Make the repository in this folder, and the program's files at home."""
    workspace, tools = Path.cwd(), our_folder()
    for path, content in setup["home"].items():
        write(Path.home() / path, filled(content))
    for path, content in setup["tools"].items():
        write(tools / path, content)
    write(tools / "bundle", bundle)
    git("init", "-q")
    write(workspace / ".git/info/attributes", AS_IT_IS)
    for command in (
        ("fetch", "-q", str(tools / "bundle"), "refs/*:refs/*"),
        ("checkout", "-q", "-b", "work", setup["branch"]),
        ("config", "user.name", "agent"),
        ("config", "user.email", "agent@evogit.invalid"),
        ("config", "gc.auto", "0"),
    ):
        git(*command)
    (tools / "bundle").unlink()
    without = " ".join([".git", *(name for name in REMADE if not any(workspace.rglob(name)))])
    for name in TOOLS:
        write(tools / name, TOOL.format(tools=tools, name=name, port=port, workspace=workspace, without=without))
        (tools / name).chmod(0o755)
    write(workspace / ".git/info/exclude", "".join(f"{line}\n" for line in setup["exclude"]))
    for path, content in setup["workspace"].items():
        write(workspace / path, content)


def git(*command):
    """Run Git in the workspace, before the program does."""
    subprocess.run([*GIT, *command], check=True, capture_output=True)


def filled(text):
    """A text with the folders that only we know."""
    return text.replace("{workspace}", str(Path.cwd())).replace("{home}", str(Path.home()))


def our_folder():
    """The folder of what is ours, such as `evaluate`."""
    return Path.home() / ".evogit"


def write(path, content):
    """Write a file, and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogateescape"))


def message(branch):
    """The message of the last commit since the branch; empty where there is none, or no repository any more."""
    try:
        said = subprocess.run(
            [*GIT, "log", "-1", "--format=%B", f"{branch}..HEAD"], capture_output=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return said.stdout.decode(errors="replace").strip()[:5000]


async def exactly(reader, size):
    """So many bytes, or none when the connection ends."""
    try:
        return await reader.readexactly(size)
    except (asyncio.IncompleteReadError, OSError):
        return b""


async def main():
    """Serve the first who connects, the host, until it is gone."""
    control, models, evaluations = map(int, sys.argv[1:])
    hosts = asyncio.Queue()
    server = await asyncio.start_server(lambda *streams: hosts.put_nowait(streams), "127.0.0.1", control)
    host = Host(*await hosts.get())
    server.close()
    for port, kind in ((models, b"m"), (evaluations, b"e")):
        await asyncio.start_server(lambda *streams, kind=kind: host.visit(kind, *streams), "127.0.0.1", port)
    await host.serve(models, evaluations)


if __name__ == "__main__":
    asyncio.run(main())
