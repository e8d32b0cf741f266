"""Journals that are signed with ssh keys, and the hosts that ask for that: real keys, over a bare repository."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from evogit.core import ConfigError
from evogit.repository import Repository
from tests.plain_git import git

from .test_remote import Host, Join, join, server  # noqa: F401  fixtures

PEOPLE = ("ada", "eve", "stranger")


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The keys of a few people, and the file that names those who may sign."""
    folder = tmp_path_factory.mktemp("keys")
    for name in PEOPLE:
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", folder / name], check=True)
    lines = [f"{name}@example.org {(folder / name).with_suffix('.pub').read_text()}" for name in PEOPLE[:2]]
    (folder / "allowed").write_text("".join(lines))
    return folder


Setting = Callable[..., Host]


def settings(host: Host, **values: str) -> None:
    for name, value in values.items():
        git(host.repository.path, "config", name.replace("_", "."), value)


@pytest.fixture
def signing(join: Join, keys: Path) -> Setting:  # noqa: F811
    """Makes hosts that sign with somebody's key, if any, and check others'."""

    def make(name: str, person: str = "", *, checks: bool = False) -> Host:
        host = join(name)
        if person:
            settings(host, gpg_format="ssh", user_signingkey=str(keys / person), evogit_sign="true")
        if checks:
            settings(host, gpg_ssh_allowedSignersFile=str(keys / "allowed"), evogit_trustedSigners="true")
        return host

    return make


def test_only_what_allowed_people_signed_counts(signing: Setting) -> None:
    alpha = signing("alpha", "ada", checks=True)
    seed = alpha.run.add_files({"main.py": b"0\n"}, value=1.0)
    assert alpha.sync().went == 3
    made = dict[str, str]()
    for number, (name, person) in enumerate((("lab1", "eve"), ("lab2", ""), ("lab3", "stranger"))):
        host = signing(name, person)
        host.sync()
        made[name] = host.run.add_files({"main.py": f"{number}\n".encode()}, seed, value=2.0)
        host.sync()
    remote = alpha.repository.remote("r", alpha.server)
    told = asyncio.run(remote.exchange(lambda: alpha.candidates.__contains__, seconds=None)).notes
    assert told[0] == "left lab2 as it was: its journal is not signed, as evogit.trustedSigners asks for"
    assert told[1].startswith("left lab3 as it was: ")
    assert "allowed signed its journal" in told[1], "the file that lists the allowed is named"
    assert alpha.candidates == {seed, made["lab1"]}
    assert alpha.sync().notes == told
    assert {stranger.host for stranger in remote.strangers(())} == {"lab2", "lab3"}


def test_what_comes_behind_a_signature_waits_for_the_next(signing: Setting, server: Path) -> None:  # noqa: F811
    alpha, beta = signing("alpha", checks=True), signing("beta", "ada")
    seed = beta.run.add_files({"main.py": b"1\n"}, value=1.0)
    beta.sync()
    assert alpha.sync().came == 3
    settings(beta, evogit_sign="false")
    beta.run.decide("prune", seed)
    beta.sync()
    late = "left beta as it was: what it wrote since its last signature is not signed"
    assert (alpha.sync().notes, alpha.run.history.pruned) == ([late], set())
    settings(beta, evogit_sign="true")
    assert beta.sync().went == 1
    assert (alpha.sync().came, alpha.run.history.pruned) == (1, {seed})
    assert beta.sync().went == 0  # nothing new to sign
    assert "Good" in verified(server, beta, alpha)


def verified(server: Path, signer: Host, checker: Host) -> str:  # noqa: F811
    """What Git itself says of a signature on the server."""
    allowed = settings_of(checker, "gpg.ssh.allowedSignersFile")
    command = ["git", "-c", f"gpg.ssh.allowedSignersFile={allowed}", "verify-commit", signer.ref("signed")]
    return subprocess.run(command, cwd=server, capture_output=True, text=True, check=True).stderr


def test_nobody_signs_for_another_host_although_they_have_the_key_and_may_sign(
    signing: Setting, tmp_path: Path
) -> None:
    alpha, beta = signing("alpha", checks=True), signing("beta", "ada")
    seed = beta.run.add_files({"main.py": b"1\n"}, value=1.0)
    beta.sync()
    alpha.sync()
    shutil.copytree(beta.repository.path, tmp_path / "copy")
    eve = Host(Repository.open(tmp_path / "copy"), beta.server)
    settings(eve, user_signingkey=settings_of(signing("lab1", "eve"), "user.signingkey"))
    eve.run.decide("prune", seed)
    eve.sync()
    told = "left beta as it was: its journal was signed by ada@example.org, and is by eve@example.org now"
    assert (alpha.sync().notes, alpha.run.history.pruned) == ([told], set())
    for kind, of in (("signed", "beta"), ("journal", "beta"), ("keep", "beta")):  # and as that of another host
        git(Path(beta.server), "update-ref", beta.ref(kind, "lab2"), str(beta.tip(kind, of)))
    assert "left lab2 as it was: its journal is not sealed with the key of this run" in alpha.sync().notes


def settings_of(host: Host, name: str) -> str:
    return git(host.repository.path, "config", name).strip()


def test_a_clone_that_was_put_back_goes_on_signing(signing: Setting, tmp_path: Path) -> None:
    alpha, beta = signing("alpha", "ada", checks=True), signing("beta", checks=True)
    seed = alpha.run.add_files({"main.py": b"1\n"}, value=1.0)
    alpha.sync()
    shutil.copytree(alpha.repository.path, tmp_path / "backup")
    alpha.run.decide("promote", seed)
    alpha.sync()
    backup = Host(Repository.open(tmp_path / "backup"), alpha.server)
    assert backup.sync().came == 1
    backup.run.decide("guide", reason="more")
    assert (backup.sync().went, beta.sync().came) == (2, 5)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("gpg_format", "openpgp"), ("user_signingkey", ""), ("user_signingkey", "nowhere.pub")),
        *(("gpg_ssh_program", "no-such-keygen"), ("evogit_sign", "perhaps")),
        *(("gpg_ssh_allowedSignersFile", ""), ("gpg_ssh_allowedSignersFile", "nowhere")),
    ],
)
def test_settings_that_cannot_be_kept_are_told(signing: Setting, name: str, value: str) -> None:
    alpha = signing("alpha", "ada", checks=True)
    settings(alpha, **{name: value})
    with pytest.raises(ConfigError):
        alpha.sync()
