"""A model that reads its replies from a file: for trials, tests and demonstrations, without a key."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from evogit.core import UsageError
from evogit.llm import Account, Model, ModelError, Price, Question, TokenUsage, estimate_tokens, set_aside
from evogit.llm.replies import CUT
from evogit.llm.thoughts import without_thoughts

SCRIPT = "script:"  # what the name of a scripted model begins with; the path of the file follows
FREE = Price(prompt=0, cached=0, completion=0)  # what a script costs where nobody says otherwise


class ScriptedModel:
    """Answers the first question of move m with reply m of the file, the next one in that move with the reply after it.

    So what an agent is told does not depend on who asks first. After the last reply comes the first one again. Lines
    that begin with `%%` separate the replies; what else is on them is for people.
    """

    context: int = 100_000

    def __init__(self, file: Path, price: Price = FREE) -> None:
        self.name = f"{SCRIPT}{file}"
        self.price: Price | None = price
        try:
            text = file.read_text(encoding="utf-8")
        except OSError as error:
            raise UsageError(
                f"cannot read {file}: {error.strerror}; expected a file of replies after {SCRIPT}"
            ) from error
        except UnicodeDecodeError as error:
            raise UsageError(f"cannot read {file}: expected UTF-8 text: {error}") from error
        if not text.strip():
            raise UsageError(f"expected replies in {file}, separated by lines that begin with %%, got an empty file")
        first, *others = re.split(r"^%%[^\n]*(?:\n|\Z)", text, flags=re.MULTILINE)
        self._replies = others if others and not first.strip() else [first, *others]

    async def ask(self, question: Question, account: Account) -> str:
        """The next reply of the file; its tokens are a quarter of its bytes, and cost what `price` says."""
        await asyncio.sleep(0)
        reply = self._replies[(question.move - 1 + question.attempt) % len(self._replies)]
        prompt = sum(estimate_tokens(message.content) for message in question.messages)
        usage = TokenUsage(prompt=prompt, completion=estimate_tokens(reply))
        await charge_known(account, self, usage)
        return without_thoughts(reply)


async def charge_known(account: Account, model: Model, usage: TokenUsage, failure: str = "") -> None:
    """Charge an attempt whose tokens are known beforehand. Raises ModelError: a limit cuts it."""
    held = await set_aside(account, model, usage)
    within = held.cut(usage)
    account.charge(model, within, failure if within == usage else CUT, held)
    if within != usage:
        raise ModelError(CUT)
