"""Notes on another system's task: what its sandbox lacks, what is not heeded, what its evaluator admits."""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from evogit.adopt.foreign_task import File, kept_folder
from evogit.config import Task
from evogit.contained import joined_lines
from evogit.text import one_line

GPU = re.compile(
    r"^[ \t]*(?:import|from)[ \t]{1,8}(triton|cupy|pycuda)\b|\b(torch\.cuda)\.(?:synchronize|Event)\b|\b(__global__)\s|"
    r"^[ \t]*from[ \t]{1,8}(numba)[ \t]{1,8}import[ \t]{1,8}cuda\b|\bdevice[ \t]{0,8}=[ \t]{0,8}[\"'](cuda)\b",
    re.MULTILINE,
)
WITHOUT = re.compile(r"\bis_available\(|^[ \t]*except (ImportError|ModuleNotFoundError)", re.MULTILINE)
"""Words of a source that works without a missing module."""
MODEL = re.compile(
    r"^[ \t]*(?:import|from)[ \t]{1,8}"
    r"(openai|anthropic|litellm|dspy|google\.(?:genai|generativeai)|ollama|shinka\.llm)\b|"
    r"[\"'](\w{1,80}_API_KEY)[\"']",
    re.MULTILINE,
)
_PROGRAMS = r"docker|julia|lean|gfortran|cargo|rustc|ghc|iverilog|verilator|yosys|swiftc|wolframscript|nvcc|javac"
STARTED = re.compile(
    rf"(?:[\[(]\s{{0,40}}|\bjoin\([^()\n]{{0,200}},\s{{0,40}})"
    rf"[\"'](?:({_PROGRAMS})[\"']|(go)[\"'],\s{{0,40}}[\"'](?:run|build|test))"
)
"""A program that comes first in a list or a call, or last in a path that is put together."""
DOCKER = re.compile(r"^[ \t]*(?:sudo[ \t]+)?docker[ \t]+\w", re.MULTILINE)  # a command of a shell script
FETCHED = re.compile(r"[\w.-]{1,100}\.(?:csv|tsv|jsonl?|npz|npy|parquet|pkl|h5|gz|zip|txt)\b")
"""Files that a script may download."""
REQUIREMENTS = re.compile(r"(^|/)requirements[^/]*\.txt$")
CODE = re.compile(r"\.(py|sh|cu)$")
MAX_REQUIREMENT_CHARS = 60  # characters of a requirement that a note shows
SCORE = re.compile(
    r"(^|_)(scor(es?|er|ing)|metrics?|fitness|objectives?|rewards?|direction|aggregat\w*|(min|max)imi[sz]\w*|"
    r"is_better|penalt(y|ies)|normali[sz]\w*|judge|evaluators?)(_|$)"
)
"""Names of settings that tell how a score comes about."""
EVALUATORS = ("evaluator", "evaluation", "verifier")  # sections in which every setting may change a score
OTHERS = ("llm", "prompt", "models", "agent", "environment", "metadata", "solution", "task")
"""Sections that are not about scores."""
MAX_SHOWN = 5
_HARMLESS = """
timeout max_retries memory_limit_mb cpu_limit parallel_evaluations distributed cascade_evaluation cascade_thresholds
use_llm_feedback llm_feedback_weight llm_as_judge enable_artifacts max_artifact_storage evaluation_file file_suffix
is_image_mode inject_evaluator_context early_stopping_metric diversity_metric
"""
HARMLESS = frozenset(_HARMLESS.split())
"""Settings of OpenEvolve and SkyDiscover that are heeded, have a note of their own, or change no score."""

_VERIFIER = """
timeout_sec env user environment_mode environment collect network_mode allow_internet allowed_hosts max_timeout_sec
multi_step_reward_strategy
"""
VERIFIER = frozenset(_VERIFIER.split())  # the same of Harbor's [verifier]
MAX_ADMITTED_CHARS = 200  # characters of it that are shown
_SPEAKS = r"\w{0,40}?(?:error|traceback|timeout|crash)\w{0,40}|failure(?:_(?:reason|stage))?"
ADMITTED = re.compile(
    rf"^(?:\[(?P<name>{_SPEAKS})\][ \t]+|\[(?P<block>{_SPEAKS})\]\n|(?P<same>error|traceback):[ \t]+|"
    r"(?:\[\w+\]|\w+:)[ \t]+\{[\"'](?P<key>error)[\"']:[ \t]+[\"'])"
    r"(?!(?:none|no|null|false|0|\d+(?:\.\d+)?|[\[{(][\])}])$)(?P<said>\S.*(?(block)(?:\n(?!\[|{\").+){0,9}))$",
    re.MULTILINE | re.IGNORECASE,
)
"""Marks of an artifact or a text metric that reports a failure, as stand-ins print them."""
TRACEBACK = re.compile(
    r"^(?:\w+:[ \t]+)?Traceback \(most recent call last\):\n(?:[ \t].*\n)+(?P<said>\w[\w.]*(?:: .*)?)$", re.MULTILINE
)
"""An error as Python prints it."""


