"""Evaluates with an `evaluate.sh` of a container that prints JSON.

    python evaluate_container.py PROGRAM FOLDER VARIABLES SECONDS

FOLDER is the script's, below theirs, VARIABLES are its image's, and SECONDS what it may take, all as JSON: a program
for which it takes longer scores 0, as there. The script is given the program's path and `train`; the other way round
where it takes its second argument for the program, as such scripts did once.
"""

import json
import os
import re
import signal
import subprocess
import sys

from foreign_view import lay_temporary, of_image, prepare_programs, report, told_of, view

COMMENT = re.compile(r"(^|\s)#.*", re.MULTILINE)
MODE_FIRST = re.compile(r"\bMODE=[\"']?\$\{?1\b")
FIRST, SECOND = (re.compile(rf"\$\{{?{n}\b") for n in (1, 2))


def main(program, folder, variables, seconds):
    """Evaluate one program and print its score.

    Raises:
        SystemExit: the script said nothing that can be read.
    """
    theirs = view()
    lay_temporary(f"{theirs}/image/tmp")
    home = f"{theirs}/{folder}"
    programs = prepare_programs()
    with open(f"{home}/evaluate.sh", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
        mode_first = takes_mode_first(file.read())
    given = [os.path.abspath(program), "train"]  # noqa: PTH100
    script = subprocess.Popen(
        ["bash", "evaluate.sh", *(reversed(given) if mode_first else given)],
        cwd=home,
        env={**os.environ, **of_image(variables, programs)},
        stdout=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        printed, _ = script.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(script.pid, signal.SIGKILL)
        report(0.0, {"error": 0.0}, {"timeout": f"evaluate.sh took longer than {seconds:g} s"})
        return
    said = last_object(printed)
    if said is None or script.returncode:
        print(printed[-2000:])
        sys.exit(
            f"evaluate.sh ended with exit code {script.returncode}{'' if said else ', and printed no JSON object'}"
        )
    metrics = said.get("metrics") or {}
    score = metrics.get("combined_score", said.get("combined_score"))
    if isinstance(score, bool) or not isinstance(score, int | float):
        sys.exit(f"expected a number as combined_score, evaluate.sh said {score!r}")
    report(float(score), metrics, {**told_of(said), **(said.get("artifacts") or {})})


def takes_mode_first(script):
    """Whether a script has its mode as its first argument, or uses its second one alone."""
    code = COMMENT.sub("", script)
    return MODE_FIRST.search(code) or (SECOND.search(code) and not FIRST.search(code))


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
    main(sys.argv[1], *map(json.loads, sys.argv[2:]))
