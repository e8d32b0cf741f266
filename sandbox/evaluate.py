"""Have the engine look at the files of the workspace as they are now.

Usage:
  measure [PAIRS]   run the tests, then measure the files in turns with the last step and the seed; costs no evaluation
  keep TITLE        make the files a step of its own, a candidate on which you and others build
  profile           say where their time goes
  evaluate          evaluate them as candidates are; it takes as long as an evaluation takes

Exit code 0: done, and the files are valid; 1: they are not valid; 2: nothing was done.
"""

import json
import os
import socket
import sys
from pathlib import Path

DEEPEST = 200
"""Folders in one another that are looked into; a candidate's have no more than half as many."""


def packed(top, without):
    """The files and links of a folder: the size of their list in four bytes, the list as JSON, the contents.

    Folders whose names are in `without` are left out.
    """
    entries, contents, closed = [], [], []
    for folder, folders, names in os.walk(top, onerror=lambda error: closed.append(error.filename)):
        if folder.count("/") - top.count("/") > DEEPEST:  # which `os.walk` would recurse into
            folders.clear()
            closed.append(folder)
        folders[:] = [name for name in folders if name not in without]
        for name in names:
            path = Path(folder, name)
            if not is_text(str(path)):
                continue
            kind, content = looked_into(path)
            entries.append([str(path.relative_to(top)), kind, len(content), 0])
            contents.append(content)
    entries += [[str(Path(each).relative_to(top)), "other", 0, 0] for each in closed if is_text(each)]
    listed = json.dumps(entries).encode()
    return b"".join([len(listed).to_bytes(4), listed, *contents])


def looked_into(path):
    """Kind and content of what is at a path; "other" for what cannot be read, too."""
    try:
        if path.is_symlink():
            return "link", os.fsencode(path.readlink())
        if path.is_file():
            return "executable" if path.stat().st_mode & 0o100 else "file", path.read_bytes()
    except OSError:
        pass
    return "other", b""


def is_text(name):
    """Whether a name is one that Git takes."""
    try:
        return bool(name.encode())
    except UnicodeEncodeError:
        return False


def asked(port, files):
    """What the engine answers: the exit code in a byte, and a text."""
    with socket.create_connection(("127.0.0.1", port)) as host:
        host.sendall(files)
        host.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: host.recv(65536), b""))


def main():
    """Arguments: what is wanted, the port, the workspace, names of folders to leave out, and the caller's."""
    name, port, workspace, without, *rest = sys.argv[1:]
    if rest[:1] in (["-h"], ["--help"]) or (rest and name in ("evaluate", "profile")) or (not rest and name == "keep"):
        print(__doc__)
        sys.exit(0 if rest[:1] in (["-h"], ["--help"]) else 2)
    wanted = " ".join([name, *rest]).replace("\n", " ").encode(errors="replace") + b"\n"
    files = wanted + packed(workspace, without.split())
    try:
        said = asked(int(port), files)
    except OSError:
        said = b""
    print(said[1:].decode(errors="replace") or "Nothing can be evaluated any more: the session is over.")
    sys.exit(said[0] if said else 2)


if __name__ == "__main__":
    main()
