"""The candidate's files: written and read below one folder, never through a symbolic link."""

import contextlib
import errno
import os
import stat

from jail_bytes import Broken, read_exactly, write_all


def unpack(folder, entries, body, wanted=None):
    """Write the wanted `[path, kind, size, mtime]` entries into a folder where no program runs yet; mtime 0 is now.

    Symbolic links come last, so that nothing is written through one.
    """
    position, links, known = 0, [], {""}
    for path, kind, size, mtime in entries:
        content, position = body[position : position + size], position + size
        if wanted and not wanted(path):
            continue
        parent = path if kind == "folder" else path.rpartition("/")[0]
        if parent not in known:
            os.makedirs(f"{folder}/{parent}", exist_ok=True)  # noqa: PTH103 - pathlib is slow to import
            known.add(parent)
        if kind == "link":
            links.append((path, bytes(content)))
        elif kind != "folder":
            mode = 0o755 if kind == "executable" else 0o644
            fd = create(f"{folder}/{path}", mode)
            write_all(fd, content)
            if mtime:
                os.utime(fd, (mtime, mtime))
            os.close(fd)
    for path, target in links:
        make_room(f"{folder}/{path}")
        os.symlink(target, os.fsencode(f"{folder}/{path}"))  # noqa: PTH211


def is_covered(path, roots):
    """Whether a path is one of those roots, or below one."""
    while path and path not in roots:
        path = path.rpartition("/")[0]
    return bool(path)


def folders_above(roots):
    """The folders that lead to these paths, outer ones first."""
    found = set()
    for path in roots:
        while path := path.rpartition("/")[0]:
            found.add(path)
    return sorted(found)


def forbid_writing(folder, entries, roots):
    """Take the right to write from the files below the roots; who owns them can take it back."""
    for path, kind, *_ in entries:
        if kind in ("file", "executable") and is_covered(path, roots):
            os.chmod(f"{folder}/{path}", 0o555 if kind == "executable" else 0o444)  # noqa: PTH101


def create(path, mode):
    """Open a new file, in the place of any older one."""
    try:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        make_room(path)
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)


def make_room(path):
    """Remove what is in the way of a new file, such as a folder in which `prepare` has built something."""
    if not os.path.isdir(path) or os.path.islink(path):  # noqa: PTH112, PTH114
        if os.path.lexists(path):
            os.unlink(path)  # noqa: PTH108
        return
    found = list(walk(path))
    for top, folders, names in reversed(found):  # what is in a folder comes after it
        for name in (*names, *(each for each in folders if os.path.islink(f"{top}/{each}"))):  # noqa: PTH114
            os.unlink(f"{top}/{name}")  # noqa: PTH108
        os.rmdir(top)  # noqa: PTH106


def walk(folder, onerror=None):
    """What `os.walk` gives, which recurses in Python 3.11: programs nest folders deeper than Python nests calls."""
    waiting = [folder]
    while waiting:
        top = waiting.pop()
        folders, names = [], []
        try:
            with os.scandir(top) as found:
                for each in found:
                    (folders if is_folder(each) else names).append(each.name)
        except OSError as error:
            if onerror:
                onerror(error)
            continue
        yield top, folders, names
        waiting += [f"{top}/{each}" for each in reversed(folders) if not os.path.islink(f"{top}/{each}")]  # noqa: PTH114


def is_folder(entry):
    """Whether an entry is a folder, or a link to one."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def remove(folder, paths):
    """Remove files from a folder in which no program runs yet, and the folders that this empties."""
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{folder}/{path}")  # noqa: PTH108
        while path := path.rpartition("/")[0]:
            try:
                os.rmdir(f"{folder}/{path}")  # noqa: PTH106
            except OSError:
                break


def pack(folder, most, without=(), lenient=False):
    """Entries and contents of a whole folder, as `unpack` takes them, of `most` bytes in all; `without` are left out.

    A lenient look breaks off nowhere: what is too large, cannot be read or is neither a file nor a link is an entry of
    the kind "other", without content, and names that are not UTF-8 are left out.
    """
    entries, contents, closed = [], [], []
    for top, folders, names in walk(folder, lambda error: closed.append(error.filename)):
        at = top[len(folder) + 1 :] + "/" if len(top) > len(folder) else ""
        folders[:] = [each for each in folders if at + each not in without]
        for name in (*names, *(each for each in folders if os.path.islink(f"{top}/{each}"))):  # noqa: PTH114
            if not is_text(at + name):
                if lenient:
                    continue
                raise Broken("crashed", f"the name of a file is not UTF-8: {ascii(at + name)}; rename it")
            try:
                kind, content, changed = read_entry(f"{top}/{name}", most)
            except (Broken, OSError):
                if not lenient:
                    raise
                kind, content, changed = "other", b"", 0
            if kind != "other" or lenient:
                entries.append([at + name, kind, len(content), changed])
                contents.append(content)
                most -= len(content)
        if at and not folders and not names:
            entries.append([at[:-1], "folder", 0, 0])
    if lenient:
        entries += [[each[len(folder) + 1 :], "other", 0, 0] for each in closed if is_text(each)]
    return entries, b"".join(contents)


def is_text(name):
    """Whether a name is what every file system takes, and an answer can hold."""
    try:
        return bool(name.encode())
    except UnicodeEncodeError:
        return False


def read_entry(path, most):
    """Kind, content and time of the last change of what is there; "other" for what is neither a file nor a link."""
    about = os.lstat(path)
    changed = max(0, int(about.st_mtime))
    if stat.S_ISLNK(about.st_mode):
        return "link", os.fsencode(os.readlink(path)), changed  # noqa: PTH115
    if not stat.S_ISREG(about.st_mode):
        return "other", b"", changed
    if about.st_size > most:
        raise Broken("output-limit", f"its folder has more than the bytes allowed, at {path}")
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        return "executable" if about.st_mode & 0o100 else "file", read_exactly(fd, about.st_size), changed
    finally:
        os.close(fd)


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
