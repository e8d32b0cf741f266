"""Small projects of the kinds that people have, each slow in one place, and the commit that mends it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.plain_git import git


@dataclass(frozen=True, kw_only=True)
class SmallProject:
    """Files, and what a model says to make one of them faster.

    `lock` is a shell command that an author would have typed once before the commit, `module` are the files of a
    submodule in deps/module; `needs` are the programs of the kind.
    """

    name: str
    files: Mapping[str, str]
    path: str
    slow: str
    fast: str
    reason: str
    title: str
    needs: tuple[str, ...] = ()
    lock: str = ""
    module: Mapping[str, str] = field(default_factory=dict)

    @property
    def present(self) -> bool:
        """Whether its tools are where sandboxes without images have them."""
        return all(shutil.which(program, path="/usr/bin:/bin") for program in self.needs)

    def make(self, folder: Path) -> None:
        """A repository of one commit at this folder, with that of the submodule beside it."""
        _write(folder, self.files)
        if self.lock:
            subprocess.run(["sh", "-c", self.lock], cwd=folder, check=True, capture_output=True)
        git(folder, "init", "-q", "-b", "main")
        if self.module:
            module = folder.with_name(f"{folder.name}-module")
            _write(module, self.module)
            git(module, "init", "-q", "-b", "main")
            _commit(module)
            git(folder, *LOCAL, "submodule", "--quiet", "add", str(module), "deps/module")
        _commit(folder)

    def reply(self) -> str:
        """What a model says: why, a title, and an edit."""
        edit = f"<<<<<<< SEARCH {self.path}\n{self.slow}=======\n{self.fast}>>>>>>> REPLACE"
        return f"{self.reason}\n\nTITLE: {self.title}\n\n{edit}\n"


LOCAL = ("-c", "protocol.file.allow=always")
"""For Git, which else refuses submodules that are on this machine."""


def _write(folder: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def _commit(folder: Path) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "First version")


WHY = "Looking each item up in what was seen so far makes the time grow with the square of the length; a set does not."

PYTHON_SLOW = """\
    seen = []
    for item in items:
        if item not in seen:
            seen.append(item)
    return seen
"""
PYTHON_FAST = """\
    return list(dict.fromkeys(items))
"""
PYTHON_TEST = """\
from {module} import unique


def test_unique() -> None:
    items = list(range(6_000)) * 2
    assert unique(items) == items[:6_000]
"""

JS_SLOW = """\
  const seen = [];
  for (const item of items) if (!seen.includes(item)) seen.push(item);
  return seen;
"""
JS_FAST = """\
  return [...new Set(items)];
"""
JS_LIB = f"""\
const ms = require("ms");

/** The items without repetitions, in order. */
exports.unique = function unique(items) {{
{JS_SLOW}}};

exports.age = (text) => ms(text) / 1000;
"""
JS_PACKAGE = {
    "name": "unique-things",
    "version": "1.0.0",
    "main": "lib/unique.js",
    "dependencies": {"ms": "^2.1.3"},
}
JS_TEST = """\
const assert = require("assert");
const { age, unique } = require("../lib/unique.js");
{runner}
describe("unique", () => {
  it("keeps the first of each", () => assert.deepStrictEqual(unique([3, 1, 3, 2]), [3, 1, 2]));
  it("takes many", () => {
    const items = Array.from({ length: 30000 }, (_, at) => at % 20000);
    assert.strictEqual(unique(items).length, 20000);
  });
  it("knows ages", () => assert.strictEqual(age("1h"), 3600));
});
"""


def javascript(name: str, lock: str, *, runner: str = "mocha") -> SmallProject:
    """With mocha, which brings 70 packages, or with the runner that Node.js has."""
    own = runner.startswith("node ")
    needs = {} if own else {"devDependencies": {runner: "^10.0.0"}}
    imports = 'const { describe, it } = require("node:test");\n' if own else ""
    return SmallProject(
        name=name,
        files={
            "package.json": json.dumps({**JS_PACKAGE, "scripts": {"test": runner}, **needs}, indent=2),
            "lib/unique.js": JS_LIB,
            "test/unique.test.js": JS_TEST.replace("{runner}", imports),
            ".gitignore": "node_modules/\n",
        },
        path="lib/unique.js",
        slow=JS_SLOW,
        fast=JS_FAST,
        reason=WHY,
        title="Find duplicates with a set",
        needs=("node", "npm"),
        lock=lock,
    )


def python(name: str, pyproject: str, lock: str = "", **more: str) -> SmallProject:
    return SmallProject(
        name=name,
        files={
            "pyproject.toml": pyproject,
            "src/things/__init__.py": f"""\
from importlib.metadata import version

from sortedcontainers import SortedList

__version__ = version("things")


def unique(items):
    \"\"\"The items without repetitions, in order.\"\"\"
{PYTHON_SLOW}

def ordered(items):
    return list(SortedList(items))
""",
            "tests/test_things.py": PYTHON_TEST.format(module="things"),
            **more,
        },
        path="src/things/__init__.py",
        slow=PYTHON_SLOW,
        fast=PYTHON_FAST,
        reason=WHY,
        title="Find duplicates with a dict",
        lock=lock,
    )


RUST_SLOW = """\
    let mut seen: Vec<u64> = Vec::new();
    for item in items {
        if !seen.contains(item) {
            seen.push(*item);
        }
    }
    seen
"""
RUST_FAST = """\
    let mut seen = std::collections::HashSet::new();
    items.iter().copied().filter(|item| seen.insert(*item)).collect()
