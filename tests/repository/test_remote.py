"""Hosts that meet on a real Git server: a bare repository on the disk."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from evogit.core import RefusedError, UsageError
from evogit.repository import Repository
from evogit.repository.person_git import RemoteError, why
from evogit.repository.remote import Exchanged
from evogit.testing import RecordedRun
from tests.clock import wait_until
from tests.plain_git import git

KEY = b"k" * 32


@dataclass
class Host:
    """A clone, and the run as it reads it."""

    repository: Repository
    server: str

    @property
    def run(self) -> RecordedRun:
        return RecordedRun(self.repository)

    @property
    def candidates(self) -> set[str]:
        return {each.commit for each in self.run.history.phylogeny}

    def ref(self, kind: str, of: str = "") -> str:
        return f"refs/evogit/r/{kind}/{of or self.repository.host}"

    def tip(self, kind: str, of: str = "") -> str | None:
        return self.repository.target(self.ref(kind, of))

    def sync(self, seconds: float | None = None) -> Exchanged:
        def known() -> Callable[[str], bool]:
            return self.candidates.__contains__ if "r" in self.repository.runs() else lambda commit: False

        return asyncio.run(self.repository.remote("r", self.server).exchange(known, seconds=seconds))


Join = Callable[..., Host]


@pytest.fixture
def server(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "--bare", "server.git")
    return tmp_path / "server.git"


@pytest.fixture
def join(tmp_path: Path, server: Path) -> Join:
    """Makes hosts, which have the run's key unless another one is given."""

    def make(name: str, key: bytes = KEY, folder: Path | None = None) -> Host:
        repository = Repository.open(folder) if folder else Repository.create(tmp_path / name)
        repository.name_clone(name)
        if key:
            repository.keys.keep("r", key)
        return Host(repository, str(server))

    return make


@pytest.fixture
def far(tmp_path: Path, server: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The server's address by an ssh that leads to this machine: what it names is run by itself, not by us."""
    ssh = tmp_path / "ssh"
    ssh.write_text('#!/bin/sh\nfor command; do :; done\nexec sh -c "$command"\n')
    ssh.chmod(0o755)
    monkeypatch.setenv("GIT_SSH_COMMAND", str(ssh))
    monkeypatch.setenv("GIT_SSH_VARIANT", "ssh")
    return f"host:{server}"


def met(join: Join) -> tuple[Host, Host, str]:
    """Two hosts that have met over a seed of the first one."""
    alpha, beta = join("alpha"), join("beta")
    seed = alpha.run.add_files({"main.py": b"1\n"}, value=1.0)
    alpha.sync()
    beta.sync()
    return alpha, beta, seed


def refuse(server: Path, refs: str) -> None:
    hook = server / "hooks/update"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f'#!/bin/sh\ncase "$1" in {refs}) echo "branches alone, please" >&2; exit 1;; esac\n')
    hook.chmod(0o755)


def lives(pid: Path) -> bool:
    """Whether a process that wrote its number is at work; one that nobody asks after is not."""
    state = Path(f"/proc/{pid.read_text().strip()}/stat") if pid.exists() else pid
    return state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z"


def refs_of(server: Path) -> list[str]:
    return git(server, "for-each-ref", "--format=%(refname)").split()


def test_what_one_host_writes_reaches_the_others(join: Join) -> None:
    alpha, beta = join("alpha"), join("beta")
    seed = alpha.run.add_files({"main.py": b"1\n"}, value=1.0)
    assert (alpha.sync().went, beta.sync().came) == (2, 3)
    child = beta.run.add_files({"main.py": b"2\n"}, seed, value=2.0)
    beta.run.decide("prune", seed)
    beta.sync()
    assert alpha.sync().came == 3
    assert (alpha.candidates, alpha.run.history.pruned) == ({seed, child}, {seed})
    assert git(alpha.repository.path, "show", f"{child}:main.py") == "2\n"
    assert alpha.sync() == Exchanged(0, 0, [])


