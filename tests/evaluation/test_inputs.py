"""Inputs that evaluators draw: the same for all candidates of a run, and none that a candidate could foresee."""

from __future__ import annotations

import copy
import hashlib
import hmac
import stat
import statistics
from pathlib import Path

import pytest

from evogit.config import Task
from evogit.config.run_settings import Settings
from evogit.core import BaseFiles, Evaluation, Files, RefusedError
from evogit.engine.run_key import begin_inputs, inputs_of
from evogit.evaluation.evaluator import Evaluator
from evogit.evaluation.inputs import PUBLIC, Inputs, UnforeseeableRandom, generator, of_person
from evogit.history.context import StoredRun
from evogit.repository import Repository
from evogit.repository.journal_records import unsealed
from evogit.repository.run_keys import DERIVED, RunKeys, commitment, inputs_key, seal, seal_key
from evogit.review.runs import key_place
from evogit.sandbox.archive import pack
from evogit.testing import RecordedRun
from evogit.trust import Trust
from tests.conftest import MakeTask

PREDICTS = '''\
import hashlib, random

def drawn(repeat=0, split="train", task="tiny"):
    """What the evaluator's generator gave when everybody could make it."""
    rng = random.Random(hashlib.sha256(f"{task}\\0{split}\\0{repeat}".encode()).digest())
    return [rng.getrandbits(32) for _ in range(5)]

KNOWN = {number: number % 97 for number in drawn()}

def guess(number):
    return number in KNOWN
'''

EVALUATE = """\
from evogit import Case

def evaluate(program, split, rng):
    known = [program.call("program:guess", [rng.getrandbits(32)], returns=bool).value for _ in range(5)]
    yield Case("known", score=sum(known))
"""


STILL = """\
from evogit import Case

def evaluate(program, split):
    yield Case("one", score=1)
"""


async def judged(task: Task, drawing: Inputs | None, source: str = PREDICTS) -> Evaluation:
    async with Evaluator(task, provider="bubblewrap", jobs=1, drawing=drawing) as evaluator:
        evaluation, _ = await evaluator.evaluate(
            "0" * 40,
            Files(pack({"program.py": source.encode()}), (), BaseFiles("seed", pack({}))),
            split="train",
        )
        return evaluation


@pytest.mark.slow
async def test_a_candidate_that_makes_all_inputs_at_import_knows_none(tiny: MakeTask) -> None:
    task = tiny(evaluate=EVALUATE)
    assert (await judged(task, PUBLIC)).metrics == {"score": 5}  # the attack works where there is no secret
    assert (await judged(task, None)).metrics == {"score": 0}


ECHO = "import random\n\ndef guess(number):\n    return number == random.getrandbits(32)\n"


async def test_a_programs_own_random_numbers_tell_nothing_of_the_inputs(tiny: MakeTask) -> None:
    assert (await judged(tiny(evaluate=EVALUATE), Inputs.own(), ECHO)).metrics == {"score": 0}


@pytest.mark.slow
async def test_scores_with_other_inputs_are_not_taken_for_the_same(tiny: MakeTask) -> None:
    task, one, other = tiny(evaluate=EVALUATE), Inputs.own(), Inputs.own()
    keys = {(await judged(task, each)).key for each in (one, one, other, PUBLIC)}
    assert len(keys) == 3
    still = tiny("still", evaluate=STILL)
    assert len({(await judged(still, each)).key for each in (one, other, PUBLIC)}) == 1  # nothing is drawn


async def test_an_evaluator_that_draws_says_that_the_secret_is_elsewhere(tiny: MakeTask) -> None:
    lacks = Inputs(missing="it is elsewhere")
    with pytest.raises(RefusedError, match="elsewhere"):
        await judged(tiny(evaluate=EVALUATE), lacks)
    still = tiny("still", evaluate=STILL)
    assert (await judged(still, lacks)).ok


def test_numbers_tell_nothing_of_those_to_come() -> None:
    secret = Inputs.own()
    seeds = secret.drawn("task", ["train"], 0)
    one, same = (generator(seeds, "task", "train", 0) for _ in range(2))
    drawn = [one.getrandbits(32) for _ in range(624)]
    assert drawn == [same.getrandbits(32) for _ in range(624)]
    twister = generator({}, "task", "train", 0)
    outputs = [twister.getrandbits(32) for _ in range(624)]
    assert _continued(outputs) == twister.getrandbits(32)
    assert _continued(drawn) != one.getrandbits(32)


def _continued(outputs: list[int]) -> int:
    """What Python's own generator gives after these 624 numbers of 32 bits."""
    import random

    clone = random.Random()
    clone.setstate((3, (*map(_untempered, outputs), 624), None))
    return clone.getrandbits(32)


