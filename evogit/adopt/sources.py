"""Reads the files of another system's task: those that count, and the packages that they need."""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from evogit.adopt.foreign_task import File, reached
from evogit.adopt.yaml_text import at
from evogit.contained import MAX_LINE_CHARS, file_at, find_text, folders_below, has_file, lines_of, toml_of
from evogit.core import ConfigError
from evogit.source.marks import END, START, blocks

LARGEST = 32 << 20
"""Bytes of files beside an evaluator, beyond which they are left out: what is larger belongs into an image."""
MAX_SOURCE_BYTES = 1 << 20
"""Bytes of a file that may name others."""
MAX_NAMED = 1000
"""Files of which it is looked for whether a source names them."""
MOST = 10_000
"""Files beside an evaluator."""
LEFT_OUT = re.compile(
    r"(^|/)(\.[^/]*|__pycache__|[^/]*_output|wandb|solution|evolved_program|venv|evogit-[^/]*)/"
    r"|(^|/)(\.(?!evogit)[^/]*|[^/]*best_program[^/]*)$"
)
"""Paths that no evaluator needs, and solutions, which no candidate may find."""
NEVER = re.compile(r"(^|/)(\.git|__pycache__)(/|$)")
"""Paths that are never taken, whatever a format says."""
UNLESS_NAMED = re.compile(
    r"(^|/)(?P<folder>outputs?|results?(_[^/]*)?|checkpoints?|logs?)/"
    r"|(^|/)(README[^/]*|LICENSE[^/]*|[^/]*(?P<ending>\.(png|jpe?g|gif|pdf|sqlite|db|log)))$"
)
"""Paths of what runs leave behind, and of what people read: left out where no source names them."""
STAND_INS = frozenset({"alpha_evolve", "openevolve", "shinka", "skydiscover"})
PACKAGES = {
    "Crypto": "pycryptodome",
    "PIL": "Pillow",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "pywt": "PyWavelets",
    "rewardkit": "harbor-rewardkit",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "PyYAML",
}
"""Module -> the package that has it, where they are called differently."""
_NAMES = """
aiohttp attrs beautifulsoup4 catboost cloudpickle cma contourpy cryptography cvxpy cython datasets deap dill
einops fastapi flask galois gmpy2 h5py harbor-rewardkit highspy httpx hypothesis imageio jax jaxlib joblib lightgbm lxml
matplotlib mip mpmath msgpack networkx nevergrad nltk numba numexpr numpy openai opencv-python-headless openpyxl
optax optuna ortools pandas Pillow plotly polars psutil pulp pyarrow pycryptodome pydantic pykalman pymoo pytest
pytest-asyncio python-dateutil python-dotenv PyWavelets PyYAML rapidfuzz regex requests rich scikit-image
scikit-learn scipy seaborn shapely sortedcontainers statsmodels sympy tabulate tiktoken torch torchvision tqdm
transformers uvicorn xgboost
"""
KNOWN = frozenset(_NAMES.split())
"""Packages that are meant where a module of that name is imported and no file asks for it.

Any other name is left alone: whoever registered it may not be whom the author means.
"""
COMMON = frozenset({"networkx", "numpy", "pandas", "scipy", "sklearn", "sympy", "yaml"})
"""Modules that are there with other systems as a rule, so that even a guarded import of them works there."""
IMPORTED = re.compile(
    r"[ \t]*(?:from[ \t]{1,8}([A-Za-z_]\w*)(?:\.\w+)*[ \t]{1,8}import[ \t(][\w*, \t\\(]*|"
    r"import[ \t]{1,8}([A-Za-z_]\w*)(?:\.\w+)*(?:[ \t]{1,8}as[ \t]{1,8}\w+)?[ \t]*)(?:#.*)?"
)
"""An import that takes a line of its own."""
SOURCES = re.compile(r"\.(py|[rR]|rs|c|cc|cpp|cxx|h|hpp|sh|bash|jl|go|[cm]?js|ts|rb|pl|lua|java)$")
"""How names of sources end."""


