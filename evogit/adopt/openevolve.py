"""Reads an OpenEvolve example: `initial_program.*`, `evaluator.py` with `evaluate(program_path)`, `config.yaml`.

SkyDiscover's Python tasks are the same, with `evaluator.py` perhaps in a folder `evaluator/`. Its containers have
`evaluate.sh` there, whose programs expect their files at an absolute path: a link in the sandbox.
"""

from __future__ import annotations

import ast
import json
import posixpath
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evogit.adopt.dockerfile import arranged, read_dockerfile, told_lost
from evogit.adopt.foreign_task import (
    IMPORTS,
    SHIMS,
    VIEW,
    File,
    ForeignTask,
    Format,
    name_of,
    outside_evaluator,
    reached,
)
from evogit.adopt.notes import HARMLESS, told_needs, told_unheeded
from evogit.adopt.packages import merged, packages, requirements
from evogit.adopt.sources import (
    SOURCES,
    at,
    files_below,
    marked,
    read_yaml,
    seconds,
    too_large,
)
from evogit.contained import file_at, find_text, lines_of, text_at
from evogit.source.marks import blocks

TIMEOUT = 300.0
SLACK = 30.0  # seconds for what is no stage, and for one that cannot be broken off at once
INNER = ("evaluator", "eval")
"""Folders in which SkyDiscover's tasks have their evaluator, in newer versions and in older ones."""
EVALUATE = re.compile(r"^(?:async )?def evaluate\(", re.MULTILINE)
MEAN = ", the mean of all numbers that the evaluator gives,"
NO_SCORE = (
    "the evaluator names no combined_score, so that the mean of all numbers that it gives ranks, as it does there: a "
    "time or an error among them counts as better the higher it is"
)
FEEDBACK = (
    "its configuration asks for feedback by models ({}), which is not done here: the score is what the "
    "evaluator alone says"
)
YAML = (".yaml", ".yml")
OUTSIDE = "openevolve_outside.py.txt"
THRESHOLDS = (0.5, 0.75, 0.9)  # openEvolve's, where the file says nothing
FEATURES = ("complexity", "diversity")  # metrics that OpenEvolve leaves out of the mean, where the file says nothing
SKYDISCOVER_THRESHOLDS = (0.3,)  # skyDiscover's, which has two stages
SKYDISCOVER_TIMEOUT = 360.0
_PATH_CALLS = """
open Path PurePath spec_from_file_location SourceFileLoader run_path run Popen check_output check_call call system
import_module load_module load_program join dirname basename abspath realpath exists isfile copy copyfile copy2
"""
PATH_CALLS = frozenset(_PATH_CALLS.split())  # functions that are given a path, or a command with one
_VALUES = """
output outputs out result results answer answers response responses reply completion prediction predictions solution
solutions value values data array points inputs eval_inputs stdout text code source content state
"""
VALUES = frozenset(_VALUES.split())  # names of parameters that hold what a program returns, or its text
WORKDIR = "/benchmark"  # the default working folder of a container


def read_openevolve(place: Path) -> ForeignTask | None:
    """Read the task in a folder, or of a file in it that evaluates; return None if it is no such example."""
    folder = place.parent if place.is_file() else place
    programs, evaluators = _programs(place, folder), _evaluators(place)
    if not programs or len(evaluators) != 1:
        return None
    is_skydiscover = "/" in evaluators[0]
    system = "SkyDiscover" if is_skydiscover else "OpenEvolve"
    config = read_config(place)
    program = begun_with(programs, config).name
    seed = {program: file_at(folder, program)}
    evaluator = evaluators[0]
    theirs = {**files_below(folder), evaluator: file_at(folder, evaluator)}
    scoring = _scoring(config, is_skydiscover=is_skydiscover)
    about = {"home": ".", "evaluator": evaluator, **scoring}
    timeout = timeout_of(config, SKYDISCOVER_TIMEOUT if is_skydiscover else TIMEOUT)
    used = {path: file for path, file in theirs.items() if path in reached(theirs, {evaluator})}
    stages = sum(any(f"def evaluate_stage{n}".encode() in data for data, _ in used.values()) for n in (1, 2, 3))
    ranked = "" if any(b"combined_score" in data for data, _ in used.values()) else MEAN
    outside, why = outside_evaluator(OUTSIDE, program, theirs[evaluator], config=json.dumps(about))
    given = json.dumps({**about, "timeout": timeout})
    return ForeignTask(
        system=system,
        name=name_of(folder),
        goal=goal_of(config, folder, seed, ranked),
        editable=(program,),
        seed=seed,
        theirs=theirs,
        command=shlex.join(["python3", f"{SHIMS}/evaluate_openevolve.py", program, given]),
        timeout=timeout * max(1, stages if scoring["cascade"] else 1) + SLACK,
        packages=packages(theirs),
        notes=(
            *too_large(folder, theirs),
            *_told_above(folder, used),
            *([NO_SCORE] if ranked else []),
            *_config_notes(place, config),
            *told_unheeded(config, system, HARMLESS | {"evaluator_args"} if "arguments" in scoring else HARMLESS),
            *told_needs({**used, **seed}, theirs),
        ),
        outside=outside,
        why_inside=why,
        requirements=requirements(theirs, evaluator),
    )


