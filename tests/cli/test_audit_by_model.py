"""What a model proposes against an evaluator is a finding once a score and a second look show it.

Else it is told why not, and nobody is alarmed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.audit.leaky_tasks import LEAKY
from tests.audit.small_tasks import Small
from tests.openai_server import BAD_KEY, reply, serve

from .conftest import Cli, Done

ONE_COIN = """\
ATTACK: it pays with one coin of the whole amount, which there is not
<<<<<<< WRITE seed/program.py
def solve(amount, values):
    return [amount]
>>>>>>> END
"""
REFUSED = """\
<<<<<<< SEARCH evaluator/evaluate.py
        if sum(paid) != amount:
=======
        if sum(paid) != amount or not set(paid) <= set(VALUES):
>>>>>>> REPLACE
"""
UNEARNED = "There is no such coin.\n\nVERDICT: UNEARNED\n"
EARNED = "The goal does not say which coins there are.\n\n**Verdict: Earned**\n"
NONE = "NONE\n"


def audit(cli: Cli, tmp_path: Path, small: Small, *replies: str) -> Done:
    """Audit with a model alone, which answers these, one after the other."""
    (tmp_path / "replies.txt").write_text("%%\n" + "%%\n".join(replies), encoding="utf-8")
    small.write(tmp_path / "coins")
    return cli("audit", "coins", "--only", "model", "--model", "script:replies.txt", "--json", "--out", "found")


def test_a_proposed_leak_comes_with_a_stricter_evaluator(cli: Cli, tmp_path: Path) -> None:
    done = audit(cli, tmp_path, LEAKY["coins_only_sum"], ONE_COIN + REFUSED, UNEARNED, NONE)
    (finding,) = done.json["findings"]
    assert done.code == 1
    assert finding["value"] < finding["seed"]
    assert finding["what"] == "it pays with one coin of the whole amount, which there is not"
    assert "if sum(paid) != amount:" in finding["source"]
    assert "+        if sum(paid) != amount or not set(paid) <= set(VALUES):" in finding["stricter"]
    found = tmp_path / "found" / "model"
    assert (found / "evaluator.diff").read_text() == finding["stricter"]
    assert "return [amount]" in (found / "seed" / "program.py").read_text()


def test_what_is_not_shown_to_be_a_leak_alarms_nobody(cli: Cli, tmp_path: Path) -> None:
    proposed = {
        ONE_COIN: "it does not say how the evaluator could refuse it",
        ONE_COIN + REFUSED.replace("evaluate.py", "os.py"): "the evaluator has no file",
        ONE_COIN.replace("seed/", "seed/../") + REFUSED: "expected a relative path",
        ONE_COIN + REFUSED + "SPLIT: none\n": "there is no split 'none'",
        ONE_COIN.replace("[amount]", "[1] * amount") + REFUSED: "gains nothing",
        ONE_COIN.replace("[amount]", "[1, 1]") + REFUSED: "its candidate is invalid",
        ONE_COIN.replace("seed/program.py", "evaluator/evaluate.py"): "changes no file that candidates may change",
        ONE_COIN.replace("seed/program.py", "other/program.py"): "neither below seed/",
    }
    first, second = "".join([*proposed][:4]), "".join([*proposed][4:])
    last = (ONE_COIN + REFUSED) * 2
    done = audit(cli, tmp_path, LEAKY["coins_only_sum"], first, second, last, EARNED)
    assert (done.code, done.json["findings"]) == (0, [])
    whys = [*proposed.values(), "the goal does not say which coins there are", "it was proposed before"]
    *notes, asked = done.json["notes"]
    assert [why for why, note in zip(whys, notes, strict=True) if why.lower() not in note.lower()] == [], notes
    assert "questions sent: 4" in asked


@pytest.mark.parametrize(("dollars", "asked"), [("0.01", 0), ("0.5", 1)])
def test_no_more_is_spent_than_allowed(cli: Cli, tmp_path: Path, dollars: str, asked: int) -> None:
    LEAKY["coins_only_sum"].write(tmp_path / "coins")
    with serve([reply(NONE, prompt=2_000, completion=10)]) as server:
        settings = tmp_path / "settings.toml"
        price = "price = { input = 10.0, output = 100.0 }"
        settings.write_text(f'[models.m]\nbase_url = "{server.url}"\n{price}\n', encoding="utf-8")
        named = ("--model", "m", "--only", "model", "--dollars", dollars, "--json")
        done = cli("audit", "coins", *named, EVOGIT_SETTINGS=str(settings))
    assert (done.code, len(server.requests)) == (0 if asked else 4, asked)
    if asked:
        assert 1_000 <= server.requests[0].body["max_tokens"] < float(dollars) / 100e-6
        assert "questions sent: 1, 2,010 tokens, $0.02" in done.json["notes"][-1]
    else:
        assert "does not pay for a question" in done.json["notes"][-1]


def test_what_was_found_is_told_whatever_comes_later(cli: Cli, tmp_path: Path) -> None:
    clash = "<<<<<<< WRITE seed/program.py/more.py\npass\n>>>>>>> END\n"
    first = ONE_COIN + REFUSED + ONE_COIN + clash + REFUSED
    toml = LEAKY["coins_only_sum"].write(tmp_path / "coins") / "task.toml"
    toml.write_text(toml.read_text().replace('["program.py"]', '["**"]'))
    with serve([reply(first), reply(UNEARNED), BAD_KEY]) as server:
        settings = tmp_path / "settings.toml"
        settings.write_text(f'[models.m]\nbase_url = "{server.url}"\n', encoding="utf-8")
        done = cli("audit", "coins", "--model", "m", "--only", "model", "--json", EVOGIT_SETTINGS=str(settings))
    assert (done.code, len(done.json["findings"])) == (1, 1)
    notes = str(done.json["notes"])
    assert "would be a file and a folder" in notes
    assert "could not be asked" in notes


def test_a_model_that_attacks_is_shown_no_credentials(cli: Cli, tmp_path: Path) -> None:
    folder = LEAKY["coins_only_sum"].write(tmp_path / "coins")
    (folder / "seed" / ".env").write_text("PASSWORD=c4nary-of-the-seed\n")
    (folder / "evaluator" / ".env").write_text("PASSWORD=c4nary-of-the-evaluator\n")
    evaluator = folder / "evaluator" / "evaluate.py"
    evaluator.write_text(evaluator.read_text() + "KEY = 'ghp_c4naryQ7Zk2mWv9XtB4nLr8PsDq7Zk2mWv'\n")
    with serve([reply(NONE)]) as server:
        settings = tmp_path / "settings.toml"
        settings.write_text(f'[models.m]\nbase_url = "{server.url}"\n', encoding="utf-8")
        done = cli("audit", "coins", "--model", "m", "--only", "model", "--json", EVOGIT_SETTINGS=str(settings))
    assert done.code == 0, done.err
    (request,) = server.requests
    assert "evaluator/evaluate.py" in request.text
    assert "c4nary" not in request.text


@pytest.mark.parametrize(
    "options",
    [
        ("--only", "model"),
        ("--dollars", "1"),
        ("--model", "", "--only", "model"),
        ("--model", "script:none", "--only", "nan"),
        ("--model", "script:none", "--dollars", "nan"),
        ("--model", "script:none", "--dollars", "inf"),
    ],
)
def test_options_that_contradict_each_other_are_refused(cli: Cli, options: tuple[str, ...]) -> None:
    done = cli("audit", "circle_packing", *options)
    assert (done.code, done.out) == (2, "")
    assert "expected" in done.err
