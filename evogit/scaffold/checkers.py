"""The formatters, linters and type checkers that a project has set up, as commands that a candidate must pass, too."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence

from evogit.scaffold.project import ProjectFiles, json_of, table

CONFIGURED = {
    "ruff": (r"^\[tool\.ruff\b", ("ruff.toml", ".ruff.toml")),
    "black": (r"^\[tool\.black\b", ()),
    "mypy": (r"^\[(tool\.)?mypy\]", ("mypy.ini", ".mypy.ini")),
}
"""Python tool -> what its section begins with, and the files of its own that it may have."""
HOOK_VERSION = r"repo:\s*\S*/(?:{name}(?:-pre-commit)?|mirrors-{name})(?:\.git)?\s+rev:\s*['\"]?v?([\d.]+)"
"""The version of a tool in `.pre-commit-config.yaml`."""
MYPY_TARGETS = re.compile(r"^(files|packages|modules)\s*=", re.MULTILINE)
JAVASCRIPT_CHECKS = ("lint", "typecheck", "type-check", "check-types", "format:check", "check:format")
REWRITES = re.compile(r"--(fix|write)\b")
MAX_TARGETS = 10  # files and folders of a command; more of them are named by the project's folder


def python_checks(source: ProjectFiles, editable: Iterable[str], needs: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Return the command that checks a Python project, and its packages; `needs` are all that the project names."""
    settings = "\n".join(source.text(name) for name in ("pyproject.toml", "setup.cfg"))
    hooks = source.text(".pre-commit-config.yaml")
    commands, packages = list[str](), list[str]()
    for name, (section, files) in CONFIGURED.items():
        if not (source.first(*files) or re.search(section, settings, re.MULTILINE)):
            continue
        own = "".join(map(source.text, files)) + settings
        arguments = "" if name == "mypy" and MYPY_TARGETS.search(own) else f" {_targets(editable)}"
        words = {"ruff": "check -q", "black": "--check -q", "mypy": ""}[name]
        commands.append(f"python3 -m {name} {words}".rstrip() + arguments)
        if name == "ruff" and ("ruff-format" in hooks or "[tool.ruff.format]" in settings):
            commands.append(f"python3 -m ruff format -q --check{arguments}")
        pinned = re.search(HOOK_VERSION.format(name=name), hooks)
        named = next((need for need in needs if re.match(rf"{name}\b(?!-)", need)), name)
        packages.append(f"{name}=={pinned[1]}" if pinned else named)
    stubs = [need for need in needs if need.startswith("types-")] if "mypy" in "".join(packages) else []
    return " && ".join(commands), (*packages, *stubs)


def go_checks(editable: Iterable[str]) -> str:
    """Return the command that fails for files that gofmt would write otherwise."""
    return f'test -z "$(gofmt -l {_targets(editable)})"'


def rust_checks(source: ProjectFiles) -> str:
    """Return the command that checks the format of a crate that has one of its own."""
    return "cargo fmt --check" if source.first("rustfmt.toml", ".rustfmt.toml") else ""


def javascript_checks(source: ProjectFiles) -> str:
    """Return the scripts of a package that look at its sources and change nothing."""
    scripts = table(json_of(source.text("package.json")), "scripts")
    return " && ".join(_scripts(scripts))


def _scripts(scripts: dict[str, object]) -> Iterator[str]:
    for name in JAVASCRIPT_CHECKS:
        if isinstance(text := scripts.get(name), str) and text.isprintable() and not REWRITES.search(text):
            yield f"npm run --silent {name}"


def _targets(editable: Iterable[str]) -> str:
    """Return the files and folders that globs name, as words of a shell."""
    names = list(dict.fromkeys(glob.removesuffix("/**") for glob in editable))
    is_plain = 0 < len(names) <= MAX_TARGETS and not any(re.search(r"[*?\[]", name) for name in names)
    return " ".join(map(shlex.quote, names)) if is_plain else "."
