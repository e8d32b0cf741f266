"""Which packages a shell script installs, or runs its programs with: pip, uv, uvx, pipx and apt-get.

Also where it makes virtual environments.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence

from evogit.adopt.sources import KNOWN, requirement
from evogit.contained import joined_lines

_VALUED = """
-b -c -C -f -i -o -p -P -r -t -w --abi --branch --build-constraints --cache-dir --color --config-file --config-setting
--config-settings --constraint --constraints --default-index --directory --editable --env-file --exclude-newer --extra
--extra-index-url --find-links --from --group --implementation --index --index-strategy --index-url --keyring-provider
--link-mode --marker --no-binary --only-binary --only-group --optional --override --overrides --package --platform
--prefix --prerelease --project --prompt --proxy --python --python-platform --python-version --requirement
--requirements --resolution --retries --rev --root --script --spec --tag --target --timeout --torch-backend
--trusted-host --upgrade-package --with --with-editable --with-requirements
"""
VALUED = frozenset(_VALUED.split())
"""Options of these programs that a value follows."""
LISTS = ("-r", "--requirement", "--requirements", "--with-requirements")
"""Options that a file with requirements follows."""
_TOOLS = "bandit black codespell coverage flake8 isort mypy nox pylint pyright radon ruff tox vulture yapf"
TOOLS = frozenset(name for each in (*KNOWN, *_TOOLS.split()) for name, _ in requirement(each))
"""Programs whose package is called the same; somebody else may have registered any other name."""
LEADING = re.compile(r"\w+=.*|sudo|env|exec|time|command|if|then|else|do|while|!|\(|\{")
"""Words that may stand before a command."""
ALL = 1 << 30


def installed(script: str) -> Iterator[tuple[str, str]]:
    """Normal name -> requirement that a shell script installs with pip or uv, or runs its programs with."""
    for given in commands(script):
        program = posixpath.basename(given[0])
        pip = next((at for at, word in enumerate(given) if re.fullmatch(r"(.*/)?pip[\d.]*", word)), len(given))
        if program in ("echo", "printf"):
            continue
        if "install" in given[pip:]:
            yield from _all(_parsed(given[given.index("install", pip) + 1 :])[1])
        elif program in ("uv", "uvx", "pipx"):
            yield from _all(_named(program, given[1:]))
            tool = _tool(program, given[1:])
            yield from (each for each in _all([tool]) if each[0] in TOOLS)


def lists(script: str) -> Iterator[str]:
    """Paths of the files that tell what it installs: requirements, and pyproject.toml of a project."""
    for given in commands(script):
        program = posixpath.basename(given[0])
        options, found = _parsed(given[1:])
        if program not in ("echo", "printf") and ("install" in found or program in ("uv", "uvx")):
            yield from (value for option, value in options if option in LISTS)
            folders = [word.partition("[")[0] for word in (*found, *(value for _, value in options))]
            folders += ["."] if "sync" in found else []
            yield from (posixpath.join(folder, "pyproject.toml") for folder in folders if re.match(r"[./]", folder))


def told_unknown(script: str) -> Iterator[str]:
    """What a person is told of each program that it runs with uvx where it is not known whose it is."""
    found: dict[str, None] = {}
    for given in commands(script):
        program = posixpath.basename(given[0])
        if program in ("uv", "uvx", "pipx"):
            known = TOOLS.union(name for name, _ in _all(_named(program, given[1:])))
            found |= dict.fromkeys(name for name, _ in _all([_tool(program, given[1:])]) if name not in known)
    for name in found:
        yield f"it runs `uvx {name}` without a package that is known (`--from`): none is installed for it"


def debian(script: str) -> Iterator[str]:
    """Names of the Debian packages that it installs."""
    for given in commands(script):
        if given[0] in ("apt-get", "apt") and "install" in given:
            yield from _parsed(given[given.index("install") + 1 :])[1]


def virtual(script: str) -> Iterator[str]:
    """Folders of the virtual environments that it makes."""
    for given in commands(script):
        program = posixpath.basename(given[0])
        if re.fullmatch(r"python[\d.]*", program) and given[1:3] == ["-m", "venv"]:
            yield from _parsed(given[3:])[1]
        elif program == "virtualenv":
            yield from _parsed(given[1:])[1]
        elif program == "uv" and _verb(program, given[1:]) == ("venv",):
            yield from _parsed(given[1:])[1][1:] or [".venv"]


def commands(script: str) -> Iterator[list[str]]:
    """The words of each command, without comments, redirections, and what may stand before it."""
    for command in (part for text in statements(script) for part in text.split("|")):
        found = words(re.sub(r"(?<!\S)\d?>>?\s*[^\s=<>]+|(?<!\S)\d>&\d", "", command))
        begin = next((at for at, word in enumerate(found) if not LEADING.fullmatch(word)), len(found))
        if found[begin:]:
            yield found[begin:]


def statements(script: str) -> Iterator[str]:
    """Each command, or commands that are piped into each other, without comments."""
    plain = re.sub(r"(?m)(^|\s)#.*$", "", joined_lines(script.replace("\\\n", " ")))
    yield from (text.strip() for text in re.split(r"&&|\|\||[;\n]", plain) if text.strip())


def words(text: str) -> list[str]:
    """The words of a command, also where its quotes do not match."""
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _named(program: str, given: Sequence[str]) -> Iterator[str]:
    """The packages that a command of uv, uvx or pipx names."""
    verb = _verb(program, given)
    options, found = _parsed(given, len(verb) + 1 if verb[-1:] in ((), ("run",)) else ALL)
    for option, value in options:
        if option in ("-w", "--with", "--from", "--spec"):
            yield from re.split(r",(?=\s*[A-Za-z])(?![^\[]*\])", value)
    if verb in (("add",), ("tool", "install"), ("install",)):
        yield from found[len(verb) :]


def _tool(program: str, given: Sequence[str]) -> str:
    """What a command of uvx (`uv tool run`, `pipx run`) runs, where it is a package's of the same name; else empty."""
    verb = _verb(program, given)
    if program == "uv" and verb != ("tool", "run") or program == "pipx" and verb != ("run",):
        return ""
    options, found = _parsed(given, len(verb) + 1)
    tool = found[len(verb)] if len(found) > len(verb) else ""
    told = any(option in ("--from", "--spec") for option, _ in options)
    return "" if told or re.search(r"[/$]|^(python|bash|sh)[\d.]*$|\.py$", tool) else tool


def _verb(program: str, given: Sequence[str]) -> tuple[str, ...]:
    """What uv or pipx is to do; nothing of uvx, which runs a tool."""
    found = _parsed(given, 2)[1] if program != "uvx" else []
    return tuple(found if found[:1] == ["tool"] else found[:1])


def _parsed(given: Sequence[str], most: int = ALL) -> tuple[list[tuple[str, str]], list[str]]:
    """Options with their values, and the words that are none, up to as many as `most`: what follows is no more ours."""
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


def _all(named: Iterator[str] | Sequence[str]) -> Iterator[tuple[str, str]]:
    """Normal name -> requirement of each package; uv says `name@version`."""
    for text in named:
        match = re.fullmatch(r"([\w.-]+(?:\[[\w,.-]+\])?)@([\w.!+-]+)", text)
        plain = text if not match else match[1] if match[2] == "latest" else f"{match[1]}=={match[2]}"
        yield from requirement(plain)
