"""A model that looks at would-be bests: is the gain earned, is the change in scope, is it readable?

It is asked once for each, and its refusal, which people can take back, keeps a candidate from being the best. Nothing
that it says makes a candidate valid or better, so that the worst that a change can talk it into is what happens without
a reviewer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from evogit import llm
from evogit.events import Reviewed, ReviewVerdict
from evogit.history.context import RunContext, redactor
from evogit.panel import UnusableAnswerError, read
from evogit.repository.evidence import PROMPT, REPLY, kept_text, numbered
from evogit.text import cut, fence, one_line, plain

NAME = "reviewer"
"""What the account of a run calls the reviewer."""

RULES = Path(__file__).with_name("review.md")
"""What the reviewer is told to do."""

PATCH_SHARE, FILES_SHARE = 0.4, 0.2
"""Shares of what a question may have, for the change and for the files that it was made to."""

NO_ANSWER = (llm.ModelError, llm.SpendingLimitError, llm.CredentialError, llm.RefusingModelError, llm.UnknownModelError)
"""Errors of a model after which a would-be best passes unreviewed."""

REASON_CHARS = 250
"""The length of a reason that is kept: it stands in later briefs."""


class Answer(BaseModel):
    """What the reviewer says of a would-be best."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    earned: bool
    in_scope: bool
    readable: bool
    reason: str = Field(max_length=4000)

    @property
    def refusal(self) -> str:
        """Why it is refused; empty if it passes."""
        marks = {"not earned": self.earned, "not in scope": self.in_scope, "not readable": self.readable}
        failed = ", ".join(name for name, passed in marks.items() if not passed)
        return f"{failed}: {one_line(self.reason, REASON_CHARS)}" if failed else ""


class Reviewer:
    """Reviews the would-be bests of one run, if its task names a model for that; the run is charged for it.

    `account` gives what a call is charged to, by the candidate's move; `show` is told what the reviewer does. Raises
    what `models` raises if it cannot give the model.
    """

    def __init__(
        self,
        context: RunContext,
        models: Callable[[str], llm.Model],
        account: Callable[[int], llm.Account],
        show: Callable[[str, str], None],
    ) -> None:
        self._context = context
        self._model = models(context.task.review) if context.task.review else None
        self._account = account
        self._show = show
        self._one = asyncio.Lock()

    async def settle(self) -> None:
        """Have all would-be bests reviewed, the fittest first, but those of other engines at work.

        What is left when the run ends in a hurry is the next engine's.
        """
        history, own = self._context.history, self._context.engine
        if self._one.locked():  # whoever is at it looks at all of them
            return
        async with self._one:
            while self._model and (commit := history.would_be_best):
                engine = history.phylogeny[commit].engine
                if engine != own and engine in self._context.repository.engines(history.run).alive():
                    break
                self._show(NAME, f"looking at {commit[:7]}")
                try:
                    await self._review(commit, self._model)
                except llm.RunEndsError:
                    break
                finally:
                    self._show(NAME, "")

    async def _review(self, commit: str, model: llm.Model) -> None:
        messages = self._question(commit, model.context)
        evidence = {numbered(PROMPT): kept_text("\n\n".join(message.content for message in messages))}
        move = self._context.history.phylogeny[commit].move
        verdict: ReviewVerdict = "unreviewed"
        try:
            reply = await model.ask(llm.Question(messages=messages, move=move), self._account(move))
            evidence[numbered(REPLY)] = kept_text(reply)
            reason = read(reply, Answer).refusal
            verdict = "refused" if reason else "passed"
        except (*NO_ANSWER, UnusableAnswerError) as error:
            reason = one_line(str(error), REASON_CHARS)
        kept = self._context.journal.keep(evidence, commit)
        review = Reviewed(
            engine=self._context.engine,
            candidate=commit,
            model=model.name,
            verdict=verdict,
            reason=reason,
            evidence=kept,
        )
        self._context.journal.append(review)

    def _question(self, commit: str, context: int) -> tuple[llm.Message, ...]:
        """Ask about a candidate beside the best; nothing withheld, secret or of the holdout is in it."""
        task, repository, history = self._context.task, self._context.repository, self._context.history
        best, metric, graph = history.best or history.seed or commit, history.metric, history.phylogeny
        redact = redactor(task, repository, history)
        patch = plain(redact.text(repository.diff(best, commit, task.is_visible)))
        changed = set(filter(task.is_visible, repository.changed_paths(graph[best].tree, graph[commit].tree)))
        files = repository.trees.files(graph[best].tree, changed.__contains__)
        before = "\n".join(f"--- {path}\n{content.decode(errors='replace')}" for path, content in files.items())
        sections = {
            "The goal": task.goal,
            "What may be changed": ", ".join(task.editable),
            "The score": f"{metric.name}, to {metric.direction}: {history.fitness(best)} before, "
            f"{history.fitness(commit)} after",
            "What the author calls it": fence(one_line(graph[commit].title)),
            "The changed files before": fence(cut(plain(redact.text(before)), int(context * FILES_SHARE))),
            "The change": fence(cut(patch, int(context * PATCH_SHARE))),
            "Your answer": "Earned, in scope, readable? One JSON object, as described, and nothing else.",
        }
        text = "\n\n".join(f"## {title}\n\n{content}" for title, content in sections.items() if content)
        return llm.Message("system", RULES.read_text(encoding="utf-8")), llm.Message("user", text)
