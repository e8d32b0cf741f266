"""A run as one HTML file that opens from disk and asks nobody for anything."""

from __future__ import annotations

import base64
import gzip
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from evogit.content import content
from evogit.core import Candidate
from evogit.page import details
from evogit.page.assets import script, source_hash
from evogit.page.payload import FollowedRun, Record
from evogit.review.graph import skeleton

LARGEST = 1_400_000
"""Bytes of what is told, compressed; base64 and the page itself come to it, which makes less than 2 MB."""

LINK = re.compile(r'<link rel="stylesheet"[^>]*>')
SCRIPT = re.compile(r"<script [^>]*></script>")


class HtmlFile(Struct, frozen=True):
    """The file, and of how many candidates it tells only what the graph and the table show."""

    text: str
    left_out: int


def html_file(run: FollowedRun, *, redact: bool = False, page: str = "graph") -> HtmlFile:
    """A run as a file: what the server would tell of each candidate, the most telling first, as long as there is room.

    Args:
        run: what to show.
        redact: whether prompts, replies and the output of programs are left out.
        page: what is shown first, `graph` or `run`.
    """
    told = _Told(run, redact)
    left_out = told.fill()
    data = base64.b64encode(gzip.compress(_json(told.record()), 9, mtime=0)).decode()
    style, code = (content("graphs") / "style.css").read_text(encoding="utf-8"), script("main.js")
    head = (content("graphs") / "index.html").read_text(encoding="utf-8")
    allowed = f"default-src 'none'; script-src {source_hash(code)}; style-src {source_hash(style)}; img-src data:"
    allowed += "; base-uri 'none'; form-action 'none'"
    policy = f'<meta http-equiv="Content-Security-Policy" content="{allowed}">'
    head = head.replace('<meta charset="utf-8">', f'<meta charset="utf-8">\n{policy}', 1)
    head = LINK.sub(lambda _: f"<style>{style}</style>", head, count=1)
    head = SCRIPT.sub("", head, count=1)
    embedded = f'<script type="application/json" id="embedded">{data}</script>'
    end = f'{embedded}\n<script type="module">{code}</script>\n</body>'
    text = head.replace("<body>", f'<body data-page="{page}">', 1).replace("</body>", end, 1)
    return HtmlFile(text, left_out)


def _json(told: Any) -> bytes:
    return json.dumps(told, separators=(",", ":"), allow_nan=False).encode()


@dataclass(slots=True)
class _Told:
    """What goes into the file. Each line of a text is in it once, as most texts of a run repeat others."""

    run: FollowedRun
    redact: bool
    _lines: dict[str, int] = field(default_factory=dict)
    _parts: dict[str, dict[str, Any]] = field(default_factory=dict)
    _size: int = 0
    _packer: Any = field(default_factory=lambda: zlib.compressobj(6))
    _common: Record = field(default_factory=dict)

    def fill(self) -> int:
        """Take in candidates until the file is full; how many were left out."""
        self._parts = {kind: {} for kind in ("candidates", "evaluations", "sessions", "diffs")}
        run = self.run
        blocks = range(0, len(run.history.phylogeny), details.BLOCK)
        self._common = {
            "run": run.payload(read_only=True),
            "blocks": [details.block(run, start // details.BLOCK) for start in blocks],
            "report": details.report(run),
            "decisions": details.decisions(run)["decisions"],
        }
        self._add(self._common)
        left_out = 0
        for candidate in self._ranked():
            if self._size < LARGEST:
                self._take(candidate)
            else:
                left_out += 1
        return left_out

    def record(self) -> Record:
        """All of it."""
        return {**self._common, **self._parts, "lines": list(self._lines)}

    def _ranked(self) -> Iterator[Candidate]:
        history = self.run.history
        known = list(history.phylogeny)[::-1]
        shown = skeleton(history) if history.started else set()
        yield from (each for each in known if each.commit in shown)
        yield from (each for each in known if each.commit not in shown)

    def _take(self, candidate: Candidate) -> None:
        before, index = len(self._lines), candidate.number
        evaluation = details.evaluation(self.run, candidate)
        if "evidence" in evaluation:
            evaluation["evidence"] = [] if self.redact else [self._packed(each) for each in evaluation["evidence"]]
        new: dict[str, dict[str, Any]] = {
            "candidates": {str(index): details.summary(self.run, candidate)},
            "evaluations": {str(index): evaluation},
            "sessions": {str(index): self._session(candidate)},
            "diffs": {f"{old.number}/{index}": self._diff(old, candidate) for old in self._bases(candidate)},
        }
        for kind, parts in new.items():
            self._parts[kind] |= parts
        self._add([new, list(self._lines)[before:]])

    def _add(self, told: Any) -> None:
        self._size += len(self._packer.compress(_json(told)) + self._packer.flush(zlib.Z_SYNC_FLUSH))

    def _bases(self, candidate: Candidate) -> list[Candidate]:
        """What a candidate is compared with in the file: what it comes from, and the seed for the best."""
        history = self.run.history
        bases = list(history.origins(candidate.commit))
        if candidate.commit == history.best and history.seed not in (None, candidate.commit):
            bases.append(str(history.seed))
        return [history.phylogeny[commit] for commit in dict.fromkeys(bases)]

    def _session(self, candidate: Candidate) -> Record:
        if self.redact:
            return {"told": [], "said": [], "facts": []}
        session = details.session(self.run, candidate)
        return {**session, **{kind: [self._packed(each) for each in session[kind]] for kind in ("told", "said")}}

    def _diff(self, old: Candidate, new: Candidate) -> Record:
        told = details.diff(self.run.repository, old, new)
        for file in told["files"]:
            for hunk in file["hunks"]:
                hunk["lines"] = [[sign, self._line(text)] for sign, text in hunk["lines"]]
        return told

    def _packed(self, part: Record) -> Record:
        return {**part, "text": [self._line(line) for line in part["text"].split("\n")]}

    def _line(self, text: str) -> int:
        return self._lines.setdefault(text, len(self._lines))