def _untempered(value: int) -> int:
    value ^= value >> 18
    value ^= (value << 15) & 0xEFC60000
    part = value
    for _ in range(5):
        part = value ^ ((part << 7) & 0x9D2C5680)
    value = part
    part = value
    for _ in range(3):
        part = value ^ (part >> 11)
    return part & 0xFFFFFFFF


def test_it_is_a_generator_like_any_other() -> None:
    rng = UnforeseeableRandom(b"seed")
    assert abs(statistics.fmean(rng.random() for _ in range(20_000)) - 0.5) < 0.02
    assert sorted(rng.sample(range(10), 10)) == list(range(10))
    assert 0 <= rng.randrange(10**40) < 10**40
    assert [rng.gauss() for _ in range(3)] != [rng.gauss() for _ in range(3)]
    twin = copy.deepcopy(rng)
    assert [twin.random() for _ in range(9)] == [rng.random() for _ in range(9)]
    rng.seed(5)
    twin.seed(5)
    assert rng.random() == twin.random()
    with pytest.raises(ValueError, match="negative"):
        rng.getrandbits(-1)


def test_the_secret_of_a_run_is_its_owners_alone_and_is_found_by_its_hash(tmp_path: Path) -> None:
    keys = RunKeys(tmp_path, Trust(tmp_path / "trust"))
    secret = keys.make("run")
    (file,) = keys.folder.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(keys.folder.stat().st_mode) == 0o700
    assert keys.make("run") == secret  # an engine that begins the run at the same moment
    assert keys.make("another") != secret
    assert keys.find("run") == secret
    assert keys.find("third") == b""
    assert secret.hex() not in Inputs(secret).commitment
    assert secret.hex() not in repr(Inputs(secret))


def test_deterministic_runs_with_the_same_seed_draw_the_same(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path / "state")}
    drawn = []
    for number, seed in enumerate((1, 1, 2)):
        run = StoredRun.open(Repository.create(tmp_path / str(number)), "run")
        drawn.append(begin_inputs(run, Settings(seed=seed, deterministic=True), environ).commitment)
    assert drawn[0] == drawn[1] != drawn[2]
    assert commitment(DERIVED + of_person({"XDG_STATE_HOME": str(tmp_path / "other")}, 1)) not in drawn
    free = [
        begin_inputs(StoredRun.open(Repository.create(tmp_path / f"f{n}"), "run"), Settings(seed=1), environ)
        for n in "ab"
    ]
    assert free[0] != free[1]


def test_a_run_that_has_not_begun_or_is_old_has_no_secret(tmp_path: Path) -> None:
    run = StoredRun.open(Repository.create(tmp_path / "own"), "run")
    assert inputs_of(run.repository, run.history) == PUBLIC
    assert not run.repository.keys.folder.exists()


def test_what_draws_inputs_does_not_seal_and_a_seed_of_one_evaluation_is_neither(tmp_path: Path) -> None:
    key = RunKeys(tmp_path, Trust(tmp_path / "trust")).make("run")
    drawing = Inputs(inputs_key(key))
    seeds = drawing.drawn("task", ["smoke", "train"], 0)
    assert seeds.keys() == {"smoke", "train"}
    handed_over = {inputs_key(key), *(bytes.fromhex(seed) for seed in seeds.values())}
    assert len({key, key[1:], seal_key(key), *handed_over}) == 6
    assert seal(key, "h", None, "x") not in {seal(each, "h", None, "x") for each in handed_over}


@pytest.mark.parametrize("length", [32, 64])
def test_a_run_whose_file_is_the_key_itself_goes_on_with_it(tmp_path: Path, length: int) -> None:
    """As files were before two keys came of one; the longer one is of a deterministic run."""
    repository, key = Repository.create(tmp_path / "own"), bytes(range(length))
    repository.keys.folder.mkdir(parents=True)
    (repository.keys.folder / "r").write_bytes(key)
    for claim in repository.keys.untrusted("r"):
        repository.trust.add(claim)
    old = hashlib.sha256(b"evogit inputs\0" + key[:32]).hexdigest()
    run = RecordedRun(repository, "r", inputs=old).stored
    assert begin_inputs(run, Settings(deterministic=length == 64), {}) == Inputs(key[:32])
    assert (key_place(repository, run.history), run.journal.strangers) == ("here", {})
    before = run.repository.message(run.journal.latest(1)[0].id)
    record, told = unsealed(before)
    text = "\0".join(("evogit journal", repository.host, "", record))
    assert told == hmac.digest(key, text.encode(), "sha256").hex()[:32]
