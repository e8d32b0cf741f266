"""The candidate's files: written and read below one folder, never through a symbolic link."""

import contextlib
import errno
import os
import stat

from jail_bytes import Broken, read_exactly, write_all


def unpack(folder, entries, body):
    """Write `[path, kind, size]` entries; symbolic links come last, so that nothing is written through one."""
    position, links = 0, []
    for path, kind, size in entries:
        content, position = body[position : position + size], position + size
        if kind == "link":
            links.append((path, content))
        elif kind == "folder":
            os.close(open_folder(folder, path.split("/")))
        else:
            write_file(folder, path, content, 0o755 if kind == "executable" else 0o644)
    for path, target in links:
        *parents, name = path.split("/")
        parent = open_folder(folder, parents)
        os.symlink(target, os.fsencode(name), dir_fd=parent)
        os.close(parent)


def write_files(folder, entries, body):
    """Write the `[path, size]` entries of a run; what is left of the body is its standard input."""
    position = 0
    for path, size in entries:
        write_file(folder, path, body[position : position + size], 0o644)
        position += size
    return body[position:]


def write_file(folder, path, content, mode):
    """Write a new file below the folder, in the place of any older one, following no symbolic link."""
    *parents, name = path.split("/")
    parent = open_folder(folder, parents)
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=parent)
        fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode, dir_fd=parent)
        try:
            write_all(fd, content)
        finally:
            os.close(fd)
    finally:
        os.close(parent)


def read_files(folder, paths, most):
    """Path -> content of the regular files among `paths`, following no symbolic link, of `most` bytes in all."""
    contents = {}
    for path in paths:
        try:
            fd = open_regular(folder, path)
        except OSError:  # absent, or no regular file: not in the answer
            continue
        try:
            size = os.fstat(fd).st_size
            if size > most:
                raise Broken("output-limit", f"the file {path} has {size} bytes, more than the {most} allowed")
            contents[path] = read_exactly(fd, size)
        finally:
            os.close(fd)
        most -= size
    return contents


def open_regular(folder, path):
    """Open a regular file below the folder for reading."""
    *parents, name = path.split("/")
    parent = open_folder(folder, parents, create=False)
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=parent)
    finally:
        os.close(parent)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "not a regular file", path)
    return fd


def open_folder(folder, names, create=True):
    """Open a folder below another one step by step, following no symbolic link."""
    current = os.dup(folder)
    for name in names:
        try:
            if create:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, dir_fd=current)
            following = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=current)
        finally:
            os.close(current)
        current = following
    return current