def files_below(root: Path, below: str = "") -> dict[str, File]:
    """Path -> file of all that an evaluator may need of a task's folder, or of one `below` it.

    Files that are too large and those that runs left behind are passed over.
    """
    names = list(_walk(root, below, LEFT_OUT))
    folder, room = (root / below).resolve(), [MAX_NAMED]
    sources = "\n".join(find_text(folder, name, MAX_SOURCE_BYTES) for name in names if not UNLESS_NAMED.search(name))
    return _fitting(folder, [name for name in names if _is_meant(name, sources, room)])


def all_below(root: Path, below: str = "") -> dict[str, File]:
    """Path -> file of all in a task's folder, or in one `below` it, as far as it is not too large."""
    return _fitting((root / below).resolve(), _walk(root, below, NEVER))


def too_large(root: Path, files: Mapping[str, File]) -> tuple[str, ...]:
    """A sentence for a person where files of a folder are not among those taken, as they are too large."""
    return _told([name for name in _walk(root, "", LEFT_OUT) if name not in files and not UNLESS_NAMED.search(name)])


def too_large_of_all(root: Path, below: str, files: Mapping[str, File]) -> tuple[str, ...]:
    """The same where all files are to be taken."""
    return _told([name for name in _walk(root, below, NEVER) if name not in files])


def _told(missing: Sequence[str]) -> tuple[str, ...]:
    if not missing:
        return ()
    named = ", ".join(missing[:3]) + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")
    return (f"{named}: left out, as no more than {LARGEST >> 20} MB and {MOST} files come along with a task",)


def _fitting(folder: Path, names: Iterable[str]) -> dict[str, File]:
    """The files of these that there is room for."""
    files: dict[str, File] = {}
    room = LARGEST
    for name in names:
        if len(files) < MOST:
            with suppress(ConfigError):  # it is larger than the room that is left
                files[name] = file_at(folder, name, room)
                room -= len(files[name][0])
    return files


def _is_meant(name: str, sources: str, room: list[int]) -> bool:
    """Return whether an evaluator may need the file; `room` limits the files that are searched for."""
    match = UNLESS_NAMED.search(name)
    if match is None or room[0] <= 0:
        return match is None
    room[0] -= 1
    words = match["folder"] or match["ending"], name.rpartition("/")[2]
    return any(word in sources and re.search(rf"(?<![\w-]){re.escape(word)}(?!\w)", sources) for word in words if word)


def _walk(root: Path, inside: str, without: re.Pattern[str]) -> Iterator[str]:
    """Yield the paths of what is not left out, in order; links that may not be followed are passed over.

    Nothing is below a folder that is hidden, or that a link stands for.
    """
    folder, top = (root / inside).resolve(), root.resolve()
    if folder != Path(os.path.normpath(top / inside)) or not folder.is_relative_to(top):
        return
    if any(name.startswith(".") for name in folder.relative_to(top).parts):
        return
    for below, folders, files in folders_below(folder):
        folders[:] = [name for name in folders if not without.search(f"{below}{name}/")]
        names = (below + name for name in files)
        yield from (name for name in names if not without.search(name) and has_file(folder, name))


def shared_folder(folder: Path) -> Path | None:
    """Return the folder above, in which tasks have what they share; None where that is none of the task's author's.

    The home of the user, folders above it, and what is around a repository are the user's own.
    """
    task, home = folder.resolve(), Path.home().resolve()
    is_own = home.is_relative_to(task.parent) or (task / ".git").exists()
    return None if is_own else task.parent


def packages(files: Mapping[str, File], *, listed: bool = True) -> tuple[str, ...]:
    """What requirements files ask for if they are `listed` for that, and what the Python files import beside it."""
    lists = (data for path, (data, _) in files.items() if listed and re.search(r"(^|/)requirements[^/]*\.txt$", path))
    asked = {name: text for data in lists for name, text in requirements_of(data)}
    trees = list(_trees(files))
    modules = (_needed(trees) | _written(trees)) - _local(files) - STAND_INS
    for module in sorted(modules):
        name = PACKAGES.get(module, module)
        if name in KNOWN:
            asked.setdefault(normal(name), name)
    return tuple(asked[name] for name in sorted(asked))


