"""The person's own git, with their settings, credentials and ways through the network, for servers that they use."""

from __future__ import annotations

import asyncio
import os
import re
import resource
import shutil
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from evogit.core import RepositoryError, UsageError
from evogit.repository.git import LONGEST_WAIT, MISSING, Output, git_command
from evogit.subprocesses import (
    DEVNULL,
    PIPE,
    QUERY_SECONDS,
    TooLongError,
    end_group,
    let_go,
    run_child,
    start_beside,
)
from evogit.text import one_line
from evogit.trust import Claim, Trust

MOST_TOLD = 1 << 20  # bytes of what git prints that are read: a server may say anything, for ever
END_IN = 3.0  # seconds that git has to remove what it was about to write, once it is asked to end
LONGEST_WHY = 200  # characters of what a server says that are passed on

SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "push.recurseSubmodules=no",
)
"""What of a person's settings must not take part: hooks are for their branches, and packing is ours to do."""

ALLOWED = "GIT_ALLOW_PROTOCOL"

PROTOCOLS = ("ssh", "https", "http", "git", "file")  # others, such as `ext`, may run what the address names

ASKED = re.compile(
    r"(?:http|credential|gpg|ssh|url|fetch|push|protocol|hook|evogit)\..*|user\.signingkey"
    r"|core\.(?:sshcommand|gitproxy|askpass|alternaterefs(?:command|prefixes))"
    r"|remote\..*\.(?!(?:url|pushurl|fetch|push|tagopt|prune|prunetags|mirror|gh-resolved|skip\w*)$)[^.]*",
    re.DOTALL,
)
"""Settings of a clone that may have git run a command, ask another server, hand on a login, or sign."""

COMMANDS = re.compile(
    r"core\..*|hook\..*|.*\.(?:program|defaultkeycommand|helper|vcs|uploadpack|receivepack)", re.DOTALL
)
"""Those of them that run a command, which are shown first."""

SIGNING = re.compile(r"(?:gpg|evogit)\..*|user\.signingkey", re.DOTALL)
"""Settings that say in whose name something is signed, and who is believed."""

OWN = ("local", "worktree")  # scopes of settings that come with a clone

RECEIVE = (
    "GIT_NO_LAZY_FETCH=1 git -c core.hooksPath=/dev/null -c core.alternateRefsCommand= -c core.fsmonitor=false "
    "-c receive.autogc=false -c receive.denyCurrentBranch=refuse receive-pack"
)
"""What takes a push in a repository on this machine: nothing that it names is run, as an archive may bring it along."""


class RemoteError(RepositoryError):
    """A server was not reached, or refused something."""


async def person_git(git_dir: Path, folder: Path, *arguments: str, seconds: float | None, asks: bool = False) -> Output:
    """Run git, bounded in time and output. Raises RemoteError: too long; UntrustedError; RepositoryError."""
    own = [(name, value) for scope, name, value in _settings(git_dir) if scope in OWN and ASKED.fullmatch(name)]
    if own and not Trust.of_user().covers(folder):
        # those that run commands first, of these `core.` ones, of one name the last first; without credentials
        ordered = sorted(dict.fromkeys(reversed(own)), key=lambda each: not COMMANDS.fullmatch(each[0]))
        ordered.sort(key=lambda each: not each[0].startswith("core."))
        texts = {pair: "(a secret)" if pair[0].endswith(".extraheader") else shown(pair[1] or "") for pair in ordered}
        listed = "; ".join(f"{name} = {text}" for (name, _), text in texts.items())
        effect = f"its .git/config may have Git run a command or ask another server: {listed}"
        Trust.of_user().check([Claim("folder", str(folder.resolve()), effect)])
    options = [word for setting in SETTINGS for word in ("-c", setting)]
    process = await start_beside(
        git_command(*options, *arguments),
        env=_environment(git_dir, asks=asks),
        cwd=folder,
        session=not asks,  # with a terminal of its own nobody is asked
        stdin=None if asks else DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
    )
    try:
        most = shutil.disk_usage(git_dir).free // 2
        with suppress(ProcessLookupError, PermissionError, ValueError):
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (most, most))
        async with asyncio.timeout(seconds):
            stdout, stderr = await asyncio.gather(_read(process.stdout), _read(process.stderr))
            code = await process.wait()
    except TimeoutError as error:
        raise RemoteError(f"git {arguments[0]} was not done within {seconds:g} s") from error
    finally:
        if process.returncode is None:
            await _end(process, alone=not asks)
        let_go(process)
    said = stderr.decode(errors="replace").strip()
    if code and (refused := re.search(r"transport '([^']*)' not allowed", said)):
        raise RemoteError(
            f"expected a server by {', '.join(PROTOCOLS)} or a path, got the transport {one_line(refused[1], 40)}, "
            f"which may run a command; the variable {ALLOWED} allows others"
        )
    return Output(code, stdout, said)