def told_needs(sources: Mapping[str, File], beside: Mapping[str, File]) -> Iterator[str]:
    """Return notes about the sources that an evaluation runs, and all files `beside` them."""
    code = (path for path in sources if CODE.search(path))
    texts = {path: joined_lines(sources[path][0].decode(errors="replace")) for path in code}
    if found := _first({path: text for path, text in texts.items() if not WITHOUT.search(text)}, GPU):
        yield (
            f"it seems to need a graphics processor ({found}), which its sandbox does not have; `evogit new --from` "
            "writes a task whose [sandbox] gpus asks for one (Docker)"
        )
    if found := _first(texts, MODEL):
        yield f"it seems to ask a language model ({found}): its sandbox has neither a network nor keys"
    programs = {next(filter(None, match)) for text in texts.values() for match in STARTED.findall(text)}
    if "docker" in programs or any(path.endswith(".sh") and DOCKER.search(text) for path, text in texts.items()):
        yield "it starts docker, which no sandbox has"
    for program in sorted(programs - {"docker"}):
        if shutil.which(program) is None:
            yield f"it starts {program}, which bubblewrap takes from this machine, and which is not there"
    yield from _told_missing(beside)


def _first(texts: Mapping[str, str], pattern: re.Pattern[str]) -> str:
    """Return the first match and its place; empty if there is none."""
    matches = ((path, match) for path, text in texts.items() if (match := pattern.search(text)))
    return next((f"{next(filter(None, match.groups()))} in {path}" for path, match in matches), "")


def _told_missing(files: Mapping[str, File]) -> Iterator[str]:
    """Data that a script would download, and packages that have an address instead of a name."""
    known = {path.rpartition("/")[2] for path in files}
    for path, (data, _) in files.items():
        if not (path.endswith(".sh") and "download" in path or REQUIREMENTS.search(path)):
            continue
        text = joined_lines(data.decode(errors="replace"))
        if path.endswith(".sh") and "download" in path and (lacks := sorted(set(FETCHED.findall(text)) - known)):
            named = f"{lacks[0]}{' and others' if lacks[1:] else ''}"
            yield f"{path} downloads {named}, not there yet: run it first, as there is no network in its sandbox"
        if REQUIREMENTS.search(path):
            for line in (line.strip() for line in text.splitlines()):
                if "://" in line and not line.startswith("#"):
                    yield f"{path} asks for {line[:MAX_REQUIREMENT_CHARS]}: what has an address is not installed"


def told_unheeded(config: Mapping[str, Any], system: str, known: Collection[str] = HARMLESS) -> Iterator[str]:
    """Yield the note about settings that may change a score and are none of those that are known."""
    tables = {"": config, **{f"{name}.": value for name, value in config.items() if isinstance(value, dict)}}
    settings = []
    for section, table in tables.items():
        every = section.rstrip(".") in EVALUATORS
        for name, value in table.items() if section.rstrip(".") not in OTHERS else ():
            is_known = name in (*known, *EVALUATORS, *OTHERS) or value in (None, {}, [])
            if not is_known and (every or SCORE.search(name.lower())):
                settings.append(f"{section}{name}")
    if settings:
        more = f" and {len(settings) - MAX_SHOWN} more" if len(settings) > MAX_SHOWN else ""
        yield (
            f"its configuration sets {', '.join(sorted(settings)[:MAX_SHOWN])}{more}, which EvoGit does not know: if "
            f"that changes the score in {system}, the score here is another one"
        )


def is_scored(task: Task) -> bool:
    """Return True if another system's evaluator scores the task, so that a score may be a failure's."""
    return task.folder.is_relative_to(kept_folder()) and task.primary.name == "combined_score"


def admitted(text: str) -> str:
    """The failure that what an evaluation printed tells of, such as `error: no cargo here`; empty where it is none."""
    text = joined_lines(text)
    found, printed = ADMITTED.search(text), TRACEBACK.search(text)
    if found and not found["said"].startswith("Traceback ("):
        name, said = found["name"] or found["block"] or found["same"] or found["key"], " ".join(found["said"].split())
    elif printed:
        name, said = "traceback", printed["said"]
    else:
        return ""
    said = one_line(said, MAX_ADMITTED_CHARS)
    return f"the score of the seed may be that of a failure: the evaluator says {name}: {said}"
