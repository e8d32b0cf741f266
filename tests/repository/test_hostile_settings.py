"""What the `.git/config` of a clone names, which an archive may bring along, is not run by an exchange."""

from __future__ import annotations

import asyncio
import http.server
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from evogit.core import ConfigError, UsageError
from evogit.credentials import SeedSecrets
from evogit.repository import Repository, tracked_below
from evogit.repository.git import run_git
from evogit.repository.person_git import RemoteError
from evogit.repository.remote import Exchanged
from evogit.repository.state_files import Contact, note_contact
from evogit.repository.state_folder import StateFolder
from evogit.testing import RecordedRun
from evogit.trust import Claim, Trust, UntrustedError
from tests.plain_git import git

SIGNED = {"evogit.sign": "true", "gpg.format": "ssh"}

EXT = {"protocol.ext.allow": "always"}
SETTINGS = {
    "a transport": ("fetch origin", {"remote.origin.url": "ext::EVIL", **EXT}),
    "a transport for pushes": ("push origin HEAD:x", {"remote.origin.pushurl": "ext::EVIL", **EXT}),
    "a transport by name": ("fetch origin", {"remote.origin.vcs": "ext", "remote.origin.url": "EVIL", **EXT}),
    "another address": (
        "fetch origin",
        {"remote.origin.url": "https://x", "url.ext::EVIL.insteadOf": "https://x", **EXT},
    ),
    "uploadpack": ("fetch origin", {"remote.origin.uploadpack": "EVIL"}),
    "receivepack": ("push origin HEAD:x", {"remote.origin.receivepack": "EVIL"}),
    "an included file": ("fetch origin", {"include.path": "more.cfg"}),
    "ssh": ("fetch origin", {"remote.origin.url": "ssh://localhost/x", "core.sshCommand": "EVIL"}),
    "a proxy of git": ("fetch origin", {"remote.origin.url": "git://localhost/x", "core.gitProxy": "EVIL"}),
    "a question": ("fetch origin", {"remote.origin.url": "HTTP/x", "core.askPass": "EVIL"}),
    "credentials": ("fetch origin", {"remote.origin.url": "HTTP/x", "credential.helper": "!EVIL"}),
    "credentials of a server": ("fetch origin", {"remote.origin.url": "HTTP/x", "credential.HTTP.helper": "!EVIL"}),
    "alternates": ("fetch origin refs/heads/new", {"core.alternateRefsCommand": "EVIL"}),
    "signatures": (
        "commit-tree -S -m x HEAD^{tree}",
        {**SIGNED, "user.signingKey": "key::ssh-ed25519 AAAA", "gpg.ssh.program": "EVIL"},
    ),
    "the key of signatures": ("commit-tree -S -m x HEAD^{tree}", {**SIGNED, "gpg.ssh.defaultKeyCommand": "EVIL"}),
}
"""What it is -> how plain git runs it, and the settings. EVIL leaves a canary; HTTP asks for a password."""


class Locked(http.server.BaseHTTPRequestHandler):
    """A server that lets nobody in."""

    def do_GET(self) -> None:
        self.send_response(401)
        self.send_header("WWW-Authenticate", "Basic realm=x")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def locked() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Locked) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@dataclass