def signing_config(git_dir: Path, folder: Path) -> dict[str, str | None]:
    """Return settings of signatures, a clone's own only if it is trusted. Raises RepositoryError: Git fails."""
    found = [each for each in _settings(git_dir) if SIGNING.fullmatch(each[1])]
    if any(scope in OWN for scope, _, _ in found) and not Trust.of_user().covers(folder):
        found = [each for each in found if each[0] not in OWN]
    return {name: value for _, name, value in found}


def check_address(name: str) -> str:
    """Return the name of a remote or an address. Raises UsageError: it is none, or git's option."""
    if name.startswith("-") or not name:
        raise UsageError(f"expected the name of a remote or an address, got {name!r}")
    return name


async def receiving(git_dir: Path, folder: Path, remote: str) -> list[str]:
    """Options of a push to a remote, which keep a repository on this machine from running what it names."""
    done = await person_git(git_dir, folder, "remote", "get-url", "--push", "--all", "--", remote, seconds=LONGEST_WAIT)
    addresses = [remote] if done.code else done.stdout.decode(errors="replace").splitlines()
    local = any(re.match(r"file://|[^:]*(?:/|$)", address) for address in addresses)
    return [f"--receive-pack={RECEIVE}"] * local


def shown(address: str) -> str:
    """A server's name or address, or a text with some, without passwords."""
    return re.sub(r"://[^/@\s]+@", "://", address)


def _settings(git_dir: Path) -> Iterator[tuple[str, str, str | None]]:
    """Yield the scope, the name and the value of each setting."""
    command = ["git", "config", "--null", "--show-scope", "--list"]
    try:
        done = run_child(command, seconds=QUERY_SECONDS, env=_environment(git_dir, asks=False))
    except FileNotFoundError as error:
        raise RepositoryError(MISSING) from error
    except TooLongError as error:
        raise RepositoryError(f"reading the settings of Git: {error}") from error
    if done.returncode:
        raise RepositoryError(f"reading the settings of Git: {why(done.stderr.decode(errors='replace'))}")
    scopes_and_pairs = iter(done.stdout.decode(errors="replace").split("\0"))
    for scope, pair in zip(scopes_and_pairs, scopes_and_pairs, strict=False):
        name, equals, value = pair.partition("\n")
        yield scope, name, value if equals else None


def _environment(git_dir: Path, *, asks: bool) -> dict[str, str]:
    """The person's surroundings, but for what would lead git to another repository."""
    elsewhere = ("GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR", "GIT_NAMESPACE")
    environment = {name: value for name, value in os.environ.items() if name not in elsewhere}
    quiet = {} if asks else {"GIT_TERMINAL_PROMPT": "0", "SSH_ASKPASS_REQUIRE": "never"}
    return {ALLOWED: ":".join(PROTOCOLS), **environment, **quiet, "GIT_DIR": str(git_dir), "LC_ALL": "C"}


async def _read(stream: asyncio.StreamReader | None) -> bytes:
    assert stream
    found = bytearray()
    while part := await stream.read(1 << 16):
        found += part[: MOST_TOLD - len(found)]
    return bytes(found)


async def _end(process: asyncio.subprocess.Process, *, alone: bool) -> None:
    """Ask it to end, so that it removes its locks and what it was writing, then end it."""
    with suppress(ProcessLookupError, PermissionError):
        if alone:
            os.killpg(process.pid, signal.SIGTERM)
        else:
            process.terminate()
    with suppress(TimeoutError):
        async with asyncio.timeout(END_IN):
            await process.wait()
    if alone:
        end_group(process.pid)  # what it started, too
    if process.returncode is None:
        process.kill()
        await process.wait()


def why(said: str) -> str:
    """What git says went wrong, in a line that may be shown: without passwords of addresses, and harmless."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    telling = [line for line in lines if line.startswith(("fatal:", "error:", "ssh:", "remote: ERROR"))]
    line = (telling or lines or ["git said nothing"])[0]
    return one_line(shown(line), LONGEST_WHY)
