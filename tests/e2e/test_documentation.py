"""The pages by job hold what they say: their commands are typed here, in order, in a real project."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.cli.conftest import EVOGIT, run_forked
from tests.openai_server import Behaviour, Request, reply, serve

from .test_walks import Person

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[2] / "docs"
BEGIN = (
    *("init", "--goal", "Count words faster.", "--editable", "textstats/**", "--command", "python3 benchmark.py"),
    *("--read", "milliseconds=json", "--minimize", "milliseconds", "--name", "night", "--yes"),
)
FEW = 8
"""Evaluations of each command of `searching.md`, however many it says; `believing.md` needs what it says."""


def blocks(page: str, language: str) -> list[str]:
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


COUNTED = "    counts = Counter(words(text))\n    return sorted(counts.items(), key=lambda p: (-p[1], p[0]))[:amount]"
SLOW = """\
    found = words(text)
    ranked = sorted(set(found), key=lambda word: (-found.count(word), word))
    return [(word, found.count(word)) for word in ranked[:amount]]"""


def written(body: str, title: str) -> Callable[[Request], Behaviour]:
    """A model that writes whole files, so that they fit whatever it was shown, and no two alike."""

    def answer(request: Request) -> Behaviour:
        number = len(request.text) % 1000
        code = f"import re\nfrom collections import Counter\n\nN = {number}\n\n\ndef words(text):\n"
        code += '    return re.findall(r"[a-z\']+", text.lower())\n\n\ndef most_common(text, amount):\n' + body
        end = f"<<<<<<< FINISH {title}\n" if "<<<<<<< FINISH" in request.text else ""  # of a coder's session
        return reply(f"TITLE: {title}\n<<<<<<< WRITE textstats/words.py\n{code}\n>>>>>>> END\n{end}")

    return answer


MODEL = [written(COUNTED, "count in one go"), written(SLOW, "keep them in a set")]
"""A good idea and then lesser ones: what seems best is evaluated again and again."""


@pytest.mark.parametrize("page", ["overnight.md", "costs.md", "touching.md"])
def test_commands_of_the_page_work_in_order(tmp_path: Path, page: str) -> None:
    person = Person(tmp_path, "python")
    with serve(MODEL) as server:
        (settings,) = blocks("costs.md", "toml")
        file = tmp_path / "home" / ".config" / "evogit" / "settings.toml"
        file.parent.mkdir(parents=True)
        urls = r"https://models\.example/v1|http://localhost:8000/v1"
        file.write_text(re.sub(urls, server.url, settings))
        person.environment |= {"MODELS_KEY": "sk-of-the-pages", "PATH": f"{EVOGIT.parent}:{os.environ['PATH']}"}
        if page != "overnight.md":
            person.evogit(*BEGIN)
        if page == "overnight.md":
            for commands in blocks(page, "sh"):
                person.run("sh", "-ec", commands)
        else:
            typed("\n".join(blocks(page, "sh")), person.clone, person.environment)
        asked = len(server.requests)
    assert (asked > 0) == (page != "touching.md")


@pytest.mark.parametrize("page", ["searching.md", "believing.md"])
def test_commands_of_a_page_on_the_gallery_work_in_order(tmp_path: Path, page: str) -> None:
    script = "\n".join(blocks(page, "sh"))
    if page == "searching.md":
        script = re.sub(r"--evaluations \d+", f"--evaluations {FEW}", script)
    typed(script, tmp_path, os.environ | {"HOME": str(tmp_path)})


def typed(script: str, folder: Path, environment: Mapping[str, str]) -> None:
    """Type this in a shell, but each `evogit` of one line is a fork: to start one takes longer than what it does."""
    for part in re.split(r"^(evogit .*|cd .*)\n", script, flags=re.MULTILINE):
        if part.startswith("cd "):
            folder /= part.removeprefix("cd ")
        elif part.startswith("evogit "):
            done = run_forked(shlex.split(part)[1:], cwd=folder, env=environment)
            assert done.code == 0, f"{part}\n{done.out}\n{done.err}"
        elif part.strip():
            subprocess.run(["sh", "-ec", part], cwd=folder, env=environment, check=True)
