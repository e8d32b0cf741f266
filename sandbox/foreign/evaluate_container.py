"""Evaluates with an `evaluate.sh` of a container that prints JSON: `python evaluate_container.py PROGRAM FOLDER`.

FOLDER is the script's, below theirs, as JSON. It is given the program's path and `train`.
"""

import json
import os
import subprocess
import sys

from foreign_view import lay_temporary, prepare_programs, report, view


def main(program, folder):
    """Evaluate one program and print its score.

    Raises:
        SystemExit: the script said nothing that can be read.
    """
    theirs = view()
    lay_temporary(theirs)
    home = f"{theirs}/{folder}"
    prepare_programs()
    done = subprocess.run(
        ["bash", "evaluate.sh", os.path.abspath(program), "train"],  # noqa: PTH100
        cwd=home,
        stdout=subprocess.PIPE,
        text=True,
        errors="replace",
        check=False,
    )
    said = last_object(done.stdout)
    if said is None:
        print(done.stdout[-2000:])
        sys.exit(f"evaluate.sh ended with exit code {done.returncode}, and printed no JSON object")
    metrics = said.get("metrics") or {}
    score = said.get("combined_score", metrics.get("combined_score"))
    if isinstance(score, bool) or not isinstance(score, int | float):
        sys.exit(f"expected a number as combined_score, evaluate.sh said {score!r}")
    report(float(score), metrics, said.get("artifacts") or {})


def last_object(text):
    """The whole text as a JSON object, or else its last line that is one; None where there is none."""
    for part in (text, *reversed(text.splitlines())):
        try:
            found = json.loads(part)
        except ValueError:
            continue
        if isinstance(found, dict):
            return found
    return None


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
