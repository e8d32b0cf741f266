"""From a name to a model: scripted ones, those of a person's settings, and any that an endpoint knows."""

from __future__ import annotations

import difflib
import json
import os
import random
import re
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from evogit.config.user_settings import ModelTable, UserSettings, endpoint_url, settings_file
from evogit.core import UsageError
from evogit.llm import CredentialError, Model, Price
from evogit.llm.reader import ReaderProcess
from evogit.llm.recording import (
    MoveOrder,
    RecordedCall,
    RecordedModel,
    RecordedTurn,
    Recorder,
    ReplayedModel,
    read_recording,
)
from evogit.llm.script import SCRIPT, ScriptedModel
from evogit.subprocesses import PIPE, TimeoutExpired, shell, start

if TYPE_CHECKING:
    from evogit.llm.endpoint import Client, Endpoint

OPENAI = "https://api.openai.com/v1"
OPENAI_KEY = "OPENAI_API_KEY"
SHORTEST_SECRET = 8  # characters of a key that is kept secret; what stands for "no key" at local servers is shorter
ALIKE = 0.8  # similarity of a name to one of the settings from which on it is taken for a slip, and asked nowhere
LONGEST_KEY_COMMAND = 120  # seconds that a command which prints a key may take; a person may have to type a password


class OpenModels:
    """The models of one engine, opened once; get all before anything is written, as `secrets` are known then."""

    def __init__(
        self, user: UserSettings, rng: random.Random, *, record: Path | None = None, replay: Path | None = None
    ) -> None:
        if record and replay:
            raise UsageError("expected --record or --replay, got both")
        self._user = user
        self._rng = rng
        self._environ = dict(os.environ)
        self._secrets: list[str] = []
        self._keys: dict[str, str] = {}
        self._clients: dict[tuple[str, str], Client] = {}
        self._models: dict[str, Model] = {}
        self._recorder = Recorder(record, self._secrets) if record else None
        self._recorded: dict[str, list[RecordedCall]] | None = None
        turns: Sequence[RecordedTurn] = ()
        if replay:
            self._recorded, turns = read_recording(replay)
        self.order = MoveOrder(turns, self._recorder) if record or replay else None
        self._replay = replay
        self.reader = ReaderProcess()

    @property
    def secrets(self) -> tuple[str, ...]:
        """The keys that were read so far."""
        return tuple(self._secrets)

    def get(self, name: str, *, optional_in_recording: bool = False) -> Model:
        """Return `script:FILE`, a model of the settings, or an endpoint's. Raises CredentialError, UsageError."""
        if not name:
            raise UsageError("expected a model; name one with --model NAME or --agent KIND@NAME, or in your settings")
        if name not in self._models:
            model = self._open(name, optional_in_recording)
            self._models[name] = RecordedModel(model, self._recorder) if self._recorder else model
        return self._models[name]

    def endpoint(self, name: str) -> str:
        """Return the URL that is asked, "" if EvoGit answers itself. Raises UsageError: OPENAI_BASE_URL is no URL."""
        if self._recorded is not None or name.startswith(SCRIPT):
            return ""
        if url := self._table(name).base_url:
            return url
        try:
            return endpoint_url(self._environ.get("OPENAI_BASE_URL") or OPENAI)
        except ValueError as error:
            raise UsageError(f"the environment variable OPENAI_BASE_URL: {error}") from None

    def doubt(self, name: str) -> str:
        """Why a model may be mistyped that an endpoint is asked for by this name; empty where settings have it."""
        if name in self._user.models or not self.endpoint(name):
            return ""
        return self._user.missing(name, settings_file(self._environ))

    def endpoint_of(self, name: str) -> Endpoint:
        """Return a model's endpoint, unrecorded. Raises CredentialError: no key; UsageError: EvoGit answers itself."""
        if not self.endpoint(name):
            of = "--replay" if self._recorded is not None else "a script"
            raise UsageError(f"expected a model behind an endpoint for programs that ask it, got {name!r} of {of}")
        return self._endpoint(name, self._table(name))

    def forget_keys(self, but: Collection[str] = ()) -> None:
        """Remove all variables that hold keys from the environment, so that no process started later inherits one.

        Those of `but` stay: the user gives them to the task's evaluator, too.
        """
        named = {table.key_env for table in self._user.models.values() if table.key_env}
        for variable in {OPENAI_KEY, *named}.difference(but):
            os.environ.pop(variable, None)

    async def close(self) -> None:
        """Close all connections, and end the process that reads."""
        await self.reader.close()
        for client in self._clients.values():
            await client.close()

    def _open(self, name: str, optional_in_recording: bool) -> Model:
        if self._recorded is not None:
            if name not in self._recorded and not optional_in_recording:
                known = ", ".join(sorted(self._recorded)) or "none"
                raise UsageError(f"{self._replay} has no replies of the model {name!r}; those it has: {known}")
            return ReplayedModel(name, self._recorded.get(name, []), self.order)
        if name.startswith(SCRIPT):
            return ScriptedModel(Path(name.removeprefix(SCRIPT)))
        return self._endpoint(name, self._table(name))

    def _table(self, name: str) -> ModelTable:
        if table := self._user.models.get(name):
            return table
        if close := difflib.get_close_matches(name, self._user.models, n=1, cutoff=ALIKE):
            raise UsageError(
                f'expected a model, got {name!r}; did you mean "{close[0]}" of your settings? '
                f"If an endpoint calls one so, say which: [models.{json.dumps(name)}]"
            )
        return ModelTable()

    def _endpoint(self, name: str, table: ModelTable) -> Endpoint:
        from evogit.llm.endpoint import Client, Endpoint, Patience

        url, (key, key_from) = self.endpoint(name), self._key(name, table)
        client = self._clients.get((url, key)) or Client(url, key)
        self._clients[url, key] = client
        client.narrow(table.at_once)
        options = {"temperature": table.temperature, "reasoning_effort": table.reasoning_effort or None}
        host = urlsplit(url).hostname or ""  # OpenAI's newer models, Azure's too, know no other limit on a reply
        knows_no_other = url.rstrip("/") == OPENAI or host.endswith(".azure.com")
        return Endpoint(
            name=name,
            id=table.id or name,
            price=_price(table, url, table.id or name),
            context=table.context,
            client=client,
            key_from=key_from,
            secrets=self.secrets,
            rng=self._rng,
            options={name: value for name, value in options.items() if value is not None},
            max_tokens=table.max_tokens,
            ceiling="max_completion_tokens" if knows_no_other else "max_tokens",
            patience=Patience(**{name: getattr(table, name) for name in Patience.__struct_fields__}),
            reader=self.reader,
        )

    def _key(self, name: str, table: ModelTable) -> tuple[str, str]:
        """The key, and where it came from in words. A key for OpenAI goes to no other endpoint unless it is named."""
        if table.key_command:
            place = f"key_command = {table.key_command!r}"
            return self._read(place, lambda: _run(table.key_command)), place
        if table.base_url and not table.key_env:
            return "none", f"[models.{name}], which names neither key_env nor key_command"
        variable = table.key_env or OPENAI_KEY
        place = f"the environment variable {variable}"
        return self._read(place, lambda: self._variable(variable, name)), place

    def _read(self, place: str, read: Callable[[], str]) -> str:
        """A key, read once and remembered as a secret."""
        if place not in self._keys:
            key = read()
            if not key.isascii() or not key.isprintable() or any(odd in key for odd in " \"'\\"):
                raise CredentialError(f"expected a key of plain characters from {place}, got something else")
            self._keys[place] = key
            if len(key) >= SHORTEST_SECRET and key not in self._secrets:
                self._secrets.append(key)
        return self._keys[place]

    def _variable(self, variable: str, model: str) -> str:
        key = self._environ.get(variable, "").strip()
        if key:
            return key
        if model not in self._user.models:
            raise CredentialError(
                f"{self._user.missing(model, settings_file(self._environ))}; to ask {self.endpoint(model)} for it, set "
                f"the environment variable {variable}"
            )
        raise CredentialError(
            f"expected a key for {model} in the environment variable {variable}, which is not set; set it, or name "
            f"another place with key_env or key_command in [models.{model}] of your settings"
        )


