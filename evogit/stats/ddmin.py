"""Delta debugging: the smallest part of a whole that still does what the whole does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TypeVar

T = TypeVar("T")

FirstPassing = Callable[[Sequence[Sequence[T]]], Awaitable[int | None]]
"""The index of the first of these selections that passes; None when none does."""


async def ddmin(whole: Sequence[T], first_passing: FirstPassing[T]) -> AsyncIterator[tuple[T, ...]]:
    """Ever smaller selections that pass, the last of which passes without none of its single elements.

    The algorithm ddmin of Zeller and Hildebrandt ("Simplifying and isolating failure-inducing input", 2002), given that
    the whole passes. Nothing at all is asked about first. Single elements are not tried alone in the end, as leaving
    out the others one by one finds them too. At worst n * n + 3 n selections are tried of n elements.
    """
    if not whole or await first_passing([()]) is not None:
        yield ()
        return
    kept, parts = tuple(whole), 2
    while len(kept) > 1:
        chunks = _split(kept, parts)
        alone = chunks if parts < len(kept) or parts == 2 else []
        without = [tuple(x for other in chunks if other is not chunk for x in other) for chunk in chunks]
        tried = [*alone, *(without if parts > 2 else [])]
        found = await first_passing(tried)
        if found is None:
            if parts >= len(kept):
                return
            parts = min(2 * parts, len(kept))
            continue
        kept, parts = tried[found], 2 if found < len(alone) else max(parts - 1, 2)
        yield kept


def _split(items: Sequence[T], parts: int) -> list[tuple[T, ...]]:
    """About equal pieces in order, none of them empty."""
    cuts = [len(items) * i // parts for i in range(parts + 1)]
    return [tuple(items[a:b]) for a, b in zip(cuts, cuts[1:], strict=False)]
