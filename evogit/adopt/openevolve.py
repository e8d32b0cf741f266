"""Reads an OpenEvolve example: `initial_program.*`, `evaluator.py` with `evaluate(program_path)`, `config.yaml`.

SkyDiscover's Python tasks are the same, with `evaluator.py` perhaps in a folder `evaluator/`.
"""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from evogit.adopt.above import above
from evogit.adopt.contracts import misfit
from evogit.adopt.foreign_task import SHIMS, File, ForeignTask, name_of, reached, told_along
from evogit.adopt.needs import told_needs
from evogit.adopt.outside import openevolve_outside
from evogit.adopt.settings import HARMLESS, told_unheeded
from evogit.adopt.sources import (
    SOURCES,
    files_below,
    marked,
    packages,
    requirements,
    shared_folder,
    too_large,
)
from evogit.adopt.yaml_text import at, read_yaml, seconds
from evogit.contained import file_at, find_text, has_file, lines_of, text_at
from evogit.source.marks import blocks

EXPECTED = "initial_program.* with evaluator.py (OpenEvolve, SkyDiscover)"
TIMEOUT = 300.0
SLACK = 30.0
"""Seconds for what is no stage, and for one that cannot be broken off at once."""
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
THRESHOLDS = (0.5, 0.75, 0.9)
"""OpenEvolve's, where the file says nothing."""
FEATURES = ("complexity", "diversity")
"""Metrics that OpenEvolve leaves out of the mean, where the file says nothing."""
SKYDISCOVER_THRESHOLDS = (0.3,)
"""SkyDiscover's, which has two stages."""
SKYDISCOVER_TIMEOUT = 360.0


def read_openevolve(place: Path) -> ForeignTask | None:
    """The task in a folder, or of a file in it that evaluates; None where it is no such example."""
    folder = place.parent if place.is_file() else place
    programs, evaluators = _programs(place, folder), _evaluators(place)
    if not programs or len(evaluators) != 1:
        return None
    is_skydiscover = "/" in evaluators[0]
    system = "SkyDiscover" if is_skydiscover else "OpenEvolve"
    config = read_config(place)
    first = begun_with(programs, config)
    program = first.name
    found = _theirs(folder, evaluators[0])
    theirs, evaluator = found.files, found.evaluator
    seed = {program: file_at(folder, program)}
    about = {
        "home": found.home,
        "evaluator": evaluator,
        **_scoring(config, is_skydiscover=is_skydiscover),
        **_standing(folder, evaluators[0]),
    }
    timeout = timeout_of(config, SKYDISCOVER_TIMEOUT if is_skydiscover else TIMEOUT)
    used = {path: file for path, file in theirs.items() if path in reached(theirs, {evaluator})}
    stages = sum(any(f"def evaluate_stage{n}".encode() in data for data, _ in used.values()) for n in (1, 2, 3))
    ranked = "" if any(b"combined_score" in data for data, _ in used.values()) else MEAN
    outside, why = openevolve_outside(program, json.dumps(about), theirs[evaluator])
    command = shlex.join(
        ["python3", f"{SHIMS}/evaluate_openevolve.py", program, json.dumps({**about, "timeout": timeout})]
    )
    return ForeignTask(
        system=system,
        name=name_of(folder),
        goal=goal_of(config, folder, seed, ranked),
        editable=(program,),
        seed=seed,
        theirs=theirs,
        command=command,
        timeout=timeout * max(1, stages if about["cascade"] else 1) + SLACK,
        packages=packages(theirs),
        notes=(
            *(*found.notes, *_notes(place, config, ranked)),
            *told_unheeded(config, system, HARMLESS | {"evaluator_args"} if "arguments" in about else HARMLESS),
            *told_needs({**used, **seed}, theirs),
        ),
        outside=outside,
        why_inside=why,
        requirements=requirements(theirs, evaluator),
    )


