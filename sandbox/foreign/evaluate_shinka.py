"""Evaluates with an `evaluate.py` that is a program, as ShinkaEvolve starts it.

    python evaluate_shinka.py PROGRAM [ARGUMENT ...]

It is given `--program_path` and `--results_dir`, then the ARGUMENTs. It leaves `metrics.json` and `correct.json` there.
"""

import json
import os
import subprocess
import sys
import tempfile

from foreign_view import prepare_programs, report, told_of, view


def main(program, *arguments):
    """Evaluate one program and print its score.

    Raises:
        SystemExit: the evaluation failed, or it says that the program is not correct.
    """
    folder = view()
    prepare_programs()
    results = tempfile.mkdtemp()
    command = [sys.executable, f"{folder}/evaluate.py", "--program_path", os.path.abspath(program)]  # noqa: PTH100
    sys.stdout.flush()
    command += ["--results_dir", results, *arguments]
    done = subprocess.run(command, cwd=folder, stdout=sys.stderr, check=False)
    if done.returncode and not os.path.exists(f"{results}/correct.json"):  # noqa: PTH110
        sys.exit(f"evaluate.py ended with exit code {done.returncode}")
    correct, metrics = read(results, "correct.json"), read(results, "metrics.json")
    told = {"feedback": metrics["text_feedback"]} if metrics.get("text_feedback") else {}
    if not correct.get("correct"):
        print(*told.values())
        sys.exit(f"not correct: {correct.get('error')}")
    if done.returncode:
        sys.exit(f"evaluate.py ended with exit code {done.returncode}")
    if "combined_score" not in metrics:
        sys.exit(f"expected combined_score in metrics.json, got {', '.join(metrics) or 'nothing'}")
    told.update(told_of(metrics))
    report(float(metrics["combined_score"]), metrics.get("public") or {}, told)


def read(folder, name):
    """The object in a file that the evaluation should have left.

    Raises:
        SystemExit: it did not.
    """
    try:
        with open(f"{folder}/{name}", encoding="utf-8") as file:  # noqa: PTH123
            found = json.load(file)
    except (OSError, ValueError) as error:
        sys.exit(f"expected evaluate.py to write {name}, got {error}")
    return found if isinstance(found, dict) else {}


if __name__ == "__main__":
    main(*sys.argv[1:])
