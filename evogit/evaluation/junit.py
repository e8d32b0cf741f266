"""Reads JUnit reports, which candidates may have written: which test cases passed, and why the others failed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from xml.parsers import expat

from evogit.text import ends

MOST_XML, MOST_CASES = 8 << 20, 100_000
"""Bytes of a report, and test cases in it."""

LONGEST_FAILURE = 500
"""Characters of the name and of the message of a test case."""

MOST_CAUSES, LONGEST_CAUSE = 8, 1500
"""Failures that are told with what the report says of them, and bytes of that."""

MOST_NAMES = 10
"""Test cases that are named for one cause, and other failures that are only named."""


@dataclass(slots=True)
class Failure:
    """A test case that failed: what was said of it in a sentence, and at length."""

    name: str
    message: str
    text: str = ""

    @property
    def sentence(self) -> str:
        """The first line of the message."""
        return self.message.strip().partition("\n")[0]

    @property
    def cause(self) -> tuple[str, str]:
        """The same for those that fail alike: the message but for its numbers, and the place, which is named last."""
        return re.sub(r"\d+", "0", self.sentence), self.text.rpartition("\n")[2].strip()


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMES:,} more" if names[MOST_NAMES:] else ""
    return ", ".join(names[:MOST_NAMES]) + more


class Report:
    """A JUnit report, untrusted: which test cases passed."""

    def __init__(self, name: str, content: bytes | None) -> None:
        self._name = name
        self._content = content
        self._cases: list[tuple[str, str]] = []
        self._failed: list[Failure] = []
        self._text: list[str] | None = None

    def share(self) -> float:
        """Return the share of cases, not skipped, that passed. Raises ValueError if there are none, or no report."""
        if self._content is None:
            raise ValueError(f"the command wrote no JUnit report {self._name}")
        if len(self._content) > MOST_XML:
            raise ValueError(f"the JUnit report {self._name} has more than {MOST_XML} bytes")
        parser = expat.ParserCreate("utf-8")
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._read
        parser.StartDoctypeDeclHandler = self._refuse
        self._cases.clear()
        self._failed.clear()
        try:
            parser.Parse(self._content, True)
        except expat.ExpatError as error:
            raise ValueError(f"the JUnit report {self._name} is not XML: {error}") from None
        counted = [how for _, how in self._cases if how != "skipped"]
        if not counted:
            raise ValueError(f"the JUnit report {self._name} holds no test case that ran")
        return counted.count("passed") / len(counted)

    def failures(self) -> str:
        """The failed test cases by their causes, that of most cases first, and what was said of each."""
        if not self._failed:
            return ""
        counted = [how for _, how in self._cases if how != "skipped"]
        causes: dict[tuple[str, str], list[Failure]] = {}
        for failure in self._failed:
            causes.setdefault(failure.cause, []).append(failure)
        ordered = sorted(causes.values(), key=len, reverse=True)
        parts = [f"{len(self._failed)} of {len(counted)} test cases failed."]
        for first, *others in ordered[:MOST_CAUSES]:
            said = "\n".join(filter(None, [first.sentence, first.text])) if first.text else first.message
            also = f"Failed like it: {_listed([each.name for each in others])}" if others else ""
            parts.append("\n".join(filter(None, [f"{first.name}: {said}".rstrip(": "), also])))
        if rest := [failure.name for alike in ordered[MOST_CAUSES:] for failure in alike]:
            parts.append(f"Failed otherwise: {_listed(rest)}")
        return "\n\n".join(parts)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "testcase":
            name = ".".join(filter(None, (attributes.get("classname"), attributes.get("name"))))
            self._cases.append((name[:LONGEST_FAILURE], "passed"))
            if len(self._cases) > MOST_CASES:
                raise ValueError(f"the JUnit report {self._name} has more than {MOST_CASES} test cases")
        elif self._cases and tag in ("failure", "error", "skipped"):
            name, how = self._cases[-1]
            self._cases[-1] = (name, "skipped" if tag == "skipped" and how == "passed" else "failed")
            if tag != "skipped" and how != "failed":
                self._failed.append(Failure(name, attributes.get("message", "")[:LONGEST_FAILURE]))
                self._text = []

    def _end(self, tag: str) -> None:
        if tag in ("failure", "error") and self._text is not None:
            self._failed[-1].text = ends("".join(self._text).strip(), LONGEST_CAUSE)
            self._text = None

    def _read(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)

    def _refuse(self, *_: object) -> None:
        raise ValueError(f"the JUnit report {self._name} has a document type declaration; expected plain XML")
