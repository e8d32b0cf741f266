"""The profiler that `evogit init` copies into a repository: real commands, run below it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from evogit.scaffold import profiler

WORK = """\
def slow(n):
    return sum(i * i for i in range(n))

def outer():
    return [slow(20_000) for _ in range(100)]

if __name__ == "__main__":
    outer()
    print("seconds 1.0")
"""


def profile(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    helper = folder / ".evogit" / "profiler.py"
    helper.parent.mkdir(exist_ok=True)
    shutil.copy(profiler.__file__, helper)
    return subprocess.run([sys.executable, helper, command], cwd=folder, capture_output=True, text=True)


@pytest.mark.parametrize("command", ["python3 work.py", "true && PYTHONHASHSEED=0 python3 -m work"])
def test_it_names_the_function_that_takes_most_with_its_line_and_caller(tmp_path: Path, command: str) -> None:
    (tmp_path / "work.py").write_text(WORK)
    done = profile(tmp_path, command)
    assert done.returncode == 0, done.stderr
    hot = [line for line in done.stdout.splitlines() if "work.py:2 <genexpr>" in line or "work.py:1 slow" in line]
    assert hot, done.stdout
    assert any("work.py:4 outer" in line for line in done.stdout.splitlines())
    assert "seconds 1.0" not in done.stdout


def test_a_command_that_fails_says_its_last_words(tmp_path: Path) -> None:
    done = profile(tmp_path, "echo no such table; exit 3")
    assert (done.returncode, done.stdout) == (3, "")
    assert "no such table" in done.stderr


@pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")
def test_it_profiles_node(tmp_path: Path) -> None:
    (tmp_path / "work.js").write_text(
        "function hot() { let s = 0; for (let i = 0; i < 3e8; i++) s += i % 7; return s }\nconsole.log(hot())\n"
    )
    done = profile(tmp_path, "node work.js")
    assert done.returncode == 0, done.stderr
    assert "work.js:1 hot" in done.stdout


@pytest.mark.skipif(not shutil.which("go"), reason="Go is not installed")
def test_it_profiles_the_tests_of_several_go_packages(tmp_path: Path) -> None:
    (tmp_path / "go.mod").write_text("module m\ngo 1.18\n")
    (tmp_path / "a.go").write_text(
        "package m\nfunc Hot(n int) (s int) { for i := 0; i < n; i++ { s += i % 7 }; return }\n"
    )
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "b_test.go").write_text('package b\nimport "testing"\nfunc TestB(t *testing.T) {}\n')
    (tmp_path / "a_test.go").write_text(
        'package m\nimport "testing"\nfunc BenchmarkHot(b *testing.B) { for i := 0; i < b.N; i++ { Hot(1e8) } }\n'
    )
    done = profile(tmp_path, "go test -run='^$' -bench='^BenchmarkHot$' ./...")
    assert done.returncode == 0, done.stderr
    assert "a.go m.Hot" in done.stdout
