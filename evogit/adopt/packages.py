"""The Python packages that a task needs: those its lists name, its files import, and its shell scripts install."""

from __future__ import annotations

import ast
import posixpath
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from msgspec import Struct

from evogit.adopt.foreign_task import File, reached
from evogit.adopt.sources import at
from evogit.contained import MAX_LINE_CHARS, joined_lines, lines_of, toml_of

STAND_INS = frozenset({"openevolve", "shinka", "skydiscover"})
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
_VALUED = """
-b -c -C -f -i -o -p -P -r -t -w --abi --branch --build-constraints --cache-dir --color --config-file --config-setting
--config-settings --constraint --constraints --default-index --directory --editable --env-file --exclude-newer --extra
--extra-index-url --find-links --from --group --implementation --index --index-strategy --index-url --keyring-provider
--link-mode --marker --no-binary --only-binary --only-group --optional --override --overrides --package --platform
--prefix --prerelease --project --prompt --proxy --python --python-platform --python-version --requirement
--requirements --resolution --retries --rev --root --script --spec --tag --target --timeout --torch-backend
--trusted-host --upgrade-package --with --with-editable --with-requirements
"""
VALUED = frozenset(_VALUED.split())  # options of these programs that a value follows
LISTS = ("-r", "--requirement", "--requirements", "--with-requirements")
"""Options that a file with requirements follows."""
_TOOLS = "bandit black codespell coverage flake8 isort mypy nox pylint pyright radon ruff tox vulture yapf"
TOOLS = frozenset(re.sub(r"[-_.]+", "-", name).lower() for name in (*KNOWN, *_TOOLS.split()))
"""Programs whose package is called the same; somebody else may have registered any other name."""
LEADING = re.compile(r"\w+=.*|sudo|env|exec|time|command|if|then|else|do|while|!|\(|\{")
"""Words that may stand before a command."""


def packages(files: Mapping[str, File], *, listed: bool = True) -> tuple[str, ...]:
    """Return what requirements files ask for, if they are `listed` for that, and what the Python files import."""
    lists = (data for path, (data, _) in files.items() if listed and re.search(r"(^|/)requirements[^/]*\.txt$", path))
    asked = {name: text for data in lists for name, text in requirements_of(data)}
    for module in sorted((imported(files) | _written(files)) - _local(files) - STAND_INS):
        name = PACKAGES.get(module, module)
        if name in KNOWN:
            asked.setdefault(normal(name), name)
    return tuple(asked[name] for name in sorted(asked))


def requirements(files: Mapping[str, File], evaluator: str) -> tuple[str, ...]:
    """Return the names of the packages that an evaluator imports, by itself or through what lies beside it."""
    paths = reached(files, {evaluator})
    used = {path: file for path, file in files.items() if path in paths}
    modules = imported(used) - _local(files) - STAND_INS
    return tuple(sorted(PACKAGES.get(module, module) for module in modules))


def requirements_of(data: bytes) -> Iterator[tuple[str, str]]:
    """Yield the normal name of each requirement in a list or in a pyproject.toml, and its text."""
    text = data.decode(errors="replace")
    with suppress(ValueError):
        found = at(toml_of(text), "project", "dependencies")
        text = "\n".join(map(str, found)) if isinstance(found, list) else ""
    for line in re.sub(r"\\\r?\n", " ", text).splitlines():
        yield from requirement(line)


def requirement(line: str) -> Iterator[tuple[str, str]]:
    """Yield the normal name of a requirement, and its text; nothing for options, addresses, comments and stand-ins."""
    text = re.sub(r"(^|\s)(#|--\w).*", "", line[:MAX_LINE_CHARS]).strip()
    match = re.match(r"[A-Za-z0-9][\w.-]*", text)
    if match and not re.search(r"[/@]", text) and normal(match[0]) not in ("python", "shinka-evolve", *STAND_INS):
        yield normal(match[0]), text


def has_version(asked: str) -> bool:
    """Return whether a requirement has a version."""
    return re.search(r"[=<>~!]", asked.partition(";")[0]) is not None


def merged(*requirements: tuple[str, ...]) -> tuple[str, ...]:
    """Return all of these packages, each once: as the first one with a version asks for it, else the first one."""
    found: dict[str, str] = {}
    for text in (text for each in requirements for text in each):
        for name, asked in requirement(text):
            if name not in found or (has_version(asked) and not has_version(found[name])):
                found[name] = asked
    return tuple(found[name] for name in sorted(found))


