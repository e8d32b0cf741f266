"""Models in a deterministic run: asked in the order of the moves, so that replies that depend on it repeat too."""

from __future__ import annotations

from evogit.agents.population import Models
from evogit.engine.move_order import OrderedTurns
from evogit.llm import Account, Model, Question


class AskingInOrder:
    """Lets a move ask once all earlier ones have proposed or failed."""

    def __init__(self) -> None:
        self._turns: OrderedTurns | None = None

    def follow(self, turns: OrderedTurns) -> None:
        """Take the order from these turns."""
        self._turns = turns

    def of(self, models: Models) -> Models:
        """The same models, asked in order."""
        return lambda name: _OrderedModel(models(name), self)

    async def wait(self, move: int) -> None:
        """Wait until it is a move's turn."""
        if self._turns:
            await self._turns.asking(move)


class _OrderedModel:
    def __init__(self, model: Model, order: AskingInOrder) -> None:
        self._model = model
        self._order = order
        self.name = model.name
        self.price = model.price
        self.context = model.context

    async def ask(self, question: Question, account: Account) -> str:
        """The model's reply, when it is the move's turn."""
        await self._order.wait(question.move)
        return await self._model.ask(question, account)
