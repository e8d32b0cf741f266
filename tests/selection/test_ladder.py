from __future__ import annotations

import random

import pytest

from evogit.selection.ladder import Ladder


@pytest.mark.parametrize("step", [1, 2, 7])
def test_it_is_what_a_sorted_list_is_whatever_comes_and_goes(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evogit.selection.ladder.STEP", step)
    rng, ladder, known = random.Random(step), Ladder[int](), list[int]()
    for turn in range(400):
        if known and rng.random() < (0.3 if turn < 200 else 0.7):
            gone = rng.choice(known)
            known.remove(gone)
            ladder.remove(gone)
        else:
            known.append(rng.randrange(50))
            ladder.add(known[-1])
        known.sort()
        assert list(ladder) == known
        assert len(ladder) == len(known)
        assert [ladder[place] for place in range(len(known))] == known
        assert ladder.first(3) == known[:3]
    assert ladder == Ladder(known)
    with pytest.raises(IndexError):
        ladder[len(known)]
