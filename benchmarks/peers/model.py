"""A synthetic model behind an OpenAI-compatible address: `python model.py [--prompts FOLDER]` prints where.

The n-th reply to questions with a parent is drawn from the seed, the parent's text and n alone, whichever system asks.
`blind` models change something (`edits.py`). `reading` ones do the same, but take what the question really tells them
into account: the weak part that feedback names, and how moves of numbers in ancestors, siblings and other programs
turned out. A run is at `ADDRESS/SYSTEM/RUN/v1`; `/open` begins it, `/run` says what it used.
"""

from __future__ import annotations

import argparse
import random
import sys
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from edits import Edit, Knowledge, drawn
from formats import Reading
from serving import serve
from systems import SPEAKERS

KINDS = ("blind", "reading")


@dataclass
class Asked:
    """A run as the model sees it."""

    seed: int
    kind: str
    counts: Counter[str] = field(default_factory=Counter)
    questions: int = 0
    unread: int = 0
    told: int = 0
    prompt: int = 0
    completion: int = 0


class Model:
    """All runs that ask."""

    def __init__(self, prompts: Path | None = None) -> None:
        self._runs: dict[str, Asked] = {}
        self._lock = threading.Lock()
        self._prompts = prompts

    def answer(self, path: str, body: Mapping[str, Any]) -> tuple[int, Mapping[str, Any]]:
        """What is replied to a request."""
        if path == "/open":
            self._runs[body["run"]] = Asked(body["seed"], body["kind"])
            return 200, {}
        if path == "/run":
            return 200, {key: value for key, value in asdict(self._runs[body["run"]]).items() if key != "counts"}
        _, system, run, *_ = path.split("/")
        prompt = "\n\n".join(text_of(message["content"]) for message in body["messages"])
        with self._lock:
            reply, used = self.reply(self._runs[run], system, prompt)
        if self._prompts:
            name = f"{run}-{self._runs[run].questions:04}.txt"
            (self._prompts / name).write_text(f"{prompt}\n\n======== reply\n{reply}\n")
        return 200, completion(reply, used)

    def reply(self, run: Asked, system: str, prompt: str) -> tuple[str, tuple[int, int]]:
        """The reply to a question, and how many tokens both have: a quarter of their bytes."""
        speaker = SPEAKERS[system]
        run.questions += 1
        reading = speaker.read(prompt)
        if reading is None:
            run.unread += 1
            reply = "There is nothing that I could say about that."
        else:
            run.counts[reading.parent] += 1
            rng = random.Random(f"{run.seed} {run.counts[reading.parent]} {reading.parent}")
            knowledge = learned(reading) if run.kind == "reading" else None
            run.told += bool(knowledge and (knowledge.weak or knowledge.tried))
            reply = speaker.write(reading, edit_of(reading, rng, knowledge), prompt)
        tokens = len(prompt.encode()) // 4, len(reply.encode()) // 4
        run.prompt += tokens[0]
        run.completion += tokens[1]
        return reply, tokens


def edit_of(reading: Reading, rng: random.Random, knowledge: Knowledge | None) -> Edit:
    """An edit; of what is no Python, none."""
    try:
        return drawn(reading.parent, rng, knowledge)
    except SyntaxError:
        return Edit(reading.parent, "nothing to change")


def learned(reading: Reading) -> Knowledge:
    """What a question tells."""
    knowledge = Knowledge(reading.weak)
    if reading.score is not None:
        for text, score in reading.programs:
            knowledge.compare(reading.parent, reading.score, text, score)
    for before, after, gain in reading.changes:
        knowledge.compare(before, 0.0, after, gain)
    return knowledge


def text_of(content: object) -> str:
    """A message's content, which may come in parts."""
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content or ())  # type: ignore[attr-defined]


def completion(reply: str, used: tuple[int, int]) -> Mapping[str, Any]:
    """The body of a chat completion."""
    message = {"role": "assistant", "content": reply}
    usage = {"prompt_tokens": used[0], "completion_tokens": used[1], "total_tokens": sum(used)}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    return {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": choices, "usage": usage}


def main() -> None:
    """Serve until the process ends."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prompts", type=Path, help="keep all questions and replies here")
    serve(Model(parser.parse_args().prompts).answer)


if __name__ == "__main__":
    sys.exit(main())