"""
GO_SLOW = """\
	seen := []int{}
	for _, item := range items {
		if !slices(seen, item) {
			seen = append(seen, item)
		}
	}
	return seen
"""
GO_FAST = """\
	seen := map[int]bool{}
	kept := []int{}
	for _, item := range items {
		if !seen[item] {
			seen[item] = true
			kept = append(kept, item)
		}
	}
	return kept
"""
C_SLOW = """\
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        size_t j = 0;
        while (j < kept && items[j] != items[i]) j++;
        if (j == kept) items[kept++] = items[i];
    }
    return kept;
"""
C_FAST = """\
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || items[kept - 1] != items[i]) items[kept++] = items[i];
    return kept;
"""
C_FILES = {
    "src/unique.h": "#include <stddef.h>\n\nsize_t unique(int *items, size_t count);\n",
    "src/unique.c": f"""\
#include "unique.h"

/* Removes repetitions from a sorted array in place; what is left of its length. */
size_t unique(int *items, size_t count) {{
{C_SLOW}}}
""",
    "tests/test_unique.c": """\
#include <stdlib.h>

#include "../src/unique.h"

enum { COUNT = 40000 };

int main(void) {
    int *items = malloc(COUNT * sizeof *items);
    for (int i = 0; i < COUNT; i++) items[i] = i / 2;
    size_t kept = unique(items, COUNT);
    for (size_t i = 0; i < kept; i++) if (items[i] != (int)i) return 1;
    return kept == COUNT / 2 ? 0 : 1;
}
""",
}


CHECK = "#include <stdlib.h>\n\n#define CHECK(what) do { if (!(what)) exit(1); } while (0)\n"
CHECKED = ("return kept == COUNT / 2 ? 0 : 1;", "CHECK(kept == COUNT / 2);\n    return 0;")
MAKEFILE = """\
CFLAGS = -O2 -include deps/module/check.h

test: test_unique
	./test_unique
test_unique: tests/test_unique.c src/unique.c
	$(CC) $(CFLAGS) -o $@ $^
"""


def c(name: str, needs: tuple[str, ...], *, module: Mapping[str, str] | None = None, **more: str) -> SmallProject:
    return SmallProject(
        name=name,
        files={**C_FILES, **more},
        path="src/unique.c",
        slow=C_SLOW,
        fast=C_FAST,
        reason="Repetitions in a sorted array are neighbours, so that comparing with the last one kept is enough.",
        title="Compare with the last item alone",
        module=module or {},
        needs=("cc", *needs),
    )


NPM_LOCK = "npm install --package-lock-only --ignore-scripts --no-audit --no-fund --silent"
PYPROJECT = """\
[project]
name = "things"
version = "1.0"
requires-python = ">=3.10"
dependencies = ["sortedcontainers>=2"]

[project.optional-dependencies]
colour = ["tabulate[widechars]>=0.9"]
dev = ["things[colour]", "pytest>=8"]
"""

PROJECTS = {
    project.name: project
    for project in (
        javascript("npm", NPM_LOCK, runner="node --test"),
        javascript("mocha", NPM_LOCK),
        python("pip", PYPROJECT),
        SmallProject(
            name="cargo",
            files={
                "Cargo.toml": '[package]\nname = "things"\nversion = "1.0.0"\nedition = "2021"\n',
                "Cargo.lock": 'version = 3\n\n[[package]]\nname = "things"\nversion = "1.0.0"\n',
                "src/lib.rs": f"""\
/// The items without repetitions, in order.
pub fn unique(items: &[u64]) -> Vec<u64> {{
{RUST_SLOW}}}
""",
                "tests/unique.rs": """\
use things::unique;

#[test]
fn takes_many() {
    let items: Vec<u64> = (0..20_000).map(|at| at % 10_000).collect();
    assert_eq!(unique(&items), items[..10_000]);
}
""",
                ".gitignore": "/target\n",
            },
            path="src/lib.rs",
            slow=RUST_SLOW,
            fast=RUST_FAST,
            reason=WHY,
            title="Find duplicates with a set",
            needs=("cargo", "cc"),
        ),
        SmallProject(
            name="go",
            files={
                "go.mod": "module example.org/things\n\ngo 1.19\n",
                "unique.go": f"""\
package things

func slices(items []int, wanted int) bool {{
	for _, item := range items {{
		if item == wanted {{
			return true
		}}
	}}
	return false
}}

// Unique returns the items without repetitions, in order.
func Unique(items []int) []int {{
{GO_SLOW}}}
""",
                "unique_test.go": """\
package things

import "testing"

func TestUnique(t *testing.T) {
	items := make([]int, 60000)
	for at := range items {
		items[at] = at % 40000
	}
	if kept := Unique(items); len(kept) != 40000 {
		t.Fatalf("expected 40000, got %d", len(kept))
	}
}
""",
            },
            path="unique.go",
            slow=GO_SLOW,
            fast=GO_FAST,
            reason=WHY,
            title="Find duplicates with a map",
            needs=("go",),
        ),
        c(
            "cmake",
            ("cmake",),
            **{
                "CMakeLists.txt": """\
cmake_minimum_required(VERSION 3.16)
project(things C)
enable_testing()
add_library(unique src/unique.c)
add_executable(test_unique tests/test_unique.c)
target_link_libraries(test_unique unique)
add_test(NAME unique COMMAND test_unique)
"""
            },
        ),
        c(
            "submodule",
            ("make",),
            module={"check.h": CHECK},
            **{"Makefile": MAKEFILE, "tests/test_unique.c": C_FILES["tests/test_unique.c"].replace(*CHECKED)},
        ),
    )
}