class Clone:
    """A clone with a run, of a server on the disk; a `program` leaves the `canary`."""

    folder: Path
    server: Path
    program: Path
    canary: Path

    def set(self, name: str, value: str, file: str = "--local") -> None:
        git(self.folder, "config", *([file] if file == "--local" else ["--file", file]), name, value)

    def sync(self, run: str = "r") -> Exchanged:
        remote = Repository.open(self.folder).remote(run, "origin")
        return asyncio.run(remote.exchange(lambda: lambda commit: True, seconds=30))

    def plainly(self, command: str) -> bool:
        """Return whether plain git runs the program."""
        words = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *command.split()]
        subprocess.run(words, cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        return self.canary.exists()


def canary_program(program: Path, canary: Path) -> None:
    program.write_text(f"#!/bin/sh\n: > {canary}\nexit 1\n")
    program.chmod(0o755)


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clone:
    for name in ("GIT_ALLOW_PROTOCOL", "GIT_SSH_COMMAND", "GIT_ASKPASS", "SSH_ASKPASS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    for name in ("server.git", "other.git"):
        git(tmp_path, "init", "-q", "--bare", name)
    tree = git(tmp_path / "server.git", "hash-object", "-t", "tree", "-w", "--stdin", input="").strip()
    commit = git(tmp_path / "server.git", "commit-tree", "-m", "x", tree).strip()
    git(tmp_path / "server.git", "update-ref", "refs/heads/new", commit)
    run = RecordedRun(tmp_path / "clone", "r")
    seed = run.add_files({"main.py": b"1\n"}, value=1.0)
    found = Clone(tmp_path / "clone", tmp_path / "server.git", tmp_path / "evil", tmp_path / "canary")
    git(found.folder, "update-ref", "HEAD", seed)
    found.set("remote.origin.url", str(found.server))
    canary_program(found.program, found.canary)
    found.set("remote.origin.uploadpack", str(found.program), str(found.folder / ".git/more.cfg"))
    return found


@pytest.mark.parametrize("kind", SETTINGS)
def test_a_command_that_the_clone_names_is_not_run(clone: Clone, locked: str, kind: str) -> None:
    command, settings = SETTINGS[kind]
    (clone.folder / ".git/objects/info/alternates").write_text(f"{clone.server.parent}/other.git/objects\n")
    for name, value in settings.items():
        name, value = (text.replace("EVIL", str(clone.program)).replace("HTTP", locked) for text in (name, value))
        clone.set(name, value)
    with pytest.raises((RemoteError, UntrustedError)):
        clone.sync()
    assert not clone.canary.exists()
    assert clone.plainly(command)


@pytest.mark.parametrize(
    "name",
    [
        *("http.proxy", "http.https://x.proxy", "remote.origin.proxy", "http.curloptResolve", "http.cookieFile"),
        *("http.saveCookies", "http.delegation", "hook.mine.command", "url.https://y.pushInsteadOf"),
        *("http.sslVerify", "http.https://x.sslCAInfo", "http.sslCert", "fetch.bundleURI", "push.gpgSign"),
        *("user.signingKey", "gpg.format", "evogit.sign", "evogit.trustedSigners", "protocol.version"),
        *("credential.username", "remote.origin.promisor", "core.alternateRefsPrefixes"),
    ],
)
def test_what_leads_elsewhere_or_writes_a_file_or_signs_is_refused(clone: Clone, name: str) -> None:
    clone.set(name, "1")
    with pytest.raises(UntrustedError):
        clone.sync()
    Trust.of_user().add(Claim("folder", str(clone.folder)))
    with suppress(RemoteError, ConfigError):  # it has its effect then
        clone.sync()


def test_the_command_is_shown_before_all_else_and_secrets_are_not(clone: Clone) -> None:
    clone.set("http.https://x/.extraHeader", "AUTHORIZATION: basic c2VjcmV0")
    for number in range(30):
        clone.set(f"credential.https://github.com/{'project-' * 20}{number}.helper", "store")
    clone.set("core.sshCommand", f"touch {clone.canary}")
    with pytest.raises(UntrustedError) as caught:
        clone.sync()
    told = str(caught.value)
    assert told.index(f"touch {clone.canary}") < told.index("store")
    assert "too long to be shown whole" in told
    assert "c2VjcmV0" not in told


@pytest.mark.parametrize("scope", ["clone", "user"])
def test_a_strangers_journal_is_not_signed(clone: Clone, tmp_path: Path, monkeypatch, scope: str) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "key"], check=True)
    Repository.open(clone.folder).keys.keep("sealed", b"k" * 32)
    RecordedRun(clone.folder, "sealed").add_files({"main.py": b"1\n"}, value=1.0)
    state = os.environ["XDG_STATE_HOME"]
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "empty"))  # so the key is a stranger's
    file = "--local" if scope == "clone" else os.environ["GIT_CONFIG_GLOBAL"]
    for name, value in {**SIGNED, "user.signingKey": str(tmp_path / "key")}.items():
        clone.set(name, value, file)
    if scope == "user":
        assert "signed nothing" in " ".join(clone.sync("sealed").notes)
    else:
        with pytest.raises(UntrustedError):
            clone.sync("sealed")
    assert "/signed/" not in git(clone.server, "for-each-ref")
    if scope == "user":
        monkeypatch.setenv("XDG_STATE_HOME", state)
        clone.sync("sealed")
        assert "/signed/" in git(clone.server, "for-each-ref")


def test_no_address_is_an_option(clone: Clone) -> None:
    repository, option = Repository.open(clone.folder), f"--upload-pack=touch {clone.canary};"
    clone.set("branch.main.remote", option)
    clone.set(f"remote.{option}.url", str(clone.server))
    with pytest.raises(UsageError):
        repository.remote("r", option)
    with pytest.raises(UsageError):
        asyncio.run(repository.runs_there(option))
    assert Repository.open(clone.folder).branches.remote("refs/heads/main") == "origin"
    assert not clone.canary.exists()


def test_credentials_are_looked_for_whatever_a_note_says_was_pushed(clone: Clone) -> None:
    note_contact(StateFolder(clone.folder / ".git"), "r", Contact("origin", prefix="refs/evogit/"))
    seed = git(clone.folder, "rev-parse", "HEAD").strip()
    remote = Repository.open(clone.folder).remote("r", "origin", lambda: SeedSecrets(seed, [".env"]))
    with pytest.raises(RemoteError):
        asyncio.run(remote.exchange(lambda: lambda commit: True, seconds=30))
    assert "evogit" not in git(clone.server, "for-each-ref")


def test_plain_settings_of_a_clone_are_its_own(clone: Clone) -> None:
    for name, value in {
        "user.name": "Ada",
        "user.email": "ada@example.org",
        "core.autocrlf": "false",
        "remote.origin.tagOpt": "--no-tags",
        "remote.a.b.skipFetchAll": "true",
        "remote.origin.gh-resolved": "base",
        "remote.origin.pushurl": str(clone.server),
        "branch.main.remote": "origin",
    }.items():
        clone.set(name, value)
    clone.sync()
    assert git(clone.server, "for-each-ref", "refs/evogit")


