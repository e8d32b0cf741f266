"""Have the files of the workspace judged as they are now, by the engine.

Usage: evaluate. It takes as long as an evaluation takes. Exit code 0: valid; 1: not valid; 2: not judged.
"""

import json
import os
import socket
import sys
from pathlib import Path


def packed(top, without):
    """The files and links of a folder: the size of their list in four bytes, the list as JSON, the contents.

    Folders whose names are in `without` are left out.
    """
    entries, contents = [], []
    for folder, folders, names in os.walk(top):
        folders[:] = [name for name in folders if name not in without]
        for name in names:
            path = Path(folder, name)
            if not is_text(str(path)):
                continue
            if path.is_symlink():
                kind, content = "link", os.fsencode(path.readlink())
            elif path.is_file():
                kind, content = "executable" if path.stat().st_mode & 0o100 else "file", path.read_bytes()
            else:
                kind, content = "other", b""
            entries.append([str(path.relative_to(top)), kind, len(content), 0])
            contents.append(content)
    listed = json.dumps(entries).encode()
    return b"".join([len(listed).to_bytes(4), listed, *contents])


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
    """Arguments: the port, the workspace, names of folders to leave out, and the caller's, of which there are none."""
    port, workspace, without, *rest = sys.argv[1:]
    if rest:
        print(__doc__)
        sys.exit(0 if rest[0] in ("-h", "--help") else 2)
    try:
        said = asked(int(port), packed(workspace, without.split()))
    except OSError:
        said = b""
    print(said[1:].decode(errors="replace") or "Nothing can be evaluated any more: the session is over.")
    sys.exit(said[0] if said else 2)


if __name__ == "__main__":
    main()
