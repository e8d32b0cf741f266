"""What a task needs that its sandbox will not have, as far as its sources tell: processors, models, programs, data."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping

from evogit.adopt.foreign_task import File
from evogit.contained import joined_lines

GPU = re.compile(
    r"^[ \t]*(?:import|from)[ \t]{1,8}(triton|cupy|pycuda)\b|\b(torch\.cuda)\.(?:synchronize|Event)\b|\b(__global__)\s|"
    r"^[ \t]*from[ \t]{1,8}(numba)[ \t]{1,8}import[ \t]{1,8}cuda\b|\bdevice[ \t]{0,8}=[ \t]{0,8}[\"'](cuda)\b",
    re.MULTILINE,
)
WITHOUT = re.compile(r"\bis_available\(|^[ \t]*except (ImportError|ModuleNotFoundError)", re.MULTILINE)
"""What sources say that do without something where it is not there."""
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
DOCKER = re.compile(r"^[ \t]*(?:sudo[ \t]+)?docker[ \t]+\w", re.MULTILINE)
"""A command of a shell script."""
FETCHED = re.compile(r"[\w.-]{1,100}\.(?:csv|tsv|jsonl?|npz|npy|parquet|pkl|h5|gz|zip|txt)\b")
"""Files that a script may download."""
REQUIREMENTS = re.compile(r"(^|/)requirements[^/]*\.txt$")
CODE = re.compile(r"\.(py|sh|cu)$")
LONGEST = 60
"""Characters of a requirement that a note shows."""


def told_needs(sources: Mapping[str, File], beside: Mapping[str, File]) -> Iterator[str]:
    """What a person is told: of the sources that an evaluation runs, and of all files `beside` them."""
    code = (path for path in sources if CODE.search(path))
    texts = {path: joined_lines(sources[path][0].decode(errors="replace")) for path in code}
    if found := _first({path: text for path, text in texts.items() if not WITHOUT.search(text)}, GPU):
        yield (
            f"it seems to need a graphics processor ({found}), which its sandbox does not have; `evogit adopt` writes "
            "a task whose [sandbox] gpus asks for one (Docker)"
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
    """What is found first, and where; empty where it is nowhere."""
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
                    yield f"{path} asks for {line[:LONGEST]}: what has an address is not installed"