@pytest.mark.parametrize("way", ["alternates", "a link"])
def test_objects_of_another_repository_are_pushed_once_the_user_trusts_the_clone(clone: Clone, way: str) -> None:
    other = clone.server.parent / "other.git"
    seed = git(clone.folder, "rev-parse", "HEAD").strip()
    tree = git(other, "hash-object", "-t", "tree", "-w", "--stdin", input="").strip()
    private = git(other, "commit-tree", "-m", "keep", tree).strip()
    if way == "alternates":
        (clone.folder / ".git/objects/info/alternates").write_text(f"{other}/objects\n")
    else:
        (clone.folder / ".git/objects" / private[:2]).mkdir(exist_ok=True)
        (clone.folder / ".git/objects" / private[:2] / private[2:]).symlink_to(
            other / "objects" / private[:2] / private[2:]
        )
    host = Repository.open(clone.folder).host
    git(clone.folder, "update-ref", f"refs/evogit/r/keep/{host}", private)
    with pytest.raises(UntrustedError, match="another repository"):
        clone.sync()
    assert not git(clone.server, "for-each-ref", "refs/evogit")
    git(clone.folder, "update-ref", f"refs/evogit/r/keep/{host}", seed)
    Trust.of_user().add(Claim("folder", str(clone.folder)))
    clone.sync()
    assert git(clone.server, "for-each-ref", "refs/evogit")


def test_a_run_of_the_users_own_in_a_shared_clone_is_pushed_unasked(clone: Clone) -> None:
    (clone.folder / ".git/objects/info/alternates").write_text(f"{clone.server.parent}/other.git/objects\n")
    Repository.open(clone.folder).keys.keep("own", b"k" * 32)
    RecordedRun(clone.folder, "own").add_files({"main.py": b"1\n"}, value=1.0)
    clone.sync("own")
    assert git(clone.server, "for-each-ref", "refs/evogit/own")


def test_a_transport_that_reads_what_is_open_is_refused_at_once(clone: Clone) -> None:
    clone.set("remote.origin.url", "fd::0")
    with pytest.raises((RemoteError, UntrustedError)):
        clone.sync()


def test_settings_of_a_worktree_are_the_clones_too(clone: Clone) -> None:
    clone.set("extensions.worktreeConfig", "true")
    git(clone.folder, "config", "--worktree", "remote.origin.uploadpack", str(clone.program))
    with pytest.raises((RemoteError, UntrustedError)):
        clone.sync()
    assert not clone.canary.exists()
    assert clone.plainly("fetch origin")


@pytest.mark.parametrize("what", ["hooks", "alternates"])
def test_what_a_server_on_this_machine_names_is_not_run(clone: Clone, what: str) -> None:
    if what == "hooks":
        hooks = ("pre-receive", "update", "post-receive", "post-update", "reference-transaction", "push-to-checkout")
        for hook in hooks:
            canary_program(clone.server / "hooks" / hook, clone.canary)
    else:
        (clone.server / "objects/info/alternates").write_text(f"{clone.server.parent}/other.git/objects\n")
        git(clone.server, "config", "core.alternateRefsCommand", str(clone.program))
    clone.sync()
    assert git(clone.server, "for-each-ref", "refs/evogit")
    assert not clone.canary.exists()
    assert clone.plainly("push origin HEAD:refs/heads/x")


def test_the_users_own_settings_hold(clone: Clone) -> None:
    clone.set("core.sshCommand", str(clone.program), os.environ["GIT_CONFIG_GLOBAL"])
    clone.set("remote.origin.url", "ssh://localhost/x")
    with pytest.raises((RemoteError, UntrustedError)):
        clone.sync()  # the program is no ssh
    assert clone.canary.exists()


def test_the_users_environment_allows_a_transport(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    clone.set("remote.origin.url", f"ext::{clone.program}")
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "ext:file")
    with pytest.raises((RemoteError, UntrustedError)):
        clone.sync()
    assert clone.canary.exists()


def test_no_object_is_fetched_from_where_the_clone_promises_it(clone: Clone) -> None:
    """A merge or `evogit clean RUN` would read objects that are missing: by our own git, without any server."""
    for name, value in {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.uploadpack": str(clone.program),
    }.items():
        clone.set(name, value)
    missing = "1" * 40
    run_git(clone.folder / ".git", "cat-file", "-e", missing, ok=(1, 128))
    assert not clone.canary.exists()
    assert clone.plainly(f"cat-file -e {missing}")


def test_a_monitor_of_files_that_the_clone_names_is_not_asked(clone: Clone) -> None:
    """An index that asks for one comes along, too."""
    (clone.folder / "main.py").write_text("2\n")
    git(clone.folder, "add", "main.py")
    git(clone.folder, "update-index", "--fsmonitor")
    clone.set("core.fsmonitor", str(clone.program))
    listed = asyncio.run(tracked_below(clone.folder / ".git", clone.folder))
    assert "main.py" in listed
    assert not clone.canary.exists()
    assert clone.plainly("ls-files --others")
