from __future__ import annotations

import random

import pytest

from evogit.core import Candidate, NotFoundError, RepositoryError
from evogit.history.phylogeny import Phylogeny


def grown(edges: dict[str, str]) -> Phylogeny:
    """A phylogeny from child -> parents, each named by one letter, in order."""
    phylogeny = Phylogeny()
    for number, (child, parents) in enumerate(edges.items()):
        ids = tuple(parent * 40 for parent in parents)
        operator = ("seed", "mutation", "merge")[len(ids)]
        phylogeny.add(
            Candidate(commit=child * 40, tree="0" * 40, parents=ids, agent="a1", operator=operator, number=number)  # type: ignore[arg-type]
        )
    return phylogeny


def names(commits: object) -> str:
    return "".join(sorted(commit[0] for commit in commits))  # type: ignore[attr-defined]


DIAMOND = {"a": "", "b": "a", "c": "a", "d": "bc", "e": "c", "f": "e"}


def test_relations() -> None:
    graph = grown(DIAMOND)
    assert names(graph.children("c" * 40)) == "de"
    assert names(graph.ancestors("d" * 40)) == "abcd"
    assert names(graph.descendants("c" * 40)) == "cdef"
    assert [c.commit[0] for c in graph.lineage("d" * 40)] == ["a", "b", "d"]
    assert names(graph.skeleton(["d" * 40])) == "abcd"
    assert graph.is_ancestor("a" * 40, "f" * 40)
    assert not graph.is_ancestor("f" * 40, "a" * 40)


def test_merge_base_is_a_youngest_common_ancestor_on_random_graphs() -> None:
    rng = random.Random(1)
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    for _ in range(30):
        edges = {"a": ""}
        for at in range(1, 26):
            edges[letters[at]] = "".join(rng.sample(letters[:at], min(at, rng.choice([1, 1, 2]))))
        graph = grown(edges)
        for _ in range(20):
            a, b = (rng.choice(letters) * 40 for _ in range(2))
            common = graph.ancestors(a) & graph.ancestors(b)
            assert graph.merge_base(a, b) == max(common, key=lambda commit: graph[commit].number)


def test_two_seeds_have_no_merge_base() -> None:
    assert grown({"a": "", "b": ""}).merge_base("a" * 40, "b" * 40) is None


def test_abbreviated_ids() -> None:
    graph = grown(DIAMOND)
    assert graph.find("BBBB").commit == "b" * 40
    for wrong in ("bb", "1234", "xyz", ""):
        with pytest.raises(NotFoundError):
            graph.find(wrong)


def test_an_unknown_parent_means_an_incomplete_journal() -> None:
    with pytest.raises(RepositoryError, match="no journal proposes"):
        grown({"a": "", "b": "z"})
