"""The agent that is an external coding CLI: it works in a container, on a Git repository made for the occasion.

It asks models through a metering gateway and has no other network; what is in its folder at the end is the proposal.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import signal
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from evogit.agents import Agent, Background, Brief, NoUsableChangeError, Proposal, SessionNotes
from evogit.agents.briefs import briefing
from evogit.agents.briefs.ancestry import START
from evogit.agents.model_agent import SessionAllowance, choose
from evogit.agents.programs.evaluate_server import EvaluateServer
from evogit.agents.programs.presets import Preset
from evogit.agents.programs.read_back import Member, read_back
from evogit.agents.programs.session import Container, End, Ports, Setup, entered
from evogit.core import RepositoryError, SandboxError, SandboxLostError
from evogit.llm import Account, CredentialError, RunEndsError, SpendingLimitError
from evogit.llm.gateway.gateway import Gateway, GatewaySession
from evogit.repository.evidence import PROMPT, SESSION, TRANSCRIPT, kept_text, numbered
from evogit.sandbox import Limits
from evogit.sandbox.session import Sandbox
from evogit.text import cut, family_key, one_line, titled

SESSION_LOG = numbered(TRANSCRIPT, suffix=".txt")

BRIEF, NOTES = "EVOGIT.md", "EVOGIT-NOTES.md"
"""Files of the workspace: the brief, and what a program notes for the next session."""

MAX_NOTES_TOKENS, MAX_NOTES_BYTES = 600, 20_000
FAMILY_TRAILER = re.compile(r"^Family:[ \t]*(\S.*)$", re.IGNORECASE | re.MULTILINE)
LAST_WORDS = 5.0  # seconds to hear of the end of a program that was ended
LOOK = 0.5  # seconds between two looks at whether the run goes on
MOST_CORES = 64  # of a session's processes; their CPU is not what is scarce
SLACK = 300.0  # seconds beside a session's own for unpacking, evaluating at its end, packing


class ProgramBounds(Struct, frozen=True, kw_only=True):
    """What one session may take: seconds, tokens read and written in all, evaluations beside that of its end."""

    seconds: float = 1800.0
    tokens: int = 2_000_000
    evaluations: int = 3
    disk: int = 1 << 30


class ProgramAgent(Agent):
    """Runs a program on one of several models; without a gateway it has a login and a network of its own.

    Agents that share `reading` have folders read one after the other: all that was written is in memory then.
    """

    def __init__(
        self,
        preset: Preset,
        sandbox: Sandbox,
        gateway: Gateway | None,
        models: Sequence[str],
        bounds: ProgramBounds | None = None,
        reading: asyncio.Lock | None = None,
    ) -> None:
        self._preset = preset
        self._sandbox = sandbox
        self._gateway = gateway
        self._reading = reading or asyncio.Lock()
        self._models = list(models)
        self._bounds = bounds or ProgramBounds()
        self.kind = preset.name
        self.trials = self._bounds.evaluations

    async def propose(self, brief: Brief, rng: random.Random) -> Proposal:
        """Have the program change the brief's parent."""
        if brief.background is None or brief.account is None or brief.workshop is None:
            raise NoUsableChangeError("expected a brief with background, account and workshop, which a program needs")
        background = brief.background()
        model = choose(self._models, brief.merits, rng) if self._models else ""
        visit = _ProgramSession(self._preset, self._bounds, brief, background, model, metered=self._gateway is not None)
        account = SessionAllowance(brief.account, self._bounds.tokens)
        session = self._gateway.session(account, [model]) if self._gateway else None
        try:
            await visit.work(self._sandbox, session, account, self._reading)
        except SandboxLostError as error:
            raise NoUsableChangeError(f"the sandbox was lost: {error}", visit.evidence) from error
        return visit.proposal()