def test_a_server_that_takes_branches_alone_has_the_refs_there(join: Join, server: Path, far: str) -> None:
    refuse(server, "refs/evogit/*")
    alpha, beta = join("alpha"), join("beta")
    alpha.server = beta.server = far
    seed = alpha.run.add_files({"main.py": b"1\n"}, value=1.0)
    alpha.sync()
    assert refs_of(server) == ["refs/heads/evogit/r/journal/alpha", "refs/heads/evogit/r/keep/alpha"]
    beta.sync()
    assert beta.candidates == {seed}
    (server / "hooks/update").unlink()
    beta.run.decide("promote", seed)
    beta.sync()  # which found another place, and is heard all the same
    assert "refs/evogit/r/journal/beta" in refs_of(server)
    alpha.sync()
    assert alpha.run.history.promoted == {seed}
    assert alpha.repository.contact("r").prefix == "refs/heads/evogit/"  # type: ignore[union-attr]


def test_a_server_that_takes_nothing_is_told_with_its_words(join: Join, server: Path, far: str) -> None:
    refuse(server, "*")
    alpha = join("alpha")
    alpha.server = far
    alpha.run.add_files({"main.py": b"1\n"}, value=1.0)
    with pytest.raises(RemoteError, match=r"takes no refs below refs/heads/evogit/: .*hook declined"):
        alpha.sync()
    contact = alpha.repository.contact("r")
    assert contact
    assert (contact.tries, contact.failing > 0, "hook declined" in contact.why) == (1, True, True)


def test_two_copies_of_a_clone_never_overwrite_each_other(join: Join, tmp_path: Path) -> None:
    alpha = join("alpha")
    seed = alpha.run.add_files({"main.py": b"1\n"}, value=1.0)
    alpha.sync()
    shutil.copytree(alpha.repository.path, tmp_path / "copy")
    copy = Host(Repository.open(tmp_path / "copy"), alpha.server)
    alpha.run.decide("promote", seed)
    copy.run.decide("prune", seed)
    alpha.sync()
    with pytest.raises(RemoteError, match="another journal of the host alpha"):
        copy.sync()
    assert git(Path(alpha.server), "rev-parse", alpha.ref("journal")).strip() == alpha.tip("journal")
    assert copy.run.history.pruned == {seed}


def test_a_clone_that_was_put_back_takes_its_own_entries_from_the_server(join: Join, tmp_path: Path) -> None:
    alpha = join("alpha")
    seed = alpha.run.add_files({"main.py": b"1\n"}, value=1.0)
    alpha.sync()
    shutil.copytree(alpha.repository.path, tmp_path / "backup")
    alpha.run.decide("promote", seed)
    alpha.sync()
    backup = Host(Repository.open(tmp_path / "backup"), alpha.server)
    assert backup.sync().came == 1
    assert backup.run.history.promoted == {seed}


def test_a_server_with_an_older_state_takes_nothing_away(join: Join, server: Path) -> None:
    alpha, beta = join("alpha"), join("beta")
    seed = alpha.run.add_files({"main.py": b"1\n"}, value=1.0)
    alpha.sync()
    old = alpha.tip("journal")
    child = alpha.run.add_files({"main.py": b"2\n"}, seed, value=2.0)
    alpha.sync()
    beta.sync()
    git(server, "update-ref", alpha.ref("journal"), str(old))
    beta.sync()
    assert beta.candidates == {seed, child}
    alpha.sync()
    assert git(server, "rev-parse", alpha.ref("journal")).strip() == alpha.tip("journal")


def test_what_builds_on_a_host_that_is_not_there_waits_for_it(join: Join, server: Path) -> None:
    alpha, beta, gamma = join("alpha"), join("beta"), join("gamma")
    seed = alpha.run.add_files({"main.py": b"1\n"}, value=1.0)
    alpha.sync()
    beta.sync()
    beta.run.add_files({"main.py": b"2\n"}, seed, value=2.0)
    beta.sync()
    git(server, "update-ref", "-d", alpha.ref("journal"))
    assert gamma.sync() == Exchanged(0, 0, ["beta waits for what it builds on"])
    assert gamma.repository.runs() == []
    git(server, "update-ref", alpha.ref("journal"), str(alpha.tip("journal")))
    assert gamma.sync().came == 5
    assert len(gamma.candidates) == 2


