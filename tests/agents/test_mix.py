from __future__ import annotations

import random

from evogit.agents.mutation.mix import Mix


def test_boldness_makes_steps_larger_and_edits_more() -> None:
    shy, bold = (sum(Mix(boldness=boldness).step(random.Random(seed))[1] for seed in range(99)) for boldness in (1, 3))
    assert bold > 2 * shy
    assert Mix(boldness=3).one_more > Mix().one_more
    assert Mix(boldness=1e9).step(random.Random(1))[1] <= 10
