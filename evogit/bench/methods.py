"""What is compared: a method is a name, a selector, and perhaps agents of its own."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from evogit.config.run_settings import AgentSpec, Settings
from evogit.config.values import nearest
from evogit.core import UsageError
from evogit.selection.registry import open_selector, replacement

DEFAULT = "evolve"
"""The method that is EvoGit as it comes."""

USUAL = Settings().selector
"""Its selector."""


class Method(Struct, frozen=True, kw_only=True):
    """One way to search. Empty `agents` are those of the bench; `alone`: only one of them; `kind`: one of that kind."""

    name: str
    selector: str = USUAL
    agents: tuple[AgentSpec, ...] = ()
    alone: bool = False
    kind: str = ""

    @property
    def file_name(self) -> str:
        """The name in words that any file system takes."""
        return re.sub(r"[^\w.=-]+", "_", self.name)

    def population(self, usual: tuple[AgentSpec, ...]) -> tuple[AgentSpec, ...]:
        """The agents of a run of this method; `usual` where it names none.

        Raises:
            UsageError: it asks a model, and no agent names one.
        """
        chosen = self.agents or usual
        if self.kind:
            model = next((spec.model for spec in chosen if spec.model), "")
            if not model:
                raise UsageError(f"the method {self.name} asks a model: expected --model NAME")
            return (AgentSpec(self.kind, model),)
        return (replace(chosen[0], count=1),) if self.alone else chosen


CONTROLS: tuple[Method, ...] = (
    Method(name="best-of-n", selector="best-of-n"),
    Method(name="sequential", selector="sequential", alone=True),
    Method(name="one-plus-lambda", selector="one-plus-lambda"),
    Method(name="no-merge", selector="elitist:merge=no"),
    Method(name="random-parent", selector="random-parent"),
    Method(name="plain-loop", selector="one-plus-lambda", kind="plain-loop"),
)
"""What a method must be compared with before it may be said to earn its cost; the last one where models are asked."""

KNOWN = {method.name: method for method in (Method(name=DEFAULT), *CONTROLS)}


def is_control(name: str) -> bool:
    """Whether others are measured against this method, not it against them."""
    return name in {method.name for method in CONTROLS}


def methods(names: Iterable[str], selectors: Iterable[str], own: Iterable[str]) -> tuple[Method, ...]:
    """Those that are named, one for each selector, and a person's own as `parse` reads them.

    Raises:
        ConfigError: a person's own selector is wrong.
        UsageError: nothing of that name is known, two have one name, or there is none.
    """
    found: list[Method] = []
    for name in map(str.strip, names):
        if name not in KNOWN:
            raise UsageError(f"no method {name!r}; {nearest(name, KNOWN)}; a selector is added with --selector")
        found.append(KNOWN[name])
    found += [Method(name=text, selector=text) for text in selectors]
    found += [parse(text) for text in own]
    if not found:
        raise UsageError(f"expected at least one method of {', '.join(KNOWN)}, or a --selector")
    files = [method.file_name for method in found]
    if twice := next((name for name in files if files.count(name) > 1), ""):
        raise UsageError(f"expected every method once, got {twice!r} twice; name one with --method NAME=SELECTOR")
    for method in found:
        if replacement(method.selector.partition(":")[0]):
            raise UsageError(f"the selector of {method.name!r} was removed, so it cannot be compared")
        open_selector(method.selector)
    return tuple(found)


def parse(text: str) -> Method:
    """Read `NAME=SELECTOR`, `NAME=--agent A --agent B` or both, as `NAME=SELECTOR --agent A`.

    Raises:
        UsageError: when it is something else.
    """
    name, _, rest = text.partition("=")
    try:
        words = shlex.split(rest)
    except ValueError as error:
        raise UsageError(f"expected words as in a shell after --method NAME=, got {text!r}: {error}") from error
    specs = [AgentSpec.parse(word) for option, word in pairwise(words) if option == "--agent"]
    others = [word for before, word in pairwise(["", *words]) if "--agent" not in (before, word)]
    wrong = len(others) > 1 or any(word.startswith("-") for word in others)
    if not name or not words or wrong or words[-1] == "--agent":
        usual = "NAME='[SELECTOR] --agent KIND[@MODEL][:N]', or --agent FILE.py:Name[:N] in it"
        raise UsageError(f"expected --method NAME=SELECTOR or {usual}, got {text!r}")
    return Method(name=name, selector=others[0] if others else USUAL, agents=tuple(specs))
