"""Evaluates a program as AlphaEvolve's published examples do: `evaluate_alphaevolve.py PROGRAM CONFIG`.

CONFIG is JSON: `evaluator`, the path below theirs of the source that evaluates; `kind`, whether that has a function of
a candidate, given as a "mapping", "text" or "path", is a "command", or is the program ("self"); `called`, the name of
the function, or the option of the command; `metrics`, names of which the first that a score has is optimised.
"""

import importlib
import json
import math
import os
import runpy
import subprocess
import sys
import tempfile

from foreign_view import aside, placed, prepare_programs, report, show, view

FAILED = -1e12
"""The score of a program that failed, in their examples: the service takes numbers alone."""


def main(program, config):
    """Evaluate one program and print its score.

    Raises:
        SystemExit: it has none.
    """
    sys.excepthook = show
    folder = view()
    prepare_programs()
    evaluate = {"command": by_command, "self": by_itself}.get(config["kind"], by_function)
    source = os.path.abspath(program)  # noqa: PTH100
    laid = f"{folder}/{program}"
    os.chdir(folder)
    with aside():
        scores, insights = parts(evaluate(source, laid, config))
    name = chosen(scores, config["metrics"])
    value = scores[name]
    if not is_number(value) or value <= FAILED:
        print(*(f"{label}: {text}" for label, text in insights.items()), sep="\n")
        sys.exit(f"the evaluator gives {value} for {name}, which stands for a failure")
    report(float(value), {each: score for each, score in scores.items() if is_number(score)}, insights)


def by_function(program, laid, config):
    """Return the result of a candidate's function; its module is one of the folder's, as `src.evaluate`."""
    file = config["evaluator"]
    sys.path[:0] = [os.getcwd(), os.path.dirname(os.path.abspath(file))]  # noqa: PTH100, PTH109, PTH120
    evaluate = getattr(importlib.import_module(file.removesuffix(".py").replace("/", ".")), config["called"])
    if config["kind"] == "path":
        return awaited(evaluate(placed(program)))
    with open(program, encoding="utf-8", errors="replace") as source:  # noqa: PTH123
        text = source.read()
    files = [{"path": os.path.basename(program), "content": text}]  # noqa: PTH119
    return awaited(evaluate(text if config["kind"] == "text" else {"content": {"files": files}}))


def by_command(program, laid, config):
    """Return the scores that the command writes."""
    result = f"{tempfile.mkdtemp()}/score.json"
    if config["called"] == "--program-dir":
        with open(program, "rb") as source, open(laid, "wb") as copy:  # noqa: PTH123
            copy.write(source.read())
    given = placed(program) if config["called"] == "--input-program-file" else os.path.dirname(laid)  # noqa: PTH120
    command = [sys.executable, config["evaluator"], "--output-file", result, config["called"], given]
    done = subprocess.run(command, check=False)
    try:
        with open(result, encoding="utf-8") as file:  # noqa: PTH123
            return json.load(file)
    except (OSError, ValueError) as error:
        sys.exit(f"expected {config['evaluator']} to write a score, got exit code {done.returncode}, {error}")


def by_itself(program, laid, config):
    """Return the scores that the program gives itself; it gets no inputs."""
    sys.path.insert(0, os.path.dirname(laid))  # noqa: PTH120
    return awaited(runpy.run_path(program, run_name="program")[config["called"]]({}))


def awaited(result):
    """A result, which may have to be waited for."""
    if hasattr(result, "__await__"):
        import asyncio  # noqa: PLC0415 - slow to import

        return asyncio.run(result)
    return result


def parts(result):
    """Scores by name, and insights by label, of what an evaluator gave, in any of their forms.

    Raises:
        SystemExit: it gave none.
    """
    result = result.model_dump() if hasattr(result, "model_dump") else result
    result = {"score": result} if is_number(result) else result
    if not isinstance(result, dict):
        sys.exit(f"expected the evaluator to return scores, got {type(result).__name__}")
    insights = [each for each in listed(result, "insights") if isinstance(each, dict)]
    told = {str(each.get("label")): each.get("text") for each in insights}
    if "scores" in result:
        return {str(each.get("metric")): each.get("score") for each in listed(result, "scores")}, told
    if "score" in result:
        return {"score": result["score"]}, told
    return {name: value for name, value in result.items() if isinstance(value, int | float)}, told


def listed(result, name):
    """The list of this name, which may lie in a mapping of this name."""
    found = result.get(name) or []
    return (found.get(name) or []) if isinstance(found, dict) else found


def chosen(scores, metrics):
    """The name of the score that is optimised.

    Raises:
        SystemExit: there is none, or there are several, and nothing tells which.
    """
    names = [name for name in (*metrics, "combined_score", "score") if name in scores] or list(scores)
    if not names:
        sys.exit("the evaluator gives no score")
    if len(scores) > 1 and names == list(scores):
        sys.exit(f"the evaluator gives several scores ({', '.join(names)}), and no constant METRIC says which counts")
    return names[0]


def is_number(value):
    """Return whether a score is one; the service refuses what is not finite."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
