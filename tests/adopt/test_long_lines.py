"""Files of strangers with long lines, many blank lines or deep nesting: read in a time that grows with their length."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from evogit.adopt import find_task
from evogit.adopt.notes import admitted
from evogit.adopt.sources import read_yaml
from evogit.config.printed_numbers import read_of
from evogit.config.values import matches
from evogit.contained import toml_of
from evogit.core import EvoGitError
from evogit.scaffold.detect import detect
from evogit.scaffold.project import ProjectFiles
from tests.adopt.evaluating import write
from tests.adopt.test_links import FORMATS
from tests.clock import cpu_seconds

SHORT, LONG = 3_000, 30_000
MOST = 30
"""How much longer ten times the text may take: a quadratic reader takes a hundred times as long."""
PUMPS = {
    "evaluator.py": [" ", "-", "\n", " \n", "-u ", "a.", "(", "'a', ", "import ", "join(", "lambda: ", "1+"],
    "initial_program.py": ["\n", "-u ", "a,", "["],
    "config.yaml": ["[", "- ", "a:\n ", "&a [", "? ", "{a: "],
    "evaluate.py": ["-u ", "-", "\n", "x if x else ", "from a "],
    "run.yaml": ["[", "{"],
    "evaluator/evaluate.sh": ["-", " \n", "$a/", "a/", "../", "python -u "],
    "instruction.md": ["a/", "`a.", '"a.py" ', " "],
    "tests/test.sh": ["a,", "! ", "pip install ", "uvx --from a,", "> ", "curl /uv/ "],
    "environment/Dockerfile": ["$a/", "${a:-", "a ", "\\\n", "<<a ", "RUN a\n", "COPY a ", "**/", "printf '%s' "],
    "environment/.dockerignore": ["[", "*a"],
    "task.toml": ["[", "a.", "{a=", "#"],
    "autoresearch.md": ["1", " ", "**primary**: ", "`a` ", "- ", "#"],
    "autoresearch.sh": ["METRIC ", " ", "\n", "echo ", "$a/"],
    "autoresearch.jsonl": ["[", '{"a":', "\n"],
    "train.py": ["METRIC ", "print(", "{", '"', "a b "],
    "bench.py": [" ", "-", "METRIC ", "METRIC a", "dumps({", "while elapsed ", "%d ", "'a*", "error: ", "-u ", '"""'],
}


def measured(work: Callable[[str], object], pump: Callable[[int], str]) -> tuple[float, float]:
    """CPU seconds for a text, and for one that is ten times as long."""

    short, long = pump(SHORT), pump(LONG)
    work(short)  # imports
    return cpu_seconds(lambda: work(short), 1), cpu_seconds(lambda: work(long), 2)


@pytest.mark.parametrize(("place", "atom"), [(place, atom) for place, atoms in PUMPS.items() for atom in atoms])
def test_a_long_line_of_a_task_takes_a_time_that_grows_with_it(tmp_path: Path, place: str, atom: str) -> None:
    name = next((name for name, files in FORMATS.items() if place in files), "harbor")
    folder = write(tmp_path / "task", FORMATS[name])

    def read(text: str) -> None:
        (folder / place).write_text(FORMATS[name].get(place, "") + text + "\n")
        with suppress(EvoGitError):
            find_task(str(folder / place if name == "script" else folder))

    short, long = measured(read, lambda size: atom * (size // len(atom)))
    assert long < MOST * max(short, 0.002)


@pytest.mark.parametrize(
    ("read", "atom"),
    [
        (lambda text: read_of([text]), "print(json.dumps(a)) "),
        (lambda text: read_of([text]), "print(json.dumps(a))\na = dict(\n"),
        (admitted, "errorerror"),
        (admitted, "[error]\n"),
        (read_yaml, "- - "),
        (lambda text: matches("a" * 200 + "b", ["*a" * (len(text) // 400) + "c"]), "*a"),
    ],
)
def test_other_readers_of_foreign_text_take_a_time_that_grows_with_it(read, atom: str) -> None:
    short, long = measured(read, lambda size: atom * (size // len(atom)))
    assert long < MOST * max(short, 0.002)


@pytest.mark.parametrize(
    ("name", "atom"),
    [
        ("requirements.txt", "a"),
        ("package.json", "["),
        ("pyproject.toml", "a."),
        ("Makefile", "a "),
        ("CMakeLists.txt", "include "),
        ("bench.py", "\n"),
        ("uv.lock", "[a"),
    ],
)
def test_files_of_a_repository_are_looked_through_in_a_time_that_grows_with_them(name: str, atom: str) -> None:
    def found(text: str) -> object:
        texts = {"setup.py": "", "a.py": "", "test_a.py": "", name: f"{text}/\n"}
        return detect(ProjectFiles(list(texts), texts.__getitem__))

    short, long = measured(found, lambda size: atom * (size // len(atom)))
    assert long < MOST * max(short, 0.002)


@pytest.mark.parametrize(
    "text", ["a = " + "[" * 60_000, '"a b" . ' * 5_000 + "c = 1", "a." * 30_000 + "b = 1", f"[{'a.' * 30_000}b]"]
)
def test_toml_that_is_too_deep_is_refused_as_none(text: str) -> None:
    with pytest.raises(ValueError, match="too deep"):
        toml_of(text)