def open_models(
    user: UserSettings, rng: random.Random | None = None, *, record: Path | None = None, replay: Path | None = None
) -> OpenModels:
    """The models of one engine; `rng` spreads what is tried again."""
    return OpenModels(user, rng or random.Random(), record=record, replay=replay)


def _run(command: str) -> str:
    """What a shell command prints; it may talk to the person through the terminal."""
    try:
        with start(shell(command), env=os.environ, cwd=None, session=False, stdout=PIPE) as process:
            try:
                stdout, _ = process.communicate(timeout=LONGEST_KEY_COMMAND)
            except BaseException:
                process.kill()
                raise
    except TimeoutExpired:
        raise CredentialError(f"key_command took more than {LONGEST_KEY_COMMAND} s: {command}") from None
    key = stdout.decode(errors="replace").strip()
    if process.returncode or not key:
        said = f"failed with {process.returncode}" if process.returncode else "printed nothing"
        raise CredentialError(f"expected a key from key_command, which {said}; run it to see why: {command}")
    return key


def _price(table: ModelTable, url: str, model: str) -> Price | None:
    price = table.price
    if price is None:
        return known_price(model) if url.rstrip("/") == OPENAI else None
    cached = price.input if price.cached is None else price.cached
    return Price(prompt=price.input, cached=cached, completion=price.output, written=price.written)


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
    """Return a model's price at OpenAI's own endpoint, None if unknown; the endpoint's bill is what counts."""
    return PRICES.get(re.sub(r"-\d{4}-\d{2}-\d{2}$", "", model))