def normal(name: str) -> str:
    """Return the name of a package as pip compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _local(files: Mapping[str, File]) -> set[str]:
    """Return the names of modules that lie among the files."""
    return {part.removesuffix(".py") for path in files for part in path.split("/")}


def imported(files: Mapping[str, File]) -> set[str]:
    """Return the top-level names of the modules beyond the standard library that the files cannot do without."""
    return {name for tree in _trees(files) for name in _imports(tree)} - sys.stdlib_module_names


def _written(files: Mapping[str, File]) -> set[str]:
    """Return the modules that programs import which the files hold as texts, to write and start them."""
    nodes = (node for tree in _trees(files) for node in ast.walk(tree) if isinstance(node, ast.Constant))
    texts = (node.value for node in nodes if isinstance(node.value, str) and "\n" in node.value)
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


# --- what shell scripts install ------------------------------------------------------------------------------------


class _Command(Struct, frozen=True):
    """A command of pip, uv, uvx or pipx: its program, its verb, options with values, and the other words."""

    program: str
    verb: tuple[str, ...]
    options: Sequence[tuple[str, str]]
    names: Sequence[str]

    @property
    def packages(self) -> Iterator[str]:
        """The packages that it installs or runs with; what is run is not among them."""
        if self.verb[-1:] in (("install",), ("add",)):
            yield from self.names
        for option, value in self.options if self.program != "pip" else ():
            if option in ("-w", "--with", "--from", "--spec"):
                yield from re.split(r",(?=\s*[A-Za-z])(?![^\[]*\])", value)

    @property
    def tool(self) -> str:
        """The program that it runs, if that is a package's of the same name; else empty."""
        runs = self.program == "uvx" or (self.program, self.verb) in (("uv", ("tool", "run")), ("pipx", ("run",)))
        named = any(option in ("--from", "--spec") for option, _ in self.options)
        tool = self.names[0] if runs and self.names and not named else ""
        return "" if re.search(r"[/$]|^(python|bash|sh)[\d.]*$|\.py$", tool) else tool


def _installers(script: str) -> Iterator[_Command]:
    """Yield the commands of a shell script that install or run packages."""
    for given in commands(script):
        program = posixpath.basename(given[0])
        pip = next((at for at, word in enumerate(given) if re.fullmatch(r"(.*/)?pip[\d.]*", word)), len(given))
        if program in ("echo", "printf"):
            continue
        if "install" in given[pip:]:
            yield _Command("pip", ("install",), *_parsed(given[given.index("install", pip) + 1 :]))
        elif program in ("uv", "uvx", "pipx"):
            words = _parsed(given[1:], 2)[1] if program != "uvx" else []
            verb = tuple(words if words[:1] == ["tool"] else words[:1])
            runs = program == "uvx" or verb[-1:] == ("run",)
            options, names = _parsed(given[1:], len(verb) + 1 if runs else None)
            yield _Command(program, verb, options, names[len(verb) :])


def installed(script: str) -> Iterator[tuple[str, str]]:
    """Yield normal name -> requirement that a shell script installs with pip or uv, or runs its programs with."""
    for command in _installers(script):
        yield from _requirements(command.packages)
        yield from (asked for asked in _requirements([command.tool]) if asked[0] in TOOLS)


def lists(script: str) -> Iterator[str]:
    """Yield the paths of the files with what it installs: requirements, and pyproject.toml of a project."""
    for command in _installers(script):
        yield from (value for option, value in command.options if option in LISTS)
        folders = [word.partition("[")[0] for word in (*command.names, *(value for _, value in command.options))]
        folders += ["."] if command.verb == ("sync",) else []
        yield from (posixpath.join(folder, "pyproject.toml") for folder in folders if re.match(r"[./]", folder))


def told_unknown(script: str) -> Iterator[str]:
    """Yield a note on each program that it runs with uvx if it is not known whose it is."""
    tools: dict[str, None] = {}
    for command in _installers(script):
        known = TOOLS.union(name for name, _ in _requirements(command.packages))
        tools |= dict.fromkeys(name for name, _ in _requirements([command.tool]) if name not in known)
    for name in tools:
        yield f"it runs `uvx {name}` without a package that is known (`--from`): none is installed for it"


def debian(script: str) -> Iterator[str]:
    """Yield the names of the Debian packages that it installs."""
    for given in commands(script):
        if posixpath.basename(given[0]) in ("apt", "apt-get") and "install" in given:
            yield from _parsed(given[given.index("install") + 1 :])[1]


def commands(script: str) -> Iterator[list[str]]:
    """Yield the words of each command, without comments, redirections, and what may stand before it."""
    for command in (part for text in statements(script) for part in text.split("|")):
        found = words(re.sub(r"(?<!\S)\d?>>?\s*[^\s=<>]+|(?<!\S)\d>&\d", "", command))
        begin = next((at for at, word in enumerate(found) if not LEADING.fullmatch(word)), len(found))
        if found[begin:]:
            yield found[begin:]


def statements(script: str) -> Iterator[str]:
    """Yield each command, or commands that are piped into each other, without comments."""
    plain = re.sub(r"(?m)(^|\s)#.*$", "", joined_lines(script.replace("\\\n", " ")))
    yield from (text.strip() for text in re.split(r"&&|\|\||[;\n]", plain) if text.strip())


def words(text: str) -> list[str]:
    """Return the words of a command, also if its quotes do not match."""
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _parsed(given: Sequence[str], most: int | None = None) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the options with their values, and the other words, up to as many as `most`: the rest is not ours."""
    options, found = list[tuple[str, str]](), list[str]()
    left = iter(given)
    for word in left:
        name, joined, value = word.partition("=")
        if word.startswith("-"):
            options.append((name, value if joined or name not in VALUED else next(left, "")))
        else:
            found.append(word)
        if len(found) == most:
            break
    return options, found


def _requirements(named: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield normal name -> requirement of each package; uv writes `name@version`."""
    for text in named:
        match = re.fullmatch(r"([\w.-]+(?:\[[\w,.-]+\])?)@([\w.!+-]+)", text)
        plain = text if not match else match[1] if match[2] == "latest" else f"{match[1]}=={match[2]}"
        yield from requirement(plain)