def _notes(place: Path, config: Mapping[str, Any], ranked: str) -> Iterator[str]:
    """What a person should know, a sentence each; `ranked` is what ranks without a `combined_score`."""
    several = [file for file in configs(place) if file.parent == place]
    if len(several) > 1 and several[0].name != "config.yaml":
        yield f"it is read with {several[0].name}; name another one to use that, such as {several[1]}"
    if ranked:
        yield NO_SCORE
    file = _config_file(place)
    if file and not config and any(not line.lstrip().startswith("#") for line in lines_of(_text(file))):
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


def _standing(folder: Path, evaluator: str) -> dict[str, str]:
    """`below`: the folder as the evaluator's relative paths name it, where they begin in a folder above."""
    text = text_at(folder, evaluator)
    parts = folder.resolve().parts[1:]
    for first in range(len(parts)):
        below = "/".join(parts[first:])
        named = re.findall(rf"[\"'](?:\./)?{re.escape(below)}/([^\"'\n]+)[\"']", text)
        if any(has_file(folder, each) for each in named):
            return {"below": below}
    return {}


class _Theirs(Struct, frozen=True):
    """What evaluates: path -> file, with the evaluator's path, and the folder in which the task lies, among them."""

    files: Mapping[str, File]
    evaluator: str
    home: str
    notes: tuple[str, ...]


def _theirs(folder: Path, evaluator: str) -> _Theirs:
    """All that an evaluator may need, with what it reaches above the task's folder where there is such."""
    files = {**files_below(folder), evaluator: file_at(folder, evaluator)}
    shared = above(folder, files, evaluator)
    home = folder.resolve().name if shared else "."
    within = {posixpath.normpath(f"{home}/{path}"): file for path, file in files.items()}
    notes = (*told_along(shared, f" of {folder.resolve().parent}"), *too_large(folder, files))
    return _Theirs({**shared, **within}, posixpath.normpath(f"{home}/{evaluator}"), home, notes)


def begun_with(programs: Sequence[Path], config: Mapping[str, Any]) -> Path:
    """The one of several that is evolved: of the language that the file says, else the one in Python."""
    ending = at(config, "file_suffix") or ".py"
    return next((path for path in programs if path.suffix == ending), programs[0])


def _programs(place: Path, folder: Path) -> list[Path]:
    """What a run may begin with: the file that a person names, unless that is a script of its own."""
    programs = initial_programs(folder)
    if not place.is_file() or _evaluates(place) or place.suffix in YAML:
        return programs
    is_script = SOURCES.search(place.name) and not blocks(file_at(folder, place.name)[0])
    return [place] if place in programs or (_is_program(place) and not is_script) else []


def initial_programs(folder: Path) -> list[Path]:
    """Files that a run of theirs begins with: as these systems call them, else the only one that is called alike."""
    named, alike = (
        [path for pattern in patterns for path in sorted(folder.glob(pattern)) if _is_program(path)]
        for patterns in (("initial_program.*", "initial_prompt.*"), ("initial_*", "*_initial_program.*"))
    )
    texts = [path for name in ("initial_program.md", "initial_prompt.md") if (path := folder / name).is_file()]
    return named or (alike if len(alike) == 1 else texts[:1])


def _is_program(path: Path) -> bool:
    return path.is_file() and path.suffix not in ("", ".json", ".yaml", ".yml", ".md")


def _evaluators(place: Path) -> list[str]:
    """What may evaluate: the file itself; else in the folder what these systems call so, or what is called alike."""
    if place.is_file() and _evaluates(place):
        return [place.name]
    folder = place.parent if place.is_file() else place
    names = ("evaluator.py", *(f"{inner}/evaluator.py" for inner in INNER))
    named = [path for path in names if (folder / path).is_file() and not misfit(find_text(folder, path))]
    return named[:1] or [path.name for path in sorted(folder.glob("*evaluat*.py")) if _evaluates(path)]


