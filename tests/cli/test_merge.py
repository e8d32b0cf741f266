"""`evogit merge` and `evogit merge --step`: what a person is told, and what the journal keeps."""

from __future__ import annotations

from pathlib import Path

import pytest

from evogit.review import open_run

from .conftest import Cli, Story

MAIN = b"".join(b"line %d\n" % number for number in range(20))


def changed(*lines: int, text: str) -> dict[str, bytes]:
    main = MAIN
    for line in lines:
        main = main.replace(b"line %d\n" % line, f"{text} {line}\n".encode())
    return {"main.py": main}


class Pair(Story):
    """Two lines from a seed: `a` is the better one, and in conflict with `b` in one line of two."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.seed = self.add(1.0, files={"main.py": MAIN})
        self.a = self.add(3.0, self.seed, files=changed(2, 15, text="a"), adopt=True)
        self.b = self.add(2.0, self.seed, files=changed(2, 9, text="b"), agent="a2", adopt=True)

    def main(self, commit: str) -> bytes:
        tree = self.repository.tree_of(commit)
        return self.repository.trees.files(tree, lambda path: path == "main.py")["main.py"]


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path / "repo")


BOTH = changed(2, 15, text="a")["main.py"].replace(b"line 9\n", b"b 9\n")


def test_a_merge_is_a_candidate_and_says_how_conflicts_were_settled(cli: Cli, pair: Pair) -> None:
    done = cli("-C", "repo", "merge", pair.b[:8], "a1", "-m", "both\x1b[2J are good")
    assert done.code == 0
    assert "1 conflict settled:" in done.err
    assert f"main.py  1  lines  fitter, {pair.a[:7]}" in done.err
    history = open_run(pair.repository).history
    (made,) = history.pending.values()
    assert pair.main(made.commit) == BOTH
    assert (made.agent, made.operator, made.strategy, made.conflicts) == ("human", "merge", "fitter", 1)
    assert made.parents == (pair.b, pair.a)
    assert history.counts.proposals == pair.history.counts.proposals, "a person's merge is no attempt of the agents"
    assert history.human == [made.commit]
    evidence = pair.repository.trees.files(history.sessions[made.commit], lambda path: True)
    assert evidence == {"why": b"both are good"}
    shown = cli("-C", "repo", "show", made.commit[:8])
    assert "human, merge (fitter)" in shown.out
    again = cli("-C", "repo", "merge", pair.b[:8], "a1", "--json").json
    assert (again["added"], again["known"]) == (None, made.commit)


def test_a_graft_puts_one_step_on_another_candidate(cli: Cli, pair: Pair) -> None:
    top = pair.add(3.5, pair.a, files={"main.py": pair.main(pair.a).replace(b"line 19", b"top 19")})
    done = cli("-C", "repo", "merge", top[:8], "a2", "--step", "--json").json
    assert done["settled"] == []
    assert done["parents"] == [pair.b, top]
    assert pair.main(done["added"]) == pair.main(pair.b).replace(b"line 19", b"top 19")
    assert done["title"] == f"graft {pair.a[:7]}→{top[:7]} onto {pair.b[:7]}"
    assert f"graft {pair.a[:7]}" in cli("-C", "repo", "log").out
    assert cli("-C", "repo", "graph").code == 0


def test_a_dry_run_makes_nothing(cli: Cli, pair: Pair) -> None:
    before = pair.history.seq
    done = cli("-C", "repo", "merge", "a2", "best", "--step", "--dry-run")
    assert "1 conflict settled" in done.err
    assert "no candidate was made" in done.err
    whole = cli("-C", "repo", "merge", "a2", "best", "--step", "--dry-run", "--strategy", "function")
    assert f"gives the files of {pair.a[:7]}" in whole.err, "what is no Python is taken whole"
    assert open_run(pair.repository).history.seq == before


@pytest.mark.slow
def test_the_coin_falls_as_its_seed_says(cli: Cli, pair: Pair) -> None:
    trees = {
        seed: cli(
            "-C", "repo", "merge", "a1", "a2", "--dry-run", "--strategy", "random", "--seed", seed, "--json"
        ).json["tree"]
        for seed in "01"
    }
    assert len(set(trees.values())) == 2


@pytest.mark.slow
def test_what_cannot_be_merged_is_refused_with_a_reason(cli: Cli, pair: Pair) -> None:
    outside = pair.add(4.0, pair.seed, files={"README": b"all good\n"})
    for words, code, sentence in (
        (["merge", "a1", "a1"], 4, "both are"),
        (["merge", "seed", "best", "--step"], 4, "has none"),
        (["merge", "a1", outside[:8]], 4, "editable files only, got README"),
        (["merge", "a1", "nobody"], 3, "nobody"),
        (["merge", "a1", "a2", "--strategy", "wish"], 2, "wish"),
    ):
        done = cli("-C", "repo", *words)
        assert (done.code, sentence in done.err) == (code, True), done.err
    assert cli("-C", "repo", "prune", pair.b[:8], "-y", "-m", "unsafe").code == 0
    assert "undo that first" in cli("-C", "repo", "merge", "a1", pair.b[:8]).err


def test_a_step_is_taken_out_and_what_came_after_it_stays(cli: Cli, pair: Pair) -> None:
    later = pair.add(4.0, pair.a, files=changed(2, 15, text="a") | changed_in(pair.main(pair.a), 9), adopt=True)
    assert "no candidate was made" in cli("-C", "repo", "merge", pair.a[:7], "--without", "--dry-run").err
    done = cli("-C", "repo", "merge", pair.a[:7], "--without", "-m", "hard to read")
    assert done.code == 0, done.err
    history = open_run(pair.repository).history
    (made,) = history.pending.values()
    assert pair.main(made.commit) == changed(9, text="c")["main.py"]
    assert (made.agent, made.operator, made.strategy, made.parents) == ("human", "mutation", "drop", (later,))
    assert made.title.startswith("without: ")
    assert "hard to read" in pair.repository.message(made.commit)
    assert history.counts.proposals == pair.history.counts.proposals
    again = cli("-C", "repo", "merge", pair.a[:7], "--without", "--json")
    assert (again.json["added"], again.json["known"]) == (None, made.commit)


def test_what_cannot_be_taken_out_is_refused_with_the_reason(cli: Cli, pair: Pair) -> None:
    over = changed_in(pair.main(pair.a).replace(b"a 2", b"line 2"), 2)
    pair.add(4.0, pair.a, files=over, adopt=True)
    for step, reason in ((pair.seed, "is the seed"), (pair.a, "was built on it")):
        done = cli("-C", "repo", "merge", step[:7], "--without")
        assert (done.code, reason in done.err) == (4, True), done.err
    done = cli("-C", "repo", "merge", pair.b[:7], "--without", pair.seed[:7])
    assert (done.code, "nothing of" in done.err) == (4, True), done.err
    assert not open_run(pair.repository).history.pending


def changed_in(main: bytes, line: int) -> dict[str, bytes]:
    return {"main.py": main.replace(b"line %d\n" % line, b"c %d\n" % line)}


def test_two_new_names_of_one_file_are_one_decision(cli: Cli, pair: Pair) -> None:
    moved = [
        pair.add(2.5, pair.seed, files={"main.py": None, name: MAIN})  # type: ignore[dict-item]
        for name in ("one.py", "other.py")
    ]
    merge = ("-C", "repo", "merge", *(each[:8] for each in moved), "--dry-run")
    assert cli(*merge, "--json").json["settled"][0]["count"] is not True
    assert "(renamed files)  1  names  each path as its side has it" in cli(*merge).err
