"""What the kernel does for us that Python has no function for, without what takes milliseconds to import."""

import ctypes
import os
import struct

NEW_NAMESPACES, NEW_PROCESSES, NEW_NETWORK = 0x20000 | 0x8000000, 0x20000000, 0x40000000  # of unshare(2): mount, ipc
READ_ONLY, NO_SUID, NO_DEV, NO_EXEC, REMOUNT, BIND = 1, 2, 4, 8, 1 << 5, 1 << 12  # of mount(2)
PRIVATE, DETACH = 1 << 18 | 1 << 14, 2
SET_SECCOMP, FILTER_MODE, SET_NO_NEW_PRIVS = 22, 2, 38  # of prctl(2)
CAPABILITIES = 0x20080522  # version 3 of capset(2)
SET_INTERFACE_FLAGS, UP, INTERNET, DATAGRAM = 0x8914, 1, 2, 2  # of netdevice(7) and socket(2)
libc = ctypes.CDLL(None, use_errno=True)


def check(result, what):
    """Raise the error of a failed call of the C library."""
    if result:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def mount(source, target, kind, flags, options=""):
    """Make a file system appear at a folder."""
    check(
        libc.mount(os.fsencode(source), os.fsencode(target), kind.encode(), flags, options.encode()), f"mount {target}"
    )


def raise_loopback():
    """Switch on the loopback interface of a new network namespace."""
    any_socket = libc.socket(INTERNET, DATAGRAM, 0)
    check(any_socket < 0, "a socket")
    check(libc.ioctl(any_socket, SET_INTERFACE_FLAGS, struct.pack("16sh22x", b"lo", UP)), "switch on loopback")
    os.close(any_socket)


def drop_capabilities():
    """Give up every capability of this process."""
    header, nothing = struct.pack("Ii", CAPABILITIES, 0), bytes(24)
    check(libc.capset(header, nothing), "give up capabilities")


def install_filter(program):
    """Have the kernel check every system call from now on; `program` is an array of `struct sock_filter`."""
    if not program:
        return
    code = ctypes.create_string_buffer(program, len(program))
    filters = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))
    check(libc.prctl(SET_NO_NEW_PRIVS, 1, 0, 0, 0), "give up new privileges")
    check(libc.prctl(SET_SECCOMP, FILTER_MODE, filters, 0, 0), "filter system calls")