def _evaluates(file: Path) -> bool:
    text = find_text(file.parent, file.name) if "evaluat" in file.name else ""
    return EVALUATE.search(text) is not None and not misfit(text)


def lacking(folder: Path) -> str:
    """Why a folder with a program or an evaluator is no task, in a sentence; empty where it has neither, or is one."""
    programs, evaluators = initial_programs(folder), _evaluators(folder)
    if programs and len(evaluators) > 1:
        return f"{' and '.join(evaluators)} all evaluate; name one of them, such as {folder / evaluators[0]}"
    if programs and not evaluators:
        why = misfit(find_text(folder, "evaluator.py"))
        return f"evaluator.py {why}" if why else f"{programs[0].name} has no evaluator.py beside it"
    if programs:
        return ""
    return _without_program(folder, evaluators[0]) if evaluators else ""


def _without_program(folder: Path, evaluator: str) -> str:
    """Why there is nothing that a run could begin with, and what to do."""
    config = read_config(folder)
    if at(config, "language") == "image":
        return (
            "what its config.yaml has evolved are images that a model draws (language: image), which is not done here"
        )
    if resolver := at(config, "benchmark", "resolver"):
        return f"its program is made when SkyDiscover starts ({resolver}), and not there to begin with"
    if (folder / "initial_program").is_dir():
        return (
            f"its initial_program is a folder, and {evaluator} is given one file: put what a script of the task "
            "makes of that folder beside it, as initial_program.txt"
        )
    return f"{evaluator} has no initial_program.* beside it; where its program has another name, name that file"


def read_config(place: Path) -> dict[str, Any]:
    """What the file says that a person names, else the first one of the folder."""
    file = _config_file(place)
    return read_yaml(_text(file)) if file else {}


def _config_file(place: Path) -> Path | None:
    if place.is_file() and place.suffix in YAML:
        return place
    return next(iter(configs(place.parent if place.is_file() else place)), None)


def _text(file: Path) -> str:
    return text_at(file.parent, file.name)


def configs(folder: Path) -> list[Path]:
    """Configuration files of a folder, the plainest name first; at last that of the folder above."""
    patterns = ("config.yaml", "config*.yaml", "config*.yml", "*config*.yaml", "*config*.yml")
    found = [file for pattern in patterns for file in sorted(folder.glob(pattern), key=_plainness)]
    shared = shared_folder(folder)
    above = [shared / "config.yaml"] if shared else []
    return [each for each in dict.fromkeys((*found, *above)) if each.is_file()]


def _plainness(file: Path) -> tuple[int, str]:
    return len(file.name), file.name


def timeout_of(config: Mapping[str, Any], default: float = TIMEOUT) -> float:
    """Seconds of one evaluation, or of one stage of it."""
    return seconds(at(config, "evaluator", "timeout"), default)


def goal_of(config: Mapping[str, Any], folder: Path, seed: Mapping[str, File], ranked: str = "") -> str:
    """What agents are told: the system message, what is `ranked`, and where changes belong."""
    message = _system_message(config, folder) or f"Improve the program of {folder.name}."
    files = ", ".join(f"`{path}`" for path in seed)
    return "\n\n".join(
        filter(
            None,
            [message.strip(), f"The program is {files}. A higher `combined_score`{ranked} is better.", marked(seed)],
        )
    )


def _system_message(config: Mapping[str, Any], folder: Path) -> str:
    """What the file says itself, or the template that it names; empty where that is one of theirs."""
    said = at(config, "prompt", "system_message") or at(config, "llm", "system_message")
    if isinstance(said, str) and " " in said.strip():
        return said
    name = said.strip() if isinstance(said, str) and said.strip() else "system_message"
    templates = Path(str(at(config, "prompt", "template_dir") or ""))
    paths = (f"{each}/{name}.txt" for each in (templates, templates.name) if templates.name)
    return next(filter(None, (find_text(folder, path) for path in paths)), "")