def test_a_journal_without_its_candidates_is_not_taken_in(join: Join, server: Path) -> None:
    alpha, beta = join("alpha"), join("beta")
    alpha.run.add_files({"main.py": b"1\n"}, value=1.0)
    git(alpha.repository.path, "push", "-q", str(server), alpha.ref("journal"))
    told = beta.sync()
    assert told.came == 0
    assert "did not come with it" in told.notes[0]
    alpha.sync()
    assert beta.sync().came == 3


@pytest.mark.parametrize("theirs", [b"", b"x" * 32])
def test_a_stranger_changes_nothing_here(join: Join, theirs: bytes) -> None:
    alpha, stranger = join("alpha"), join("stranger", theirs)
    seed = alpha.run.add_files({"main.py": b"1\n"}, value=1.0)
    stranger.run.add_files({"main.py": b"x\n"}, value=99.0)
    stranger.sync()
    assert alpha.sync().notes == ["left stranger as it was: its journal is not sealed with the key of this run"]
    assert (alpha.candidates, alpha.tip("journal", "stranger")) == ({seed}, None)


def test_what_a_stranger_does_to_a_hosts_refs_there_reaches_nobody(join: Join, server: Path) -> None:
    alpha, beta, seed = met(join)
    stranger = join("stranger", b"")
    stranger.run.add_files({"main.py": b"x\n"}, value=99.0)
    for kind in ("journal", "keep"):
        git(stranger.repository.path, "push", "-qf", str(server), f"{stranger.ref(kind)}:{alpha.ref(kind)}")
    before = {kind: beta.tip(kind, "alpha") for kind in ("journal", "keep")}
    beta.sync()
    assert {kind: beta.tip(kind, "alpha") for kind in before} == before
    alpha.run.decide("promote", seed)
    with pytest.raises(RemoteError, match="another journal of the host alpha"):
        alpha.sync()
    assert alpha.run.history.promoted == {seed}


def test_a_newer_version_of_evogit_elsewhere_stops_nobody(join: Join, server: Path) -> None:
    alpha, beta = join("alpha", b""), join("beta", b"")
    seed = alpha.run.add_files({"main.py": b"1\n"}, value=1.0)
    tree = git(beta.repository.path, "hash-object", "-wt", "tree", "/dev/null").strip()
    record = json.dumps({"evogit": 99, "seq": 1, "event": "x"})
    entry = git(beta.repository.path, "commit-tree", tree, input=f"x\n\n{record}\n").strip()
    git(beta.repository.path, "push", "-q", str(server), f"{entry}:{beta.ref('journal')}")
    assert "upgrade this one" in alpha.sync().notes[0]
    assert alpha.candidates == {seed}


@pytest.mark.parametrize("kind", ["journal", "keep"])
def test_an_encoding_that_nobody_knows_stops_nobody(join: Join, server: Path, kind: str) -> None:
    alpha, beta, stranger = join("alpha"), join("beta"), join("stranger")
    seed = alpha.run.add_files({"main.py": b"1\n"}, value=1.0)
    alpha.sync()
    beta.sync()
    tree = git(stranger.repository.path, "hash-object", "-wt", "tree", "/dev/null").strip()
    who = "alpha <alpha@evogit.invalid> 1700000000 +0000"
    text = f"tree {tree}\nauthor {who}\ncommitter {who}\nencoding nonsense\n\nkeep x\n"
    made = git(stranger.repository.path, "hash-object", "-wt", "commit", "--stdin", input=text).strip()
    git(stranger.repository.path, "push", "-qf", str(server), f"{made}:{alpha.ref(kind)}")
    git(stranger.repository.path, "push", "-qf", str(server), f"{made}:{stranger.ref(kind)}")
    beta.run.decide("promote", seed)
    assert beta.sync().went
    assert beta.candidates == {seed}
    if kind == "journal":  # as by hand
        git(beta.repository.path, "fetch", "-q", str(server), f"{stranger.ref(kind)}:{stranger.ref(kind)}")
    assert beta.run.history.promoted == {seed}


