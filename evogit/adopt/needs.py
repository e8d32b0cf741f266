"""What a task needs that its sandbox will not have, as far as its sources tell: processors, models, programs, data."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping

from evogit.adopt.foreign_task import File

GPU = re.compile(
    r"^\s*(?:import|from)\s+(triton|cupy|pycuda)\b|\b(torch\.cuda)\.(?:synchronize|Event)\b|\b(__global__)\s|"
    r"^\s*from\s+(numba)\s+import\s+cuda\b|\bdevice\s*=\s*[\"'](cuda)\b",
    re.MULTILINE,
)
WITHOUT = re.compile(r"\bis_available\(|^\s*except (ImportError|ModuleNotFoundError)", re.MULTILINE)
"""What sources say that do without something where it is not there."""
MODEL = re.compile(
    r"^\s*(?:import|from)\s+(openai|anthropic|litellm|dspy|google\.(?:genai|generativeai)|ollama|shinka\.llm)\b|"
    r"[\"'](\w+_API_KEY)[\"']",
    re.MULTILINE,
)
_PROGRAMS = r"docker|julia|lean|gfortran|cargo|rustc|ghc|iverilog|verilator|yosys|swiftc|wolframscript|nvcc|javac"
STARTED = re.compile(
    rf"(?:[\[(]\s*|\bjoin\([^()\n]*,\s*)[\"'](?:({_PROGRAMS})[\"']|(go)[\"'],\s*[\"'](?:run|build|test))"
)
"""A program that comes first in a list or a call, or last in a path that is put together."""
DOCKER = re.compile(r"^[ \t]*(?:sudo[ \t]+)?docker[ \t]+\w", re.MULTILINE)
"""A command of a shell script."""
FETCHED = re.compile(r"[\w.-]+\.(?:csv|tsv|jsonl?|npz|npy|parquet|pkl|h5|gz|zip|txt)\b")
"""Files that a script may download."""
REQUIREMENTS = re.compile(r"(^|/)requirements[^/]*\.txt$")
CODE = re.compile(r"\.(py|sh|cu)$")
LONGEST = 60
"""Characters of a requirement that a note shows."""


def told_needs(sources: Mapping[str, File], beside: Mapping[str, File]) -> Iterator[str]:
    """What a person is told: of the sources that an evaluation runs, and of all files `beside` them."""
    texts = {path: data.decode(errors="replace") for path, (data, _) in sources.items() if CODE.search(path)}
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
        text = data.decode(errors="replace")
        if path.endswith(".sh") and "download" in path and (lacks := sorted(set(FETCHED.findall(text)) - known)):
            named = f"{lacks[0]}{' and others' if lacks[1:] else ''}"
            yield f"{path} downloads {named}, not there yet: run it first, as there is no network in its sandbox"
        if REQUIREMENTS.search(path):
            for line in (line.strip() for line in text.splitlines()):
                if "://" in line and not line.startswith("#"):
                    yield f"{path} asks for {line[:LONGEST]}: what has an address is not installed"
