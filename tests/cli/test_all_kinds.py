"""Agents of every kind at once, a real coding program among them, with one scripted model behind all that ask."""

from __future__ import annotations

import faulthandler
import re
import subprocess
from pathlib import Path

import pytest

from evogit.sandbox import Environment
from evogit.sandbox.cache import cache_folder
from evogit.sandbox.interpreter import choose, prepare
from evogit.sandbox.packages import packages_folder
from tests.coding_clis import Line, answers, lean
from tests.conftest import write_task
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


EVALUATE = """\
from evogit import Case

def evaluate(program, split):
    for name in ("left", "right"):
        yield Case(name, score=min(program.call(f"program:{name}", returns=float).value, 10.0))
"""

PROGRAM = """\
from extra.left import LEFT
from extra.right import RIGHT

def left():
    return float(LEFT)

def right():
    return float(RIGHT)
"""


@pytest.fixture
def task(tmp_path: Path) -> str:
    """Two files must both become better for a high score."""
    folder = write_task(tmp_path / "halves", evaluate=EVALUATE, program=PROGRAM)
    (folder / "seed" / "extra").mkdir()
    for name in ("left", "right"):
        (folder / "seed" / "extra" / f"{name}.py").write_text(f"{name.upper()} = 0\n")
    return str(folder)


def script(folder: Path, name: str, values: list[float]) -> str:
    """A model that knows about one of the files alone."""
    replies = [
        f"TITLE: {name} {value}\n<<<<<<< WRITE extra/{name}.py\n{name.upper()} = {value}\n>>>>>>> END\n"
        for value in values
    ]
    file = folder / f"{name}{len(values)}.md"
    file.write_text("".join(f"%%\n{reply}" for reply in replies))
    return f"script:{file}"


def test_a_bandit_asks_the_model_that_pays_and_status_says_why(cli: Cli, tmp_path: Path, task: str) -> None:
    strong = script(tmp_path, "left", [each / 8 for each in range(1, 81)])
    weak = script(tmp_path, "right", [-float(each) for each in range(1, 71)])
    command = ["run", task, "--agent", f"editor@{strong},{weak}:2", "--evaluations", "24", "--deterministic", "--json"]
    command += ["--selector", "elitist:numbers=no"]  # so that every gain is a model's
    one = cli(*command, "--name", "one")
    assert one.code == 0, one.err
    by_model = {row["name"]: row for row in one.json["contributions"]["models"]}
    assert by_model[strong]["proposals"] > 1.3 * by_model[weak]["proposals"] > 0
    assert (by_model[weak]["improved"], by_model[strong]["improved"] > 5) == (0, True)
    (choice,) = one.json["choices"]
    assert {each["name"] for each in choice["models"]} == {strong, weak}
    assert cli(*command, "--name", "two").code == 0
    one_log, two_log = (cli("-C", "evogit-tiny", "log", "--name", name, "--json").out for name in ("one", "two"))
    assert re.findall('"commit": *"(.*?)"', one_log) == re.findall('"commit": *"(.*?)"', two_log)