def test_evidence_that_its_host_lets_go_of_goes_there_too(join: Join, server: Path) -> None:
    alpha, beta = join("alpha"), join("beta")
    run = alpha.run
    seed = run.add_files({"main.py": b"1\n"}, value=1.0, evidence=({}, {"stdout": b"hello\n"}))
    evidence = run.history.evidence[seed]
    alpha.sync()
    beta.sync()
    alpha.repository.thin("r", {evidence}, "all")
    alpha.sync()
    assert git(server, "rev-parse", alpha.ref("keep")).strip() == alpha.tip("keep")
    run.add_files({"main.py": b"2\n"}, seed, value=2.0)
    alpha.sync()
    beta.sync()
    assert beta.tip("keep", "alpha") == alpha.tip("keep")
    assert evidence in beta.repository.keeping("r").thinned()
    assert len(beta.candidates) == 2


def test_a_shallow_clone_takes_part(join: Join, server: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    git(tmp_path, "init", "-q", "-b", "main", str(own))
    for number in range(5):
        (own / "main.py").write_text(f"{number}\n")
        git(own, "add", ".")
        git(own, "commit", "-qm", f"step {number}")
    git(own, "push", "-q", str(server), "main")
    alpha = join("alpha", folder=own)
    seed = git(own, "rev-parse", "main").strip()
    alpha.run.journal.keep({}, seed)
    alpha.run.propose(candidate=seed, tree=alpha.repository.tree_of(seed))
    alpha.run.evaluate(seed, 1.0)
    alpha.sync()
    git(tmp_path, "clone", "-q", "--depth", "1", "-b", "main", f"file://{server}", "shallow")
    beta = join("beta", folder=tmp_path / "shallow")
    beta.server = "origin"
    beta.sync()
    child = beta.run.add_files({"main.py": b"better\n"}, seed, value=2.0)
    beta.sync()
    alpha.sync()
    assert alpha.candidates == {seed, child}
    assert (tmp_path / "shallow/.git/shallow").exists()
    assert git(tmp_path / "shallow", "status", "--porcelain") == ""
    assert not [ref for ref in refs_of(tmp_path / "shallow") if "remotes/origin/evogit" in ref]


def test_hooks_of_the_person_are_for_their_own_branches(join: Join, tmp_path: Path) -> None:
    alpha = join("alpha")
    alpha.run.add_files({"main.py": b"1\n"}, value=1.0)
    for name in ("pre-push", "reference-transaction"):
        hook = alpha.repository.path / ".git/hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/{name}\n")
        hook.chmod(0o755)
    assert alpha.sync().went == 2
    assert not list(tmp_path.glob("*-*"))


