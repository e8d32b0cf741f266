"""The pages by job hold what they say: their commands are typed here, in order, in a real project."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.openai_server import Behaviour, Request, reply, serve

from .test_walks import EVOGIT, PYTHON, Person

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[2] / "docs"
BEGIN = ("init", *PYTHON.init, "--name", "night", "--yes")


def blocks(page: str, language: str) -> list[str]:
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def improvement(request: Request) -> Behaviour:
    """A model's reply: whole files, so that it fits whatever it was shown."""
    counted = "counts = Counter(words(text))\n    return sorted(counts.items(), key=lambda p: (-p[1], p[0]))[:amount]"
    number = len(request.text) % 1000
    code = f"import re\nfrom collections import Counter\n\nN = {number}\n\n\ndef words(text):\n"
    code += '    return re.findall(r"[a-z\']+", text.lower())\n\n\ndef most_common(text, amount):\n    ' + counted
    return reply(f"TITLE: count in one go\n<<<<<<< WRITE textstats/words.py\n{code}\n>>>>>>> END\n")


@pytest.mark.parametrize("page", ["overnight.md", "costs.md", "touching.md"])
def test_commands_of_the_page_work_in_order(tmp_path: Path, page: str) -> None:
    person = Person(tmp_path, PYTHON)
    with serve([improvement]) as server:
        (settings,) = blocks("costs.md", "toml")
        file = tmp_path / "home" / ".config" / "evogit" / "settings.toml"
        file.parent.mkdir(parents=True)
        urls = r"https://models\.example/v1|http://localhost:8000/v1"
        file.write_text(re.sub(urls, server.url, settings))
        person.environment |= {"MODELS_KEY": "sk-of-the-pages", "PATH": f"{EVOGIT.parent}:{os.environ['PATH']}"}
        if page != "overnight.md":
            person.evogit(*BEGIN)
        for commands in blocks(page, "sh"):
            person.run("sh", "-ec", commands)
        asked = len(server.requests)
    assert (asked > 0) == (page != "touching.md")


@pytest.mark.parametrize("page", ["searching.md", "believing.md"])
def test_commands_of_a_page_on_the_gallery_work_in_order(tmp_path: Path, page: str) -> None:
    environment = os.environ | {"HOME": str(tmp_path), "PATH": f"{EVOGIT.parent}:{os.environ['PATH']}"}
    script = "\n".join(blocks(page, "sh"))  # in one shell, as one of the commands changes the folder
    done = subprocess.run(
        ["sh", "-ec", script], cwd=tmp_path, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stdout + done.stderr