@dataclass(slots=True)
class _ProgramSession:
    """One session: what is made for it, and what comes of it."""

    preset: Preset
    bounds: ProgramBounds
    brief: Brief
    background: Background
    model: str
    metered: bool
    evidence: dict[str, bytes] = field(default_factory=dict)
    draft: Proposal | None = None  # what was in the workspace at the end
    notes: str = ""  # what the program notes for the next session
    left_out: Sequence[str] = ()
    shown: tuple[str, ...] = ()  # candidates of which the brief or the workspace shows code or a diff
    end: End = field(default_factory=End)
    cut: str = ""  # why it was ended before it ended by itself
    why: str = ""  # the same, and why there is no proposal

    async def work(
        self, sandbox: Sandbox, session: GatewaySession | None, account: Account, reading: asyncio.Lock
    ) -> None:
        """Let the program work until it ends or is ended, and read its folder."""
        ports, began = Ports.drawn(), time.monotonic()
        setup, bundle = self._setup(ports), await asyncio.to_thread(self.background.bundle)
        reviews = EvaluateServer(self.brief, self.background, self._read, reading)
        models = session.serve if session else _nobody
        longest, preset = self.bounds.seconds + SLACK, self.preset
        limits = Limits(
            wall=longest,
            cpu=longest * MOST_CORES,
            total=longest,
            memory=preset.memory,
            processes=preset.processes,
            disk=self.bounds.disk,
        )
        async with entered(sandbox, limits, ports, models, reviews.serve) as container:
            await container.start(setup, bundle)
            self.why = await self._until_over(container, session, account)
            await container.quit(LAST_WORDS)
            await reviews.close()
            self.end = container.end.result() if container.end.done() else End()
            self.why = self.cut = container.breach() or self.why
            self.evidence[SESSION_LOG] = container.transcript.text
            try:
                async with reading:
                    members = await container.salvage(self.bounds.disk)
                    self.draft = await asyncio.to_thread(self._read, members, self.end.message)
            except (NoUsableChangeError, RepositoryError, SandboxError) as error:
                self.why = f"{self.why}; {error}" if self.why else str(error)
        self._note(reviews, time.monotonic() - began)
        if self.brief.workshop and (self.notes or self.brief.workshop.kept):
            self.brief.workshop.close(SessionNotes(text=self.notes, model=self.model, evidence=self.evidence))
        if session and isinstance(session.end, SpendingLimitError) and session.end.limit:
            account.exhaust(session.end.limit)
        if reviews.failure:
            raise reviews.failure
        if session and isinstance(session.end, CredentialError) and not self.draft:
            raise session.end

    def proposal(self) -> Proposal:
        """Return the files of the workspace at the end. Raises NoUsableChangeError: nothing that counts."""
        if self.draft:
            return self.draft
        last = self.evidence.get(SESSION_LOG, b"").decode(errors="replace").strip().rpartition("\n")[2]
        said = f"; it said last: {one_line(last, 200)}" if last else ""
        raise NoUsableChangeError(f"{self._how()}{said}", self.evidence)

    def _setup(self, ports: Ports) -> Setup:
        assert self.brief.workshop
        written = briefing.write_file(
            self.brief, self.background, evaluations=self.brief.workshop.evaluations, network=not self.metered
        )
        self.shown = (*written.shown, *(each.candidate.commit for each in self.background.inspirations))
        told = f"{written.rules}\n\n{written.text}"
        self.evidence[numbered(PROMPT)] = kept_text(told)
        known = {"{url}": f"http://127.0.0.1:{ports.models}", "{model}": self.model, "{brief}": BRIEF}

        def filled(text: str) -> str:
            for name, value in known.items():
                text = text.replace(name, value)
            return text

        preset = self.preset
        return Setup(
            argv=[filled(each) for each in preset.argv],
            env={name: filled(value) for name, value in preset.env.items()},
            home={path: filled(text) for path, text in preset.files.items()},
            workspace={BRIEF: told},
            branch=START,
            exclude=[f"/{BRIEF}", f"/{NOTES}", *preset.junk],
        )

    async def _until_over(self, container: Container, session: GatewaySession | None, account: Account) -> str:
        """Wait for the end of the program; why it is to be ended, if it did not end by itself."""
        deadline = time.monotonic() + self.bounds.seconds
        over = asyncio.ensure_future(session.ended.wait() if session else asyncio.sleep(self.bounds.seconds))
        try:
            while not container.end.done():
                waiting: list[asyncio.Future[Any]] = [container.end, over]
                await asyncio.wait(waiting, timeout=LOOK, return_when=asyncio.FIRST_COMPLETED)
                if session and session.end:
                    return str(session.end)
                if time.monotonic() > deadline:
                    return f"the session took more than {self.bounds.seconds:g} s"
                account.check()
        except (RunEndsError, SpendingLimitError) as error:
            return str(error)
        finally:
            over.cancel()
        return ""

    def _read(self, found: Iterable[Member], message: str) -> Proposal:
        """Return the proposal of the workspace's files. Raises NoUsableChangeError: nothing that counts."""
        entries = list(found)
        for entry in entries:
            if entry.path == NOTES and entry.kind == "file":
                self.notes = cut(
                    bytes(entry.content[:MAX_NOTES_BYTES]).decode(errors="replace").strip(), MAX_NOTES_TOKENS
                )
        returned = read_back(entries, self.brief, self.background, [f"/{BRIEF}", f"/{NOTES}", *self.preset.junk])
        self.left_out = returned.left_out
        if not returned.changes:
            left_out = f"; left out: {self.left_out[0]}" if self.left_out else ""
            raise NoUsableChangeError(f"nothing that may be changed is changed{left_out}")
        paths = ", ".join(sorted(returned.changes))
        first, _, rest = message.partition("\n")
        family, title = titled(first)
        trailer = FAMILY_TRAILER.search(rest)
        return Proposal(
            changes=returned.changes,
            reason=FAMILY_TRAILER.sub("", rest).strip(),
            title=one_line(title) or one_line(f"{self.preset.name} on {paths}"),
            family=family_key(trailer[1]) if trailer else family,
            strategy=self.preset.name,
            modes=returned.modes,
            shown=self.shown,
            model=self.model,
            evidence=self.evidence,
        )

    def _how(self) -> str:
        """How the session ended, in a sentence."""
        if self.end.failed:
            needs = f"; it needs: {self.preset.needs}" if self.preset.needs else ""
            return f"{self.preset.name} did not start: {one_line(self.end.failed, 300)}{needs}"
        if self.cut or self.end.code is None:
            ended = "was ended"
        elif self.end.code >= 0:
            ended = f"ended with exit code {self.end.code}"
        else:
            names = {number.value: number.name for number in signal.Signals}
            ended = f"was killed by {names.get(-self.end.code, f'signal {-self.end.code}')}"
        return f"{self.preset.name} {ended}{f': {self.why}' if self.why else ''}"

    def _note(self, reviews: EvaluateServer, seconds: float) -> None:
        about = {
            "program": self.preset.name,
            "model": self.model,
            "seconds": round(seconds, 1),
            "end": self._how(),
            "evaluations": reviews.done,
            "refused": reviews.refused,
            "left_out": list(self.left_out),
        }
        self.evidence[SESSION] = json.dumps(about, indent=1).encode()


async def _nobody(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Serve no models to a program that has its own."""
