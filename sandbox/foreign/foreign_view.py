"""What the evaluators of other systems find in a sandbox: their files, where they may also write, and `python`.

Runs beside the candidate, in its sandbox: what it says can be forged (`judged: inside`). Standard library only.
"""

import contextlib
import json
import math
import os
import re
import shlex
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib is slow to import
THEIRS = os.path.join(os.path.dirname(HERE), "task")  # noqa: PTH118, PTH120
VIEW = ".foreign"
FOLDERS = ("HOME", "TMPDIR")
"""Variables whose folders a sandbox has, and an image may have none of."""
LARGE = 1 << 20
"""Bytes of a file from which on an evaluator gets it read-only, as a link."""
LONGEST = 4000
"""Characters of one artifact that are shown."""
TOLD = re.compile(
    "errors?|error_message|exception|traceback|failure|(is_)?valid|success|correct|passed|ok|failed|timeout|timed_out|"
    "status|state|outcome|verdict"
)
"""Names under which evaluators tell beside a score that it is that of a failure."""
SYSTEM = "/usr/local/sbin:/usr/sbin:/sbin"
"""Where an image's programs look for others too, and a sandbox's do not."""
COMMAND = """#!/bin/sh
exec python3 -c 'import sys; from {module} import {first} as main; sys.argv[0] = "{name}"; sys.exit(main{rest}())' "$@"
"""


def view():
    """A folder with everything of theirs, in which their evaluator may write; its absolute path.

    Theirs is read-only, and systems differ in whether an evaluator may leave files beside itself.
    """
    folder = os.path.abspath(VIEW)  # noqa: PTH100
    for root, _, names in os.walk(THEIRS):
        place = os.path.normpath(f"{folder}/{os.path.relpath(root, THEIRS)}")
        os.makedirs(place, exist_ok=True)  # noqa: PTH103
        for name in names:
            if os.path.lexists(f"{place}/{name}"):
                continue
            if os.path.getsize(f"{root}/{name}") > LARGE:  # noqa: PTH202
                os.symlink(f"{root}/{name}", f"{place}/{name}")  # noqa: PTH211
            else:
                _copy(f"{root}/{name}", f"{place}/{name}")
    return folder


def placed(program):
    """Copy a program to where these systems write it, in the folder for temporary files; its absolute path.

    Some evaluators tell by it what they are given, and its name is that of no module of theirs.
    """
    folder = os.environ.get("TMPDIR", "/tmp")
    if os.path.realpath("/tmp") == os.path.realpath(folder):
        folder = "/tmp"
    place = f"{folder}/tmp_{os.path.basename(program)}"  # noqa: PTH119
    _copy(program, place)
    return place


def show(kind, error, frames):
    """Print an error as Python does, without our frames that lead to theirs: they tell its author nothing."""
    import traceback  # noqa: PLC0415 - slow to import

    first = frames
    while first and first.tb_frame.f_code.co_filename.startswith((f"{HERE}/", "<frozen ")):
        first = first.tb_next
    traceback.print_exception(kind, error, first or frames)


def lay_temporary(source):
    """Copy what is to be in /tmp to where that is: nothing can be linked there."""
    for root, _, names in os.walk(source):
        place = os.path.normpath(f"{os.environ.get('TMPDIR', '/tmp')}/{os.path.relpath(root, source)}")
        os.makedirs(place, exist_ok=True)  # noqa: PTH103
        for name in names:
            _copy(f"{root}/{name}", f"{place}/{name}")


def _copy(source, place):
    """Copy a file so that it may be written; `shutil` is slow to import."""
    with open(source, "rb") as file, open(place, "wb") as copy:  # noqa: PTH123
        copy.write(file.read())
    os.chmod(place, 0o755 if os.access(source, os.X_OK) else 0o644)  # noqa: PTH101


