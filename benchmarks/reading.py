"""A made-up run of many candidates (mutator and model moves, merges, failures, evidence), for commands to look at."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import struct
import subprocess
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from evogit.core import Cost, Evaluation, Metric, Operator
from evogit.events import Adopted, Duplicate, Evaluated, Event, FailedProposal, Proposed, RunStarted, Spent, Stopped
from evogit.repository import Repository, journal_records

AGENTS, EDITORS = 8, 2
"""Agents of the run, and how many of them ask a model."""

MERGED, FAILED, BARREN = 0.15, 0.2, 0.2
"""Shares: of merges among proposals, of failures among evaluations, of moves that make no candidate."""

BEGAN = 1_700_000_000
"""When the run began, in seconds since the epoch."""

SETTINGS = {
    "population": [
        {"kind": "mutator", "model": "", "count": AGENTS - EDITORS},
        {"kind": "editor", "model": "large", "count": EDITORS},
    ],
    "selector": "elitist",
    "dollars": 100.0,
}


SMALL = 200_000
"""Candidates of which Git looks for deltas within minutes; the pack of more stays as it was written."""


class Pack:
    """Git objects written straight into one pack: thirty times as quick as one file each."""

    KINDS = {"commit": 1, "tree": 2, "blob": 3}

    def __init__(self, file: Path) -> None:
        self._file = file.open("w+b")
        self._file.write(bytes(12))
        self._known: set[bytes] = set()

    def add(self, kind: str, content: bytes) -> str:
        """Write an object unless it is there, and give its id."""
        found = hashlib.sha1(b"%s %d\0" % (kind.encode(), len(content)) + content, usedforsecurity=False).digest()
        if found not in self._known:
            self._known.add(found)
            head, size = self.KINDS[kind] << 4 | len(content) & 15, len(content) >> 4
            while size:
                self._file.write(bytes([head | 128]))
                head, size = size & 127, size >> 7
            self._file.write(bytes([head]) + zlib.compress(content, 1))
        return found.hex()

    def tree(self, files: dict[str, bytes]) -> str:
        """A tree of plain files."""
        blobs = sorted((name, self.add("blob", content)) for name, content in files.items())
        return self.add("tree", b"".join(f"100644 {name}\0".encode() + bytes.fromhex(blob) for name, blob in blobs))

    def commit(self, tree: str, parents: Sequence[str], who: str, when: int, message: str) -> str:
        """A commit, as EvoGit writes them."""
        lines = [f"tree {tree}", *(f"parent {parent}" for parent in parents)]
        lines += [f"{role} {who} <{who}@evogit.invalid> {when} +0000" for role in ("author", "committer")]
        return self.add("commit", "\n".join([*lines, "", message]).encode())

    def store(self, git_dir: Path) -> None:
        """Put all of them into a repository."""
        self._file.seek(0)
        self._file.write(struct.pack(">4sII", b"PACK", 2, len(self._known)))
        self._file.seek(0)
        digest = hashlib.file_digest(self._file, "sha1").digest()
        self._file.write(digest)
        self._file.seek(0)
        git(git_dir, "index-pack", "--stdin", stdin=self._file)
        self._file.close()


class Synthetic:
    """A run whose candidates are numbers, with nobody thinking or judging."""

    def __init__(self, pack: Pack) -> None:
        self._pack = pack
        self._rng = random.Random(1)
        self._scores: dict[str, float] = {}
        self._heads: dict[str, str] = {}
        self._move = 0
        self._seq = 0
        self.candidates = 0
        self.journal = ""
        self.keep = ""

    def grow(self, candidates: int) -> None:
        """Write a run of so many candidates, and stop it."""
        self._write(_started())
        seed = self._candidate("seed", (), "seed", "")
        self._heads = dict.fromkeys((f"a{number + 1}" for number in range(AGENTS)), seed)
        while self.candidates < candidates:
            self._step(f"a{self._rng.randrange(AGENTS) + 1}")
        self._write(Stopped(engine="host-1", reason="evaluations"))

    def _write(self, event: Event) -> None:
        """Append to the journal."""
        self._seq += 1
        parents = [self.journal] if self.journal else []
        message = journal_records.encode(event, self._seq)
        self.journal = self._pack.commit(self._pack.tree({}), parents, "host", BEGAN + self._seq, message)

    def _kept(self, files: dict[str, bytes], commit: str) -> str:
        """Keep evidence and the candidate that it is about; the id of its tree."""
        evidence, parents = self._pack.tree(files), [each for each in (self.keep, commit) if each]
        self.keep = self._pack.commit(evidence, parents, "host", BEGAN + self._seq, f"keep {commit[:10]}\n")
        return evidence

    def _step(self, agent: str) -> None:
        """One move: a candidate, a duplicate or nothing usable."""
        self._move += 1
        head, other = self._heads[agent], self._rng.choice(list(self._heads.values()))
        merged = self._rng.random() < MERGED and other != head
        parents, operator = ((head, other), "merge") if merged else ((head,), "mutation")
        if int(agent[1:]) > AGENTS - EDITORS and not merged:
            self._ask(agent)
        if self._rng.random() < BARREN:
            self._fail(agent, parents, operator)
            return
        child = self._candidate(agent, parents, operator, "fitter" if merged else f"number@{self._rng.random():.3g}")
        if self._scores.get(child, 0.0) >= self._scores[head]:
            self._heads[agent] = child
            self._write(Adopted(agent=agent, candidate=child))

    def _ask(self, agent: str) -> None:
        tokens = {"prompt": 3000, "cached": 1000, "completion": self._rng.randrange(200, 900)}
        self._write(Spent(engine="host-1", move=self._move, agent=agent, model="large", dollars=0.004, **tokens))

    def _fail(self, agent: str, parents: tuple[str, ...], operator: Operator) -> None:
        made = {"engine": "host-1", "move": self._move, "agent": agent, "parents": parents}
        if self._rng.random() < 0.5:
            self._write(Duplicate(first=parents[0], operator=operator, **made))
        else:
            reason = f"line {self._rng.randrange(99)} does not parse"
            self._write(FailedProposal(reason=reason, operator=operator, **made))

    def _candidate(self, agent: str, parents: tuple[str, ...], operator: Operator, strategy: str) -> str:
        """Propose and judge one more."""
        self.candidates += 1
        lines = [f"x{line} = {self._rng.getrandbits(60)}" for line in range(20)]
        tree = self._pack.tree({"packing.py": "\n".join(lines).encode()})
        title = f"tune GROWTH to {self._rng.random():.4g}"
        commit = self._pack.commit(tree, parents, agent, BEGAN + self._seq, f"{title}\n")
        self._kept({}, commit)
        proposed = Proposed(
            engine="host-1",
            move=self._move,
            candidate=commit,
            tree=tree,
            parents=parents,
            agent=agent,
            operator=operator,
            strategy=strategy,
            title=title,
            fingerprint=f"{self._rng.getrandbits(64):016x}",
        )
        self._write(proposed)
        evidence = self._kept({"stdout": self._rng.randbytes(99).hex().encode()}, commit)
        self._write(Evaluated(candidate=commit, evaluation=self._judge(commit, parents), evidence=evidence))
        return commit

    def _judge(self, commit: str, parents: tuple[str, ...]) -> Evaluation:
        cost = Cost(wall=self._rng.random(), cpu=self._rng.random() / 10, memory=self._rng.getrandbits(23))
        about = {"cost": cost, "evaluator": "e" * 64, "image": f"none:{'1' * 32}", "key": self._rng.randbytes(32).hex()}
        if parents and self._rng.random() < FAILED:
            return Evaluation(status="invalid", reason=f"circles {self._rng.randrange(26)} and 3 overlap", **about)
        ground = max((self._scores.get(parent, 0.0) for parent in parents), default=1.0)
        score = self._scores[commit] = ground + self._rng.gauss(-0.02, 0.02)
        values = {"sum_radii": score, "of_bound": score / 2.9}
        cases = {f"n={count}": values for count in (26, 29, 32)}
        return Evaluation(status="ok", metrics=values, cases=cases, stages={"smoke": values}, **about)


def _started() -> RunStarted:
    primary = Metric(name="sum_radii", direction="maximize", primary=True, baseline=1.0, best_known=2.635983)
    return RunStarted(
        engine="host-1",
        task="circle_packing",
        task_digest="d" * 64,
        metrics=(primary, Metric(name="of_bound", direction="maximize")),
        split="train",
        evaluator="e" * 64,
        provider="none",
        image=f"none:{'1' * 32}",
        agents=tuple(f"a{number + 1}" for number in range(AGENTS)),
        population="refs/heads/evogit/circle_packing/",
        editable=("packing.py",),
        settings=SETTINGS,
    )


def git(git_dir: Path, *arguments: str, stdin: IO[bytes] | None = None) -> None:
    """Run git in a folder, without its output."""
    subprocess.run(["git", *arguments], cwd=git_dir, stdin=stdin, stdout=subprocess.DEVNULL, check=True)


def made(folder: Path, candidates: int) -> Path:
    """A repository with a run of so many candidates, made unless it is there."""
    place = folder / str(candidates)
    if not place.exists():
        unfinished = folder / f"{candidates}-unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        repository = Repository.create(unfinished)
        pack = Pack(folder / "pack")
        run = Synthetic(pack)
        run.grow(candidates)
        pack.store(repository.common)
        for chain, tip in (("journal", run.journal), ("keep", run.keep)):
            repository.move_branch(f"refs/evogit/circle_packing/{chain}/host", tip)
        if candidates <= SMALL:
            git(repository.common, "repack", "-adq", "--window=5")
        (folder / "pack").unlink()
        unfinished.rename(place)
    return place


def cpu_seconds(repository: Path, command: str) -> float:
    """What one call of a command uses, the processes that it starts included; its output goes nowhere."""
    call = [sys.executable, "-c", "from evogit.cli import main; main()", "-C", str(repository), *command.split()]
    process = subprocess.Popen(call, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"evogit {command} failed in {repository}")
    return used.ru_utime + used.ru_stime
