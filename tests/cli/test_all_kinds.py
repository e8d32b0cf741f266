"""Agents of every kind at once, a real coding program among them, with one scripted model behind all that ask."""

from __future__ import annotations

import faulthandler
import subprocess
from pathlib import Path

import pytest

from evogit.sandbox import Environment
from evogit.sandbox.cache import cache_folder
from evogit.sandbox.interpreter import choose, prepare
from evogit.sandbox.packages import packages_folder
from tests.coding_clis import Line, answers, lean
from tests.openai_server import Server, serve
from tests.own import save
from tests.plain_git import git

from .conftest import Cli, Done

pytestmark = pytest.mark.slow

KEY = "sk-canary-58ae0c9d7714"

SETTINGS = """
[models.m]
base_url = "{url}"
key_env = "TEST_KEY"
price = {{ input = 3, output = 15 }}
[commands.mini]
packages = {packages}
"""

FILES = {
    "evogit.toml": """\
name = "shop"
goal = "Bring total() up."
editable = ["shop/**"]
withheld = ["hidden/**"]
[metrics.score]
direction = "maximize"
[evaluator]
kind = "python"
file = "hidden/evaluate.py"
splits = ["train"]
""",
    "hidden/evaluate.py": """\
from evogit import Case

def evaluate(program, split):
    yield Case("all", score=float(program.call("shop.main:total", returns=float).value))
""",
    "hidden/answers.txt": "nobody is to see this\n",
    "shop/__init__.py": "",
    "shop/prices.py": "RATE = 1.5\nTAX = 0.25\n",
    "shop/items.py": "ITEMS = [1, 2, 3]\n\n\ndef count():\n    return len(ITEMS)\n",
    "shop/main.py": "from shop import items, prices\n\n\ndef total():\n"
    "    return min(items.count() * prices.RATE * (1 + prices.TAX), 1e6)\n",
    "README.md": "A shop.\n",
}


@pytest.fixture(scope="module")
def cache() -> str:
    """Where the program is installed, once."""
    faulthandler.cancel_dump_traceback_later()  # pip may take minutes
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PIP_NO_DEPS", "1")
        interpreter = prepare(*choose(privileged=True), Path(__file__).parents[2] / "sandbox")
        assert packages_folder(Environment(packages=lean()), interpreter.version)
    return str(cache_folder().parent)


def evolve(cli: Cli, folder: Path, server: Server, cache: str, *what: str) -> Done:
    (folder / "settings.toml").write_text(SETTINGS.format(url=server.url, packages=list(lean())))
    env = {"EVOGIT_SETTINGS": str(folder / "settings.toml"), "TEST_KEY": KEY, "XDG_CACHE_HOME": cache}
    agents = ["mutator:1", "editor@m", "coder@m", "mini@m"]
    options = [word for agent in agents for word in ("--agent", agent)]
    return cli("run", *what, *options, "--evaluations", "12", "--dollars", "5", "--yes", **env)


def kinds(cli: Cli, place: Path) -> set[str]:
    """The kinds of agents with a candidate that is valid."""
    report = cli("status", "--json", "-C", str(place)).json
    return {each["kind"].partition("@")[0] for each in report["contributions"]["agents"] if each["valid"]}


ALL = {"mutator", "editor", "coder", "mini"}


def test_all_kinds_work_on_a_repository(cli: Cli, tmp_path: Path, cache: str) -> None:
    place = tmp_path / "shop"
    place.mkdir()
    git(place, "init", "-q", "-b", "main")
    git(place, "config", "user.name", "Ada")
    git(place, "config", "user.email", "ada@example.org")
    save(place, "start", FILES)
    before = git(place, "status", "--porcelain"), git(place, "rev-parse", "HEAD", "main")
    with serve([answers(Line("shop/prices.py", "RATE = ", iter(range(2, 1000))))]) as server:
        done = evolve(cli, tmp_path, server, cache, "-C", str(place))
    assert done.code == 0, done.err
    assert kinds(cli, place) == ALL
    assert (git(place, "status", "--porcelain"), git(place, "rev-parse", "HEAD", "main")) == before
    check_nothing_is_told(place, done, server, KEY)
    asked = "\n".join(request.text for request in server.requests)
    for secret in ("nobody is to see this", "ada@example.org", str(tmp_path)):
        assert secret not in asked


def check_nothing_is_told(place: Path, done: Done, server: Server, secret: str) -> None:
    """The key is in what the server got, and nowhere else."""
    assert all(request.headers["authorization"] == f"Bearer {secret}" for request in server.requests)
    assert secret not in done.out + done.err + "".join(request.text for request in server.requests)
    objects = ["git", "-C", place, "cat-file", "--batch-all-objects", "--batch"]
    assert secret.encode() not in subprocess.run(objects, capture_output=True, check=True).stdout
    assert not [file for file in place.rglob("*") if file.is_file() and secret.encode() in file.read_bytes()]