def prepare_programs():
    """Let programs that they start find `python` and our stand-ins for their modules.

    What they start with `-I`, or without our environment, finds packages too: `python` is a virtual environment's.
    """
    environment = os.path.abspath(f"{VIEW}-venv")  # noqa: PTH100
    programs = f"{environment}/bin"
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    packages = f"{environment}/lib/{version}/site-packages"
    for folder in (programs, packages):
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103
    known = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = f"{HERE}:{known}" if known else HERE
    with open(f"{environment}/pyvenv.cfg", "w", encoding="utf-8") as file:  # noqa: PTH123
        file.write(f"home = {os.path.dirname(os.path.realpath(sys.executable))}\ninclude-system-site-packages = true\n")  # noqa: PTH120
    found = [*os.environ["PYTHONPATH"].split(":"), *(each for each in sys.path if each.endswith("-packages"))]
    with open(f"{packages}/found.pth", "w", encoding="utf-8") as file:  # noqa: PTH123
        file.write("\n".join(found) + "\n")
    for folder in known.split(":") if known else ():
        for name, where in commands(folder):
            write_command(programs, name, where)
    for name in ("python", "python3"):
        with contextlib.suppress(FileExistsError):
            os.symlink(sys.executable, f"{programs}/{name}")  # noqa: PTH211
    sys.executable = f"{programs}/python3"
    os.environ["PATH"] = f"{programs}:{os.environ.get('PATH', '/usr/bin:/bin')}:{SYSTEM}"
    return programs


def commands(folder):
    """Name -> `module:function` of each command that the packages in a folder bring: they are there without it."""
    for metadata in os.listdir(folder) if os.path.isdir(folder) else ():  # noqa: PTH112, PTH208
        with contextlib.suppress(OSError), open(f"{folder}/{metadata}/entry_points.txt", encoding="utf-8") as file:  # noqa: PTH123
            section = ""
            for line in map(str.strip, file):
                section = line if line.startswith("[") else section
                name, sign, where = (part.strip() for part in line.partition("="))
                if section == "[console_scripts]" and re.fullmatch(r"[\w.-]+=[\w.]+:[\w.]+", name + sign + where):
                    yield name, where


def write_command(programs, name, where):
    """Write a script that calls `module:function` to the folder of programs."""
    module, _, function = where.partition(":")
    first, dot, rest = function.partition(".")
    write_program(f"{programs}/{name}", COMMAND.format(module=module, first=first, name=name, rest=dot + rest))


def write_program(path, text):
    """Write a script that can be started."""
    with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123
        file.write(text)
    os.chmod(path, 0o755)  # noqa: PTH101


def of_image(variables, programs):
    """What programs find of an image's variables: our `programs` come first, and folders have to be there."""
    said = {name: value for name, value in variables.items() if name not in FOLDERS or os.path.isdir(value)}  # noqa: PTH112
    for name, first in (("PATH", f"{programs}:"), ("PYTHONPATH", "")):
        if name in said:
            said[name] = f"{first}{said[name]}:{os.environ[name]}"
    return said


@contextlib.contextmanager
def aside():
    """Let all that is printed go to stderr: stdout, whose descriptor this gives, is for the score, its last line."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield kept
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def report(score, metrics=(), artifacts=()):
    """Print what agents are told, and all numbers as the last line; metrics and artifacts are mappings.

    Raises:
        SystemExit: the score is no finite number.
    """
    for name, value in dict(artifacts).items():
        text = _text(value)
        print(f"[{name}]\n{text}" if "\n" in text else f"[{name}] {text}")
    numbers = {name: float(value) for name, value in dict(metrics).items() if isinstance(value, int | float)}
    for name, value in dict(metrics).items():
        if name not in numbers:
            print(f"{name}: {_text(value)}")
    if not math.isfinite(score):
        sys.exit(f"expected a finite combined_score, the evaluator gave {score}")
    others = {name: value for name, value in numbers.items() if math.isfinite(value)}
    told = {name: _text(value) for name, value in told_of({**dict(artifacts), **dict(metrics)}).items()}
    print(json.dumps({**others, **told, "combined_score": float(score)}))


def told_of(fields):
    """The fields that may tell that a score is that of a failure: texts, and `False`."""
    named = {name: value for name, value in fields.items() if TOLD.fullmatch(str(name))}
    return {name: value for name, value in named.items() if isinstance(value, str) or value is False}


def _text(value):
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]}\n...\n{text[-LONGEST // 2 :]}"


def export_programs():
    """Print a line for a shell that puts the commands of the sandbox's packages on the path."""
    folder = tempfile.mkdtemp()
    for place in filter(None, os.environ.get("PYTHONPATH", "").split(":")):
        for name, where in commands(place):
            write_command(folder, name, where)
    print(f'export PATH={shlex.quote(folder)}:"$PATH"')


if __name__ == "__main__":
    export_programs()