def read_skydiscover(folder: Path) -> ForeignTask | None:
    """Read the task in a folder with a container; return None if it is no such task."""
    programs = initial_programs(folder)
    inner = next((name for name in INNER if (folder / name / "evaluate.sh").is_file()), "")
    if not programs or not inner:
        return None
    config = read_config(folder)
    program = begun_with(programs, config).name
    seed = {program: file_at(folder, program)}
    recipe = read_dockerfile(files_below(folder, inner), WORKDIR)
    places = arranged(recipe, f"{VIEW}/{inner}")
    laid = {f"{inner}/{path}": file for path, file in places.files.items()}
    theirs = {**files_below(folder), **places.elsewhere, **laid}
    scripts = sorted(path for path in places.files if posixpath.basename(path) == "evaluate.sh")
    home = posixpath.normpath(f"{inner}/{posixpath.dirname(scripts[0])}") if scripts else inner
    seconds = timeout_of(config, SKYDISCOVER_TIMEOUT)
    script = theirs.get(f"{home}/evaluate.sh", (b"", 0))[0].decode(errors="replace")
    begun = {path for path in theirs if path.startswith(f"{inner}/") and posixpath.basename(path) in script}
    used = {path: theirs[path] for path in reached(theirs, begun | {f"{inner}/evaluate.sh"})}
    file = f"{inner}/evaluator.py"
    about = json.dumps({"evaluator": file, "cascade": False, "thresholds": [], "features": []})
    evaluator = theirs.get(file, (b"", 0))
    outside, why = outside_evaluator(OUTSIDE, program, evaluator, config=about)
    if b"def evaluate(" not in evaluator[0]:
        outside, why = "", "its container has no evaluator.py with evaluate(program_path)"
    given = map(json.dumps, (home, recipe.environment, seconds))
    return ForeignTask(
        system="SkyDiscover",
        name=name_of(folder),
        goal=goal_of(config, folder, seed),
        editable=(program,),
        seed=seed,
        theirs=theirs,
        command=shlex.join(["python3", f"{SHIMS}/evaluate_container.py", program, *given]),
        timeout=seconds + SLACK,
        packages=merged(packages(theirs), recipe.packages),
        links=places.links,
        notes=(
            *(*recipe.notes, *told_lost(places.lost), *told_unheeded(config, "SkyDiscover")),
            *told_needs({**used, **seed}, theirs),
        ),
        outside=outside,
        why_inside=why,
        requirements=requirements(theirs, file),
    )


def lacking(folder: Path) -> str:
    """Explain why a folder with a program or an evaluator is not a task; empty if it has neither, or is one."""
    programs, evaluators = initial_programs(folder), _evaluators(folder)
    if programs and len(evaluators) > 1:
        return f"{' and '.join(evaluators)} all evaluate; name one of them, such as {folder / evaluators[0]}"
    if programs and not evaluators:
        why = misfit(find_text(folder, "evaluator.py"))
        return f"evaluator.py {why}" if why else f"{programs[0].name} has no evaluator.py beside it"
    if programs or not evaluators:
        return ""
    if (folder / "initial_program").is_dir():
        return (
            f"its initial_program is a folder, and {evaluators[0]} is given one file: put what a script of the task "
            "makes of that folder beside it, as initial_program.txt"
        )
    return f"{evaluators[0]} has no initial_program.* beside it; where its program has another name, name that file"