def requirements(files: Mapping[str, File], evaluator: str) -> tuple[str, ...]:
    """Names of the packages that an evaluator imports, by itself or through what lies beside it."""
    used = {path: file for path, file in files.items() if path in reached(files, {evaluator})}
    modules = imported(used) - _local(files) - STAND_INS
    return tuple(sorted(PACKAGES.get(module, module) for module in modules))


def requirements_of(data: bytes) -> Iterator[tuple[str, str]]:
    """The normal name of each requirement in a list or in a pyproject.toml, and what it says."""
    text = data.decode(errors="replace")
    with suppress(ValueError):
        found = at(toml_of(text), "project", "dependencies")
        text = "\n".join(map(str, found)) if isinstance(found, list) else ""
    for line in re.sub(r"\\\r?\n", " ", text).splitlines():
        yield from requirement(line)


def requirement(line: str) -> Iterator[tuple[str, str]]:
    """The normal name of a requirement, and what it says; nothing for options, addresses, comments and stand-ins."""
    text = re.sub(r"(^|\s)(#|--\w).*", "", line[:MAX_LINE_CHARS]).strip()
    match = re.match(r"[A-Za-z0-9][\w.-]*", text)
    if (
        match
        and not re.search(r"[/@]", text)
        and normal(match[0]) not in ("python", "openevolve", "shinka", "shinka-evolve", "skydiscover")
    ):
        yield normal(match[0]), text


def has_version(asked: str) -> bool:
    """Whether a requirement says a version."""
    return re.search(r"[=<>~!]", asked.partition(";")[0]) is not None


def merged(*requirements: tuple[str, ...]) -> tuple[str, ...]:
    """All of these packages, each once: as the first one that says a version asks for it, else the first one."""
    found: dict[str, str] = {}
    for text in (text for each in requirements for text in each):
        for name, asked in requirement(text):
            if name not in found or (has_version(asked) and not has_version(found[name])):
                found[name] = asked
    return tuple(found[name] for name in sorted(found))


def normal(name: str) -> str:
    """The name of a package as pip compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _local(files: Mapping[str, File]) -> set[str]:
    """Names of modules that lie among the files."""
    return {part.removesuffix(".py") for path in files for part in path.split("/")}


def imported(files: Mapping[str, File]) -> set[str]:
    """Top-level names of the modules beyond the standard library that the files cannot do without."""
    return _needed(list(_trees(files)))


def _needed(trees: Iterable[ast.Module]) -> set[str]:
    return {name for tree in trees for name in _imports(tree)} - sys.stdlib_module_names


def _written(trees: Iterable[ast.Module]) -> set[str]:
    """Modules that programs import which the files hold as texts, to write and start them."""
    constants = (node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant))
    texts = (value for value in constants if isinstance(value, str) and "\n" in value)
    matches = (match for text in texts for line in lines_of(text) if (match := IMPORTED.fullmatch(line)))
    return {match[1] or match[2] for match in matches} - sys.stdlib_module_names


def _trees(files: Mapping[str, File]) -> Iterator[ast.Module]:
    for path, (data, _) in files.items():
        if path.endswith(".py"):
            with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
                yield ast.parse(data)


def _imports(tree: ast.Module) -> Iterator[str]:
    left: list[tuple[ast.AST, bool]] = [(tree, False)]
    while left:
        node, guarded = left.pop()
        names: Iterable[str] = ()
        if isinstance(node, ast.Import):
            names = (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = (node.module or "",)
        tops = (name.partition(".")[0] for name in names)
        yield from (top for top in tops if not guarded or top in COMMON)
        left += [(child, guarded or isinstance(node, ast.Try)) for child in ast.iter_child_nodes(node)]


def marked(seed: Mapping[str, File]) -> str:
    """A sentence for agents where a seed marks what may change; empty where it does not."""
    if any(blocks(data) for data, _ in seed.values()):
        return f"Only what stands between the lines with {START} and {END} may change; leave these lines in place."
    return ""
