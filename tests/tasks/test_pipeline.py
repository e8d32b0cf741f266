"""The judge of the pipeline compares each report with its own, byte by byte, and then measures."""

from __future__ import annotations

import pytest

from evogit.adopt import find_task

from .conftest import Judged

TASK = "pipeline"
MAIN = "pipeline/__main__.py"

pytestmark = pytest.mark.asyncio(loop_scope="module")


def seed(path: str) -> str:
    return find_task(TASK).seed_files()[f"pipeline/{path}"][0].decode()


def edited(path: str, old: str, new: str) -> dict[str, bytes]:
    code = seed(path)
    assert old in code
    return {f"pipeline/{path}": code.replace(old, new).encode()}


WRONG = {
    "prints nothing": {MAIN: b"pass\n"},
    "prints a score": {MAIN: b"print('seconds 0')\n"},
    "fails": {MAIN: b"raise SystemExit(3)\n"},
    "adds a line": edited("__main__.py", 'return "".join(parts)', 'return "".join(parts) + "\\n"'),
    "keeps its first report": edited(
        "__main__.py",
        "sys.stdout.write(report(sys.stdin.read()))",
        "from pathlib import Path\n"
        "    kept = Path('kept')\n"
        "    kept.exists() or kept.write_text(report(sys.stdin.read()))\n"
        "    sys.stdout.write(kept.read_text())",
    ),
    "takes the upper median": edited("aggregation.py", "(len(sorted(values)) - 1) // 2", "len(sorted(values)) // 2"),
    "accepts repeated events": edited("validation.py", 'if event["id"] in ids:', "if False:"),
    "accepts days that do not exist": edited(
        "validation.py", "except ValueError:\n        return False", "except ValueError:\n        return True"
    ),
    "keeps the first of two customers": edited("catalogue.py", "found[-1]", "found[0]"),
    "ends sessions early": edited("sessions.py", "<= GAP", "< GAP - 60"),
    "leaves the order to the input": edited("records.py", "(entry[0], entry[1])", "entry[1]"),
}


@pytest.mark.slow
async def test_a_report_that_differs_is_invalid(judged: Judged) -> None:
    for name, files in WRONG.items():
        evaluation = await judged(files=files, split="smoke")
        assert evaluation.status == "invalid", name
        assert evaluation.metrics == {}


@pytest.mark.slow
async def test_the_seed_is_right_and_a_program_in_one_pass_is_several_times_faster(judged: Judged) -> None:
    task = find_task(TASK)
    assert task.evaluator
    reference = (task.evaluator.parent / "reference.py").read_text()
    main = (
        reference + '\n\nif __name__ == "__main__":\n    import sys\n\n    sys.stdout.write(report(sys.stdin.read()))\n'
    )
    slow, fast = await judged(split="train"), await judged(files={MAIN: main.encode()}, split="train")
    assert slow.ok
    assert fast.ok
    assert fast.metrics["seconds"] < slow.metrics["seconds"] / 5


@pytest.mark.slow
async def test_time_asleep_counts(judged: Judged) -> None:
    evaluation = await judged(
        files=edited("__main__.py", "import sys\n", "import sys, time\ntime.sleep(0.3)\n"), split="lite"
    )
    assert evaluation.ok
    assert evaluation.metrics["seconds"] > 0.3
