"""What models cost at OpenAI's own endpoint, so that a limit on dollars works without any settings.

Prices change without notice: those in a person's settings come first, and an endpoint's bill is what counts.
"""

from __future__ import annotations

import re

from evogit.llm import Price

LONG = 272_000
"""Tokens of a prompt above which a call of a model that takes more costs more, as the pages of these models say:
https://developers.openai.com/api/docs/models/gpt-5.4 and, by transcriptions of it, that of gpt-5.5.
"""

PRICES = {
    "gpt-5.5": Price(prompt=5.00, cached=0.50, completion=30.00, long=LONG),
    "gpt-5.4": Price(prompt=2.50, cached=0.25, completion=15.00, long=LONG),
    "gpt-5.4-mini": Price(prompt=0.75, cached=0.075, completion=4.50),
    "gpt-5.4-nano": Price(prompt=0.20, cached=0.02, completion=1.25),
    "gpt-5": Price(prompt=1.25, cached=0.125, completion=10.00),
    "gpt-5-mini": Price(prompt=0.25, cached=0.025, completion=2.00),
    "gpt-5-nano": Price(prompt=0.05, cached=0.005, completion=0.40),
    "gpt-4.1": Price(prompt=2.00, cached=0.50, completion=8.00),
    "gpt-4.1-mini": Price(prompt=0.40, cached=0.10, completion=1.60),
    "gpt-4.1-nano": Price(prompt=0.10, cached=0.025, completion=0.40),
}
"""The table of June 2026: dollars for a million tokens at the standard tier, as transcriptions of OpenAI's own page
https://developers.openai.com/api/docs/pricing give them: the GPT-5.5 and GPT-5.4 families from
https://github.com/api-evangelist/openai (plans/openai-plans-pricing.yml of 2026-05-04), the same in
https://www.morphllm.com/openai-api-pricing and
https://tokenmix.ai/blog/openai-api-cost-2026-gpt-5-5-5-4-nano-batch (both June 2026); GPT-5 and GPT-4.1 from
https://deploybase.ai/articles/openai-pricing (March 2026). Not verified by a second source: the rates of cached tokens
of GPT-5 and GPT-4.1, from the documentation of the Rust crate adk-model 0.6 (March 2026), and all that changed since;
OpenAI's own page could not be read. Residency of data (10 % more) and other tiers are not asked for.
"""


def known_price(model: str) -> Price | None:
    """The price of a model at OpenAI's own endpoint, dated versions of it included; None for others."""
    return PRICES.get(re.sub(r"-\d{4}-\d{2}-\d{2}$", "", model))
