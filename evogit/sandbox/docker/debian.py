"""A small Debian system with Python, made from packages where no registry has an image."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from evogit.core import SandboxError
from evogit.subprocesses import PIPE, start

SUITE = "bookworm"
EPOCH = "1700000000"
"""The time that no file is newer than, so that equal packages give equal archives, bit by bit."""
INCLUDED = ("python3", "python-is-python3")
"""Packages beside Debian's minimum; the second is the name `python`, which scripts of strangers use."""
LEFT_OUT = ("doc", "man", "info", "locale")
"""Folders of /usr/share that no program needs."""
COPIED = ("etc/resolv.conf", "etc/hostname")
"""What mmdebstrap takes from this machine."""
SHOWN = 15
"""Last lines of its output that an error tells."""


def make_archive(archive: Path) -> None:
    """Write a tar archive of a system with Python and its standard library.

    Raises:
        SandboxError: when mmdebstrap is missing or fails.
    """
    if shutil.which("mmdebstrap") is None:
        raise SandboxError("mmdebstrap is not installed (Debian: apt-get install mmdebstrap debian-archive-keyring)")
    command = ["mmdebstrap", "--quiet", "--variant=minbase", "--dpkgopt=force-unsafe-io"]
    command += [f"--include={','.join(INCLUDED)}"]
    command += [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in LEFT_OUT]
    command += ["--customize-hook=rm -f " + " ".join(f'"$1/{name}"' for name in COPIED)]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH}
    process = start([*command, SUITE, str(archive.absolute())], env=environment, session=False, stderr=PIPE)
    try:
        _, said = process.communicate()
    except BaseException:
        process.terminate()  # it removes its folder; a second Ctrl-C may not find it still at that
        process.wait()
        raise
    if process.returncode:
        last = said.decode(errors="replace").splitlines()[-SHOWN:]
        raise SandboxError("mmdebstrap failed" + _advice() + ":\n" + "\n".join(last))


def _advice() -> str:
    return "" if os.geteuid() == 0 else " (it needs root, or unprivileged user namespaces and ids in /etc/subuid)"