# --- the program and the evaluator --------------------------------------------------------------------------------


def begun_with(programs: Sequence[Path], config: Mapping[str, Any]) -> Path:
    """Return the one of several that is evolved: of the language that the file says, else the one in Python."""
    ending = at(config, "file_suffix") or ".py"
    return next((path for path in programs if path.suffix == ending), programs[0])


def _programs(place: Path, folder: Path) -> list[Path]:
    """Return what a run may begin with: the file that the user names, unless that is a script of its own."""
    programs = initial_programs(folder)
    if not place.is_file() or _evaluates(place) or place.suffix in YAML:
        return programs
    is_script = SOURCES.search(place.name) and not blocks(file_at(folder, place.name)[0])
    return [place] if place in programs or (_is_program(place) and not is_script) else []


def initial_programs(folder: Path) -> list[Path]:
    """Return the files that a run begins with: as these systems call them, else the only one that is called alike."""
    named, alike = (
        [path for pattern in patterns for path in sorted(folder.glob(pattern)) if _is_program(path)]
        for patterns in (("initial_program.*", "initial_prompt.*"), ("initial_*", "*_initial_program.*"))
    )
    texts = [path for name in ("initial_program.md", "initial_prompt.md") if (path := folder / name).is_file()]
    return named or (alike if len(alike) == 1 else texts[:1])


def _is_program(path: Path) -> bool:
    return path.is_file() and path.suffix not in ("", ".json", ".yaml", ".yml", ".md")


def _evaluators(place: Path) -> list[str]:
    """Return what may evaluate: the file itself; else what these systems call so, or what is called alike."""
    if place.is_file() and _evaluates(place):
        return [place.name]
    folder = place.parent if place.is_file() else place
    names = ("evaluator.py", *(f"{inner}/evaluator.py" for inner in INNER))
    named = [path for path in names if (folder / path).is_file() and not misfit(find_text(folder, path))]
    return named[:1] or [path.name for path in sorted(folder.glob("*evaluat*.py")) if _evaluates(path)]


def _evaluates(file: Path) -> bool:
    text = find_text(file.parent, file.name) if "evaluat" in file.name else ""
    return EVALUATE.search(text) is not None and not misfit(text)


