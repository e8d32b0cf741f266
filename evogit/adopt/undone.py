"""What the commands of a Dockerfile do that is not done here, and which bases of images bring nothing of their own."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence

from evogit.adopt.installs import commands, statements

_IDLE = """
: [ [[ adduser addgroup apk apt apt-get apt-key cd chgrp chmod chown chpasswd done dpkg-reconfigure esac exit export
false fi for groupadd groupmod ldconfig locale-gen ls mkdir passwd pip pip3 pipx popd pushd rm rmdir set sleep test
touch true umask unset update-alternatives update-ca-certificates update-locale useradd usermod uv uvx virtualenv
which }
"""
IDLE = frozenset(_IDLE.split())
"""Programs that install what is installed here too, make folders, set modes, or leave no file that anything needs."""
SPEAKING = frozenset({"cat", "echo", "printf"})
"""Programs that make a file only where their output goes to one."""
WRITES = re.compile(r"(?<!\d)>>?\s*(?!/dev/|&)\S")
HERE = re.compile(
    r"^curl [^|]*/uv/[^|]*\|\s*(ba)?sh|\b(cp|mv|ln) [^\n]{0,200}/uvx?\b|"
    r"/etc/apt/|--version\b|-m\s+(pip|venv|ensurepip)\b|git config "
)
"""Of commands that are done here too, or need not be."""
_STOCK = """
almalinux alpine amazonlinux archlinux bash buildpack-deps busybox centos clojure composer dart debian eclipse-temurin
elixir erlang fedora gcc golang gradle groovy haskell julia maven node openjdk oraclelinux perl php pypy python r-base
rockylinux ruby rust scratch swift ubuntu
"""
STOCK = frozenset(_STOCK.split())
"""Images with a system or a language, and no files of a task."""
LONGEST = 60
"""Characters of a command that a note shows."""
MOST = 4
"""Commands that a note shows."""


def undone(script: str) -> Iterator[str]:
    """Each command of a shell script that may leave files which are missing here."""
    for text in statements(script):
        writes = WRITES.search(text) is not None
        if not HERE.search(text) and any(_leaves_files(given, writes) for given in commands(text)):
            yield re.sub(r"\s+", " ", text)


def _leaves_files(given: Sequence[str], writes: bool) -> bool:
    """Whether a command may leave files that anything needs; `writes` is whether output goes to one."""
    program = posixpath.basename(given[0])
    if program == "find":
        return not {"-delete", "chmod", "chown", "rm"} & set(given)
    if program == "ln":
        return not re.match("python|pip", posixpath.basename(given[-1]))
    return writes if program in SPEAKING else program not in IDLE and not program.startswith("<<")


def told_undone(found: Sequence[str], whose: str) -> Iterator[str]:
    """What a person is told of these commands."""
    if found:
        shown = [text if len(text) <= LONGEST else f"{text[:LONGEST]}..." for text in found[:MOST]]
        named = ", ".join(f'"{text}"' for text in shown) + (f" and {len(found) - MOST} more" if found[MOST:] else "")
        yield f"{whose} runs {named}, which is not done here: files that it makes are missing"


def told_base(base: str, whose: str) -> Iterator[str]:
    """What a person is told of an image that another one begins as, where it may bring files or programs."""
    name = re.sub(r"^((index\.)?docker\.io/)?(.*\blibrary/)?|[:@].*$", "", base)
    if name and name not in STOCK and not name.endswith("/astral-sh/uv"):
        yield f"{whose} begins as {base}: what that brings is not known here, and missing"
