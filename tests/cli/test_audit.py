"""`evogit audit`, with its own attacks and with those of a model.

A model's proposal is a finding once a score and a second look show it; until then it raises no alarm.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.audit.small_tasks import COINS_ONLY_SUM, LEAKY, SOUND
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
        if sum(paid) != x:
=======
        if sum(paid) != x or not set(paid) <= set(VALUES):
>>>>>>> REPLACE
"""
UNEARNED = "There is no such coin.\n\nVERDICT: UNEARNED\n"
EARNED = "The goal does not say which coins there are.\n\n**Verdict: Earned**\n"
NONE = "NONE\n"


def test_a_finding_has_a_candidate_a_line_and_a_remedy(cli: Cli, tmp_path: Path) -> None:
    LEAKY["coins_only_values"].write(tmp_path / "coins")
    done = cli("audit", "coins", "--only", "nothing", "--output", "found", "--json")
    (finding,) = done.json["findings"]
    assert (done.code, finding["attack"], finding["value"]) == (1, "nothing", 0.0)
    assert finding["source"] == "yield Case(str(x), score=len(paid))"
    assert finding["line"].startswith("evaluator/evaluate.py:")
    assert b"_cheat" in (tmp_path / "found" / "nothing" / "seed" / "program.py").read_bytes()
    assert (tmp_path / "found" / "nothing" / "candidate.diff").read_text() == finding["diff"]
    shown = cli("audit", "coins", "--only", "nothing")
    assert shown.code == 1
    for part in (finding["line"], finding["remedy"], "+    return type(honest(*args, **kwargs))()"):
        assert part in shown.out
    assert cli("audit", "coins", "--only", "nothing", "--output", "found").code == 4


def test_the_closing_line_names_what_was_not_tried(cli: Cli, tmp_path: Path) -> None:
    SOUND["coins"].write(tmp_path / "coins")
    done = cli("audit", "coins", "--only", "nothing", "--only", "memo")
    last = done.out.splitlines()[-1]
    assert (done.code, "memo" in last, "nothing" in last, "--model" in last) == (0, True, False, True)
    data = cli("audit", "coins", "--only", "nothing", "--only", "memo", "--json").json
    assert {attack["name"]: attack["outcome"] for attack in data["attacks"]} == {
        "nothing": "held",
        "memo": "does not apply",
    }


def test_the_attacks_are_listed(cli: Cli) -> None:
    names = [attack["name"] for attack in cli("audit", "--list", "--json").json["attacks"]]
    assert len(set(names)) == 15
    assert all(name in cli("audit", "--list").out for name in names)


@pytest.mark.slow
def test_check_warns_of_a_timed_task_that_can_be_gamed(cli: Cli, tmp_path: Path) -> None:
    toml = LEAKY["timed_repeats"].write(tmp_path / "timed") / "task.toml"
    toml.write_text(toml.read_text().replace("[evaluator]\n", "[evaluator]\nrepeats = 2\n"))
    done = cli("check", "timed")
    assert (done.code, "can be gamed" in done.out) == (0, True)


def audit(cli: Cli, tmp_path: Path, *replies: str) -> Done:
    """Audit with a model alone, which gives these replies, one after the other."""
    (tmp_path / "replies.txt").write_text("%%\n" + "%%\n".join(replies), encoding="utf-8")
    COINS_ONLY_SUM.write(tmp_path / "coins")
    return cli("audit", "coins", "--only", "model", "--model", "script:replies.txt", "--json", "--output", "found")


def ask(cli: Cli, tmp_path: Path, url: str, *options: str, price: str = "") -> Done:
    """Audit with a model behind this address alone."""
    settings = tmp_path / "settings.toml"
    settings.write_text(f'[models.m]\nbase_url = "{url}"\n{price}\n', encoding="utf-8")
    words = ("audit", "coins", "--model", "m", "--only", "model", "--json", *options)
    return cli(*words, EVOGIT_SETTINGS=str(settings))


def test_a_proposed_leak_comes_with_a_stricter_evaluator(cli: Cli, tmp_path: Path) -> None:
    done = audit(cli, tmp_path, ONE_COIN + REFUSED, UNEARNED, NONE)
    (finding,) = done.json["findings"]
    assert done.code == 1
    assert finding["value"] < finding["seed"]
    assert finding["what"] == "it pays with one coin of the whole amount, which there is not"
    assert "if sum(paid) != x:" in finding["source"]
    assert "+        if sum(paid) != x or not set(paid) <= set(VALUES):" in finding["stricter"]
    folder = tmp_path / "found" / "model"
    assert (folder / "evaluator.diff").read_text() == finding["stricter"]
    assert "return [amount]" in (folder / "seed" / "program.py").read_text()


def test_a_proposal_that_is_not_shown_to_be_a_leak_raises_no_alarm(cli: Cli, tmp_path: Path) -> None:
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
    done = audit(cli, tmp_path, first, second, last, EARNED)
    assert (done.code, done.json["findings"]) == (0, [])
    reasons = [*proposed.values(), "the goal does not say which coins there are", "it was proposed before"]
    *notes, asked = done.json["notes"]
    assert [why for why, note in zip(reasons, notes, strict=True) if why.lower() not in note.lower()] == [], notes
    assert "questions sent: 4" in asked


@pytest.mark.parametrize(("dollars", "asked"), [("0.01", 0), ("0.5", 1)])
def test_no_more_is_spent_than_allowed(cli: Cli, tmp_path: Path, dollars: str, asked: int) -> None:
    COINS_ONLY_SUM.write(tmp_path / "coins")
    with serve([reply(NONE, prompt=2_000, completion=10)]) as server:
        price = "price = { input = 10.0, output = 100.0 }"
        done = ask(cli, tmp_path, server.url, "--dollars", dollars, price=price)
    assert (done.code, len(server.requests)) == (0 if asked else 4, asked)
    if asked:
        assert 1_000 <= server.requests[0].body["max_tokens"] < float(dollars) / 100e-6
        assert "questions sent: 1, 2,010 tokens, $0.02" in done.json["notes"][-1]


def test_findings_survive_a_model_that_fails_later(cli: Cli, tmp_path: Path) -> None:
    clash = "<<<<<<< WRITE seed/program.py/more.py\npass\n>>>>>>> END\n"
    toml = COINS_ONLY_SUM.write(tmp_path / "coins") / "task.toml"
    toml.write_text(toml.read_text().replace('["program.py"]', '["**"]'))
    with serve([reply(ONE_COIN + REFUSED + ONE_COIN + clash + REFUSED), reply(UNEARNED), BAD_KEY]) as server:
        done = ask(cli, tmp_path, server.url)
    assert (done.code, len(done.json["findings"])) == (1, 1)
    notes = str(done.json["notes"])
    assert "would be a file and a folder" in notes
    assert "could not be asked" in notes


def test_a_model_that_attacks_is_shown_no_credentials(cli: Cli, tmp_path: Path) -> None:
    folder = COINS_ONLY_SUM.write(tmp_path / "coins")
    (folder / "seed" / ".env").write_text("PASSWORD=c4nary-of-the-seed\n")
    (folder / "evaluator" / ".env").write_text("PASSWORD=c4nary-of-the-evaluator\n")
    evaluator = folder / "evaluator" / "evaluate.py"
    evaluator.write_text(evaluator.read_text() + "KEY = 'ghp_c4naryQ7Zk2mWv9XtB4nLr8PsDq7Zk2mWv'\n")
    with serve([reply(NONE)]) as server:
        done = ask(cli, tmp_path, server.url)
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
