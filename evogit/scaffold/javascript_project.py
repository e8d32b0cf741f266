"""How JavaScript packages are installed, by whichever package manager wrote the lock file, and tested."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from evogit.config.printed_numbers import read_of
from evogit.scaffold.checkers import javascript_checks
from evogit.scaffold.project import BENCHMARK, Project, ProjectFiles, editable, json_of, table

MANAGER = re.compile(r"(npm|pnpm|yarn)@([0-9][\w.-]*)")
"""`packageManager` in package.json, without the digest behind it."""
PNPM_OF = {"5": "7", "6": "8"}
"""The version in pnpm-lock.yaml -> that of the pnpm that writes it; later ones are the same."""


def javascript(source: ProjectFiles) -> Project | None:
    """A package of npm's, pnpm's or yarn's."""
    if not source.first("package.json"):
        return None
    package = json_of(source.text("package.json"))
    scripts = {
        name: text for name, text in table(package, "scripts").items() if isinstance(text, str) and text.isprintable()
    }
    tests = _script(scripts, ("test",))
    if not tests and any(re.search(r"\.(test|spec)\.[cm]?js$", path) for path in source.paths):
        tests = "node --test"
    benchmark = _script(scripts, ("bench", "benchmark", "perf"))
    installs = "npm" in f"{tests} {benchmark}" or bool(table(package, "dependencies"))
    return Project(
        kind="a JavaScript package" + (" with node's test runner" if tests.startswith("node --test") else ""),
        build=_script(scripts, ("build",)) if installs and source.first("tsconfig.json") else "",
        tests=tests,
        benchmark=benchmark,
        reads=read_of(map(source.text, source.matching(BENCHMARK))) if benchmark else {},
        editable=editable(source.paths),
        prepare=_install(source, package) if installs else "",
        debian=("nodejs", "npm") if installs else ("nodejs",),
        checks=javascript_checks(source) if installs else "",
    )


def _script(scripts: Mapping[str, str], names: Iterable[str]) -> str:
    """The command of the first such script; npm, which is slow and has much to install, only where it is needed."""
    name = next((name for name in names if name in scripts and "no test specified" not in scripts[name]), "")
    if not name or scripts[name].startswith("node "):
        return scripts.get(name, "")
    return f"npm run --silent {name}"


def _install(source: ProjectFiles, package: Any) -> str:
    """The command that installs what the lock file says; npx, which comes with npm, has the other managers."""
    said = package.get("packageManager") if isinstance(package, dict) else None
    found = MANAGER.match(said) if isinstance(said, str) else None
    name, version = found.groups() if found else ("", "")
    if name == "pnpm" or source.first("pnpm-lock.yaml"):
        locked = re.search(r"^lockfileVersion: '?(\d+)", source.text("pnpm-lock.yaml"), re.MULTILINE)
        version = version or (PNPM_OF.get(locked[1], locked[1]) if locked else "9")
        return f"npx --yes pnpm@{version} install --frozen-lockfile"
    if (name == "yarn" and not version.startswith("1.")) or source.first(".yarnrc.yml"):
        return f"YARN_NODE_LINKER=node-modules npx --yes @yarnpkg/cli-dist@{version or '4'} install --immutable"
    if name == "yarn" or source.first("yarn.lock"):
        return "npx --yes yarn@1 install --frozen-lockfile"
    return "npm ci" if source.first("package-lock.json", "npm-shrinkwrap.json") else "npm install"
