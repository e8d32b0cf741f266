"""A shell for one connection from the host: sent into a sandbox, it listens there and serves whoever connects first.

Arguments: the port, `terminal` or `pipes`, rows, columns, the value of TERM. Frames in both directions are a letter, a
length (two bytes, big-endian) and as many bytes. From the host: `d` for input, `e` for its end, `s` for the size of the
terminal (rows and columns, two bytes each). From here: `t` or `p` first, for a terminal or mere pipes, `d` for output,
`x` with the exit code (one byte) at the end. Standard library only.
"""

import fcntl
import os
import pty
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading

HEAD = struct.Struct(">cH")
MOST = 32768


def main():
    """Serve one shell."""
    port, wish, rows, columns, term = sys.argv[1:]
    with socket.create_server(("127.0.0.1", int(port))) as server:
        connection, _ = server.accept()
    environment = {**os.environ, "TERM": term, "PS1": "sandbox$ "}
    shell = on_terminal(environment, int(rows), int(columns)) if wish == "terminal" else None
    kind, pid, into, out = shell or on_pipes(environment, wish == "terminal")
    send(connection, kind)
    threading.Thread(target=feed, args=(connection, kind, pid, into), daemon=True).start()
    code = relay(connection, pid, out)
    send(connection, b"x", bytes([code]))
    connection.shutdown(socket.SHUT_WR)


def on_terminal(environment, rows, columns):
    """A shell on a terminal of its own; None where the sandbox has none."""
    try:
        pid, master = pty.fork()
    except OSError:
        return None
    if not pid:
        os.execvpe("sh", ["sh", "-i"], environment)
    resize(master, rows, columns)
    return b"t", pid, master, master


def on_pipes(environment, asking):
    """A shell on pipes, which prompts where somebody is `asking`."""
    (theirs_in, into), (out, theirs_out) = os.pipe(), os.pipe()
    shell = subprocess.Popen(
        ["sh", "+m", "-i"] if asking else ["sh"],  # without a terminal no jobs, and no complaint of that
        stdin=theirs_in,
        stdout=theirs_out,
        stderr=theirs_out,
        env=environment,
        start_new_session=True,
    )
    os.close(theirs_in)
    os.close(theirs_out)
    return b"p", shell.pid, into, out


def resize(master, rows, columns):
    """Tell the programs on the terminal how large it is."""
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def feed(connection, kind, pid, into):
    """Give the shell what comes from the host, until that is gone: then the shell hangs up."""
    while head := exactly(connection, HEAD.size):
        what, size = HEAD.unpack(head)
        data = exactly(connection, size)
        try:
            if what == b"d":
                while data:
                    data = data[os.write(into, data) :]
            elif what == b"s":
                resize(into, *struct.unpack(">HH", data))
            elif kind == b"t":
                os.write(into, b"\x04")
            else:
                os.close(into)
        except OSError:  # the shell takes nothing any more
            pass
    os.killpg(pid, signal.SIGHUP)


def relay(connection, pid, out):
    """Send what the shell and its programs print, until the shell has ended; its exit code as shells give it."""
    ended = None
    while True:
        ready, _, _ = select.select([out], [], [], 0.05)
        if ready:
            try:
                data = os.read(out, MOST)
            except OSError:  # what a terminal gives when nobody has it open any more
                data = b""
            if data:
                send(connection, b"d", data)
                continue
            ended = ended or os.waitpid(pid, 0)
        elif ended is None:
            done, status = os.waitpid(pid, os.WNOHANG)
            ended = (done, status) if done else None
            continue
        if ended:
            code = os.waitstatus_to_exitcode(ended[1])
            return code if code >= 0 else 128 - code


def send(connection, what, data=b""):
    """One frame."""
    connection.sendall(HEAD.pack(what, len(data)) + data)


def exactly(connection, size):
    """So many bytes; fewer when the connection ends."""
    data = b""
    while len(data) < size and (piece := connection.recv(size - len(data))):
        data += piece
    return data


main()