def test_a_server_that_stalls_is_given_up_with_all_that_was_started(
    join: Join, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ssh = tmp_path / "ssh"
    ssh.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep 600\n")
    ssh.chmod(0o755)
    monkeypatch.setenv("GIT_SSH_COMMAND", str(ssh))
    monkeypatch.setenv("GIT_SSH_VARIANT", "ssh")
    alpha = join("alpha")
    alpha.server = "ssh://ada:secret@example.invalid/run.git"
    alpha.run.add_files({"main.py": b"1\n"}, value=1.0)
    with pytest.raises(RemoteError, match="git fetch was not done within"):
        alpha.sync(seconds=0.5)
    contact = alpha.repository.contact("r")
    assert contact
    assert (contact.remote, "secret" in contact.why) == ("ssh://example.invalid/run.git", False)
    wait_until(lambda: not lives(tmp_path / "pid"), "the end of what git started")


def test_what_a_server_says_is_one_harmless_line() -> None:
    said = "remote: \x1b[2Jhello\nfatal: unable to access 'https://ada:secret@example.invalid/x/': \u202eno\n"
    assert why(said) == "fatal: unable to access 'https://example.invalid/x/': no"


def test_a_clone_is_named_once(join: Join) -> None:
    alpha = join("alpha")
    alpha.run.add_files({"main.py": b"1\n"}, value=1.0)
    alpha.repository.name_clone("alpha")
    with pytest.raises(RefusedError, match="leave --host out"):
        alpha.repository.name_clone("beta")
    with pytest.raises(UsageError, match="small letters"):
        alpha.repository.name_clone("../x")


def test_a_lock_that_a_killed_git_left_is_in_nobodys_way(join: Join) -> None:
    alpha, beta, seed = met(join)
    for ref in (beta.repository.common / "refs/evogit/r/fetched").rglob("alpha"):
        ref.with_name("alpha.lock").touch()
    alpha.run.decide("promote", seed)
    alpha.sync()
    assert beta.sync().came == 1


def test_nothing_is_left_of_a_run_that_is_removed(join: Join) -> None:
    from evogit.review.removing import remove

    alpha = join("alpha")
    alpha.run.add_files({"main.py": b"1\n"}, value=1.0)
    alpha.sync()
    remove(alpha.repository, "r")
    assert subprocess.run(["git", "-C", alpha.repository.path, "for-each-ref"], capture_output=True).stdout == b""
    assert not list((alpha.repository.common / "evogit").rglob("r.*"))


def test_refs_that_a_stranger_replaces_by_a_folder_stop_nobody(join: Join, server: Path) -> None:
    alpha, beta = join("alpha"), join("beta")
    alpha.run.add_files({"main.py": b"1\n"}, value=1.0)
    alpha.sync()
    tip, evil = alpha.tip("journal"), "refs/evogit/r/journal/evil"
    git(server, "update-ref", evil, tip or "")
    beta.sync()
    git(server, "update-ref", "-d", evil)
    git(server, "update-ref", f"{evil}/x", tip or "")
    late = alpha.run.add_files({"main.py": b"2\n"}, *alpha.candidates, value=2.0)
    alpha.sync()
    beta.sync()
    assert late in beta.candidates


def test_refs_that_cannot_be_written_here_stop_no_others(join: Join, server: Path) -> None:
    alpha, beta, _ = met(join)
    [staged] = [ref for ref in refs_of(beta.repository.path) if "/fetched/" in ref and ref.endswith("/journal/alpha")]
    evil = staged.removesuffix("alpha") + "evil"
    git(server, "update-ref", "refs/evogit/r/journal/evil", alpha.tip("journal") or "")
    lock = beta.repository.common / f"{evil}/.nested"
    lock.parent.mkdir()
    lock.touch()
    late = alpha.run.add_files({"main.py": b"2\n"}, *alpha.candidates, value=2.0)
    alpha.sync()
    done = beta.sync()
    assert late in beta.candidates
    assert any("fetched all but some" in note for note in done.notes)


def test_what_a_stranger_without_a_key_pushes_is_not_unpacked_without_end(join: Join) -> None:
    """In a clone without a key; what is read of the others, and what is read as the own, stays."""
    alpha, beta = join("alpha", b""), join("beta", b"")
    alpha.run.add_files({"main.py": b"1\n"}, value=1.0)
    alpha.sync()
    beta.sync()
    tip = alpha.tip("journal") or ""
    subject, record = alpha.repository.message(tip).split("\n", 1)
    for number in range(9):
        message = f"{subject}{number}{' ' * (2 << 20)}x\n{record}"
        tip = git(alpha.repository.path, "commit-tree", f"{tip}^{{tree}}", "-p", tip, "-F", "-", input=message).strip()
    git(alpha.repository.path, "update-ref", alpha.ref("journal"), tip)
    alpha.sync()
    before = beta.tip("journal", "alpha")
    assert any("no key" in note for note in beta.sync().notes)
    assert beta.tip("journal", "alpha") == before
    git(beta.repository.path, "fetch", "-q", beta.server, "+refs/evogit/r/journal/alpha:refs/evogit/r/journal/alpha")
    git(beta.repository.path, "update-ref", "refs/evogit/r/journal/zeta", before or "")
    left = beta.run.journal.unreadable["alpha"]
    assert list(beta.run.journal.unreadable) == ["alpha"]  # ordinary entries of others are read all the same
    assert left.tip == alpha.tip("journal")
    [_, chain] = sorted(beta.repository.chains("r"), key=lambda chain: chain.host, reverse=True)
    assert chain.wrong
    assert chain.host == "alpha"
    assert len(alpha.run.history.phylogeny) == 1


def raw_commit(folder: Path, text: str) -> str:
    """Write a commit that Git takes, whatever it says."""
    return git(folder, "hash-object", "-w", "-t", "commit", "--literally", "--stdin", input=text).strip()


@pytest.mark.parametrize("key", [b"", KEY])
def test_a_journal_that_gives_a_candidate_another_tree_does_not_count(join: Join, key: bytes) -> None:
    alpha, beta = join("alpha", key), join("beta", key)
    run = alpha.run
    seed = run.add_files({"main.py": b"1\n"}, value=1.0)
    beta.run.add_files({"main.py": b"0\n"}, value=0.0)
    alpha.sync()
    beta.sync()
    good = run.commit({"main.py": b"good\n"}, seed)
    evil = run.commit({"main.py": b"evil\n"}, seed)
    run.journal.keep({}, evil)
    run.propose(seed, candidate=evil, tree=run.repository.tree_of(good))
    git(alpha.repository.path, "push", "-q", alpha.server, "refs/evogit/*:refs/evogit/*")
    [note] = beta.sync().notes
    assert f"its candidate {evil[:10]} has the tree" in note
    for kind in ("keep", "journal"):  # by hand
        git(beta.repository.path, "fetch", "-q", beta.server, f"{alpha.ref(kind)}:{alpha.ref(kind)}")
    assert "has the tree" in beta.run.journal.unreadable["alpha"].why
    assert evil not in beta.candidates


@pytest.mark.parametrize("kind", ["journal", "keep"])
@pytest.mark.parametrize("key", [b"", KEY])
def test_a_commit_that_libgit2_cannot_parse_stops_nobody(join: Join, server: Path, kind: str, key: bytes) -> None:
    alpha, beta, gamma = join("alpha", key), join("beta", key), join("gamma", key)
    seed = alpha.run.add_files({"main.py": b"1\n"}, value=1.0)
    gamma.run.add_files({"main.py": b"2\n"}, value=1.0)
    alpha.sync()
    beta.sync()
    before = {kind: beta.tip(kind, "alpha") for kind in ("journal", "keep")}
    alpha.run.decide("promote", seed)
    for host in (alpha, gamma):
        host.sync()
    tree = git(server, "hash-object", "-wt", "tree", "/dev/null").strip()
    git(server, "update-ref", alpha.ref(kind), raw_commit(server, f"tree {tree}\n\nkeep x\n"))
    [note] = beta.sync().notes
    assert "cannot be read" in note or "not sealed" in note
    assert before == {kind: beta.tip(kind, "alpha") for kind in before}
    assert beta.candidates == gamma.candidates
    if kind == "journal":
        git(beta.repository.path, "fetch", "-q", str(server), f"+{alpha.ref(kind)}:refs/evogit/r/journal/evil")
        assert beta.candidates == gamma.candidates
    beta.repository.sweep(())


@pytest.mark.parametrize("kind", ["journal", "keep"])
def test_a_ref_whose_name_is_not_utf_8_stops_nobody(join: Join, server: Path, kind: str) -> None:
    alpha, beta = join("alpha"), join("beta")
    seed = alpha.run.add_files({"main.py": b"1\n"}, value=1.0)
    alpha.sync()
    name = f"refs/evogit/r/{kind}/".encode() + b"\xff"
    subprocess.run([b"git", b"-C", bytes(server), b"update-ref", name, str(alpha.tip("journal")).encode()], check=True)
    assert all("as the name of a host" in note for note in beta.sync().notes)
    assert beta.candidates == {seed}
    assert beta.repository.keeping("r").tips("journal").keys() == {"alpha"}


def test_a_journal_in_the_name_of_this_clone_needs_the_key(join: Join) -> None:
    alpha, twin = join("alpha", b""), join("twin", b"")
    seed = twin.run.add_files({"main.py": b"1\n"}, value=1.0)
    for kind in ("keep", "journal"):
        git(twin.repository.path, "push", "-q", twin.server, f"{twin.ref(kind)}:{alpha.ref(kind)}")
    assert "has the name of this clone" in alpha.sync().notes[0]
    assert (alpha.repository.runs(), seed in refs_of(alpha.repository.path)) == ([], False)


def test_a_commit_of_which_a_colleague_knows_the_id_alone_stays_here(join: Join, server: Path) -> None:
    alpha, beta, seed = met(join)
    private = alpha.run.commit({"main.py": b"secret\n"}, seed)
    beta.run.propose(seed, candidate=private, tree=alpha.repository.tree_of(private), engine="")
    git(beta.repository.path, "push", "-q", beta.server, beta.ref("journal"))
    assert alpha.sync().notes == [f"left beta as it was: it does not keep its candidate {private[:7]}"]
    assert private not in alpha.candidates
    assert not git(server, "cat-file", "--batch-check", input=private).endswith("commit")


def test_thousands_of_hosts_are_told_in_few_sentences(join: Join, server: Path) -> None:
    alpha = join("alpha")
    alpha.run.add_files({"main.py": b"1\n"}, value=1.0)
    alpha.sync()
    tree = git(server, "hash-object", "-wt", "tree", "/dev/null").strip()
    commit = git(server, "commit-tree", tree, input="x\n").strip()
    text = "".join(f"create refs/evogit/r/journal/h{number} {commit}\n" for number in range(100))
    git(server, "update-ref", "--stdin", input=text)
    notes = alpha.sync().notes
    assert (len(notes), notes[-1]) == (21, "and 80 more that were left as they were")


def test_what_a_host_says_to_have_given_up_is_ids_of_a_bounded_list(join: Join, server: Path) -> None:
    alpha, beta = join("alpha"), join("beta")
    alpha.run.add_files({"main.py": b"1\n"}, value=1.0)
    alpha.sync()
    for content, ids in (("hello\n" + "a" * 40 + "\n", {"a" * 40}), ("b" * 40 + "\n" + " " * (17 << 20), set())):
        blob = git(server, "hash-object", "-w", "--stdin", input=content).strip()
        tree = git(server, "mktree", input=f"100644 blob {blob}\tevidence\n").strip()
        before = ("-p", str(beta.tip("thinned", "alpha"))) if beta.tip("thinned", "alpha") else ()
        tip = git(server, "commit-tree", tree, *before, input="x\n").strip()
        git(server, "update-ref", alpha.ref("thinned"), tip)
        alpha.run.decide("note", reason=content[:3])
        git(alpha.repository.path, "push", "-q", str(server), alpha.ref("journal"))
        beta.sync()
        assert beta.tip("thinned", "alpha") == tip
        assert beta.repository.keeping("r").thinned() == ids


def test_a_candidate_that_is_not_a_commit_does_not_come(join: Join) -> None:
    alpha, beta = join("alpha"), join("beta")
    run = alpha.run
    seed = run.add_files({"main.py": b"1\n"}, value=1.0)
    tree = run.repository.tree_of(seed)
    run.propose(seed, candidate=tree, tree=tree)
    alpha.sync()
    assert beta.sync().notes == [f"left alpha as it was: its candidate {tree[:10]} is not a commit"]
    assert beta.repository.branches.parents(tree) == ()
    assert not beta.repository.branches.contains(tree, seed)