def misfit(text: str) -> str:
    """Return why a source has no `evaluate(program_path)` as OpenEvolve calls it: a clause; empty if it may have one.

    A source that is no Python may have one.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    inside = {node for each in ast.walk(tree) if isinstance(each, ast.ClassDef) for node in ast.walk(each)}
    nodes = [node for node in ast.walk(tree) if node not in inside]
    functions = {each.name: each for each in nodes if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}
    imported = {each.asname or each.name for each in nodes if isinstance(each, ast.alias)}
    assigned = {each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    if not (functions.keys() | imported | assigned) & {"evaluate", "evaluate_stage1", "*"}:
        return "defines no evaluate(program_path)"
    if (function := functions.get("evaluate")) is None:
        return ""
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    if not names:
        return "" if function.args.vararg else "has an evaluate() that takes no program"
    for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
        called = getattr(call.func, "attr", getattr(call.func, "id", ""))
        given = (node for value in (*call.args, *call.keywords) for node in ast.walk(value))
        if called in PATH_CALLS and any(isinstance(node, ast.Name) and node.id == names[0] for node in given):
            return ""
    is_mapping = any(
        getattr(node.value, "id", "") == names[0] and isinstance(getattr(node.slice, "value", None), str)
        for node in ast.walk(function)
        if isinstance(node, ast.Subscript)
    )
    is_value = names[0] in VALUES or is_mapping
    return f"has evaluate({names[0]}), which is not given the path of a program" if is_value else ""


def _told_above(folder: Path, used: Mapping[str, File]) -> Iterator[str]:
    """Yield the note on modules of the folder above that sources import: nothing from there comes along."""
    texts = (data.decode(errors="replace") for data, _ in used.values())
    modules = {name.partition(".")[0] for text in texts for name in IMPORTS.findall(text)} - sys.stdlib_module_names
    names = {f"{module}.py" for module in modules if module} - used.keys()
    if lacks := sorted(name for name in names if (folder.resolve().parent / name).is_file()):
        yield f"it imports {', '.join(lacks)} of the folder above, which does not come along: put a copy beside it"


# --- the configuration --------------------------------------------------------------------------------------------


def read_config(place: Path) -> dict[str, Any]:
    """Return what the file says that the user names, else the first one of the folder."""
    file = _config_file(place)
    return read_yaml(text_at(file.parent, file.name)) if file else {}


def _config_file(place: Path) -> Path | None:
    if place.is_file() and place.suffix in YAML:
        return place
    return next(iter(_configs(place.parent if place.is_file() else place)), None)


def _configs(folder: Path) -> list[Path]:
    """Return the configuration files of a folder, the plainest name first."""
    patterns = ("config.yaml", "config*.yaml", "config*.yml", "*config*.yaml", "*config*.yml")
    files = [file for glob in patterns for file in sorted(folder.glob(glob), key=lambda file: (len(file.name), file))]
    return [file for file in dict.fromkeys(files) if file.is_file()]


def _config_notes(place: Path, config: Mapping[str, Any]) -> Iterator[str]:
    several = _configs(place)
    if len(several) > 1 and several[0].name != "config.yaml":
        yield f"it is read with {several[0].name}; name another one to use that, such as {several[1]}"
    file = _config_file(place)
    text = text_at(file.parent, file.name) if file and not config else ""
    if file and any(not line.lstrip().startswith("#") for line in lines_of(text)):
        yield f"{file.name} cannot be read as YAML: none of its settings count"
    for setting in ("use_llm_feedback", "llm_as_judge"):
        if at(config, "evaluator", setting) is True:
            yield FEEDBACK.format(setting)


def _scoring(config: Mapping[str, Any], *, is_skydiscover: bool) -> dict[str, Any]:
    """Return what of a configuration the score depends on: stages, features, and the arguments of `evaluate`."""
    said = at(config, "evaluator", "cascade_thresholds")
    features = at(config, "database", "feature_dimensions")
    arguments = at(config, "evaluator", "evaluator_args")
    thresholds = said if isinstance(said, list) and said else SKYDISCOVER_THRESHOLDS if is_skydiscover else THRESHOLDS
    is_given = isinstance(arguments, dict) and arguments and not is_skydiscover
    return {
        "cascade": at(config, "evaluator", "cascade_evaluation") is not False,
        "thresholds": thresholds[:1] if is_skydiscover else thresholds,
        "features": features if isinstance(features, list) else [] if is_skydiscover else FEATURES,
        **({"arguments": arguments} if is_given else {}),
    }


def timeout_of(config: Mapping[str, Any], default: float = TIMEOUT) -> float:
    """Return the seconds of one evaluation, or of one stage of it."""
    return seconds(at(config, "evaluator", "timeout"), default)


def goal_of(config: Mapping[str, Any], folder: Path, seed: Mapping[str, File], ranked: str = "") -> str:
    """Return the system message, which number is `ranked`, and where changes belong."""
    message = _system_message(config, folder) or f"Improve the program of {folder.name}."
    program = f"The program is {', '.join(f'`{path}`' for path in seed)}. A higher `combined_score`{ranked} is better."
    return "\n\n".join(filter(None, [message.strip(), program, marked(seed)]))


def _system_message(config: Mapping[str, Any], folder: Path) -> str:
    """Return what the file says itself, or the template that it names; empty if that is one of theirs."""
    said = at(config, "prompt", "system_message") or at(config, "llm", "system_message")
    if isinstance(said, str) and " " in said.strip():
        return said
    name = said.strip() if isinstance(said, str) and said.strip() else "system_message"
    templates = Path(str(at(config, "prompt", "template_dir") or ""))
    paths = (f"{each}/{name}.txt" for each in (templates, templates.name) if templates.name)
    return next(filter(None, (find_text(folder, path) for path in paths)), "")


FORMATS = (
    Format("initial_program.* with evaluator/evaluate.sh (SkyDiscover)", read_skydiscover, 1),
    Format("initial_program.* with evaluator.py (OpenEvolve, SkyDiscover)", read_openevolve, 3, lacking),
)
