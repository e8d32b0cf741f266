"""What calls cost by the prices of their models."""

from __future__ import annotations

from evogit.core import PICO
from evogit.llm import Price, TokenUsage
from evogit.llm.registry import LONG, known_price


def test_long_prompts_cost_twice_as_much_and_their_replies_half_as_much_again() -> None:
    price = known_price("gpt-5.4-2026-03-05")
    assert price
    short, long = (TokenUsage(prompt=prompt, completion=1000) for prompt in (LONG, LONG + 1))
    assert price.of(short) == (LONG * 2.5 + 1000 * 15) / 1e6
    assert price.of(long) == ((LONG + 1) * 5 + 1000 * 22.5) / 1e6
    assert price.at_most(long) == price.of(long)
    assert price.reply_for(round(price.of(long) * PICO), long) == 1000
    assert price.reply_for(round(price.of(long) * PICO) - 1, long) == 999


def test_what_an_attempt_costs_at_most_is_never_less_than_what_it_costs() -> None:
    price = Price(prompt=1, cached=0.5, completion=10, written=2, long=1000)
    for worst in (TokenUsage(prompt=900, written=900, completion=7), TokenUsage(prompt=1100, written=1, completion=7)):
        for cached in (0, 100):
            for written in (0, 300):
                usage = TokenUsage(prompt=worst.prompt, cached=cached, written=written, completion=7)
                assert price.of(usage) <= price.at_most(worst)
