"""Trap functions (Deb & Goldberg 1993): a block is best with all switches on, and everything else says "off"."""

from collections.abc import Iterator

from evogit import Case, Invalid

BLOCKS, SWITCHES = 8, 4
VALUES = (0.75, 0.5, 0.25, 0.0, 1.0)
"""By the number of switches that are on: a = 0.75, b = 1, z = 3 in the words of Deb & Goldberg."""


def evaluate(program, split: str) -> Iterator[Case]:
    blocks = program.call("switches:settings", returns=list[list[int]]).value
    if len(blocks) != BLOCKS:
        raise Invalid(f"expected {BLOCKS} blocks, got {len(blocks)}")
    for number, block in enumerate(blocks):
        if len(block) != SWITCHES:
            raise Invalid(f"expected {SWITCHES} switches in B{number}, got {len(block)}")
        on = sum(switch % 2 for switch in block)
        yield Case(f"B{number}", feedback=f"{on} of {SWITCHES} are on", value=VALUES[on])
