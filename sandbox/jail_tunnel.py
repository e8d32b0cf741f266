"""Byte streams between the host and servers inside: the host's client talks to a port of our loopback interface."""

import contextlib
import os
import select
import struct

from jail_bytes import CHUNK

ABORT = struct.pack("ii", 1, 0)  # as SO_LINGER: a port is free at once
MOST_WAITING = 1 << 20  # bytes that wait for the host, or the server, in one tunnel; buffers before us hold the rest


class Tunnels:
    """Connections to servers of the program, by number."""

    def __init__(self):
        self.sockets = {}
        self.outgoing = {}
        self.incoming = {}
        self.last = set()
        self.done = set()

    def connect(self, port):
        """The number of a new connection, None where nobody listens."""
        import socket

        for address in ("127.0.0.1", "::1"):
            try:
                connection = socket.create_connection((address, port), timeout=1)
            except OSError:
                continue
            if connection.getsockname() == connection.getpeername():  # nobody listens: chance gave us the port itself
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORT)
                connection.close()
                continue
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            number = connection.fileno()
            self.sockets[number] = connection
            self.quick(number)
            self.outgoing[number], self.incoming[number] = bytearray(), bytearray()
            return number
        return None

    def send(self, number, data, last):
        """Queue bytes for the server; after the `last`, our half of the connection is closed."""
        if number in self.sockets:
            self.outgoing[number] += data
            if last:
                self.last.add(number)
            self.write(number)

    def receive(self, number):
        """What has come from the server since the last time."""
        data = bytes(self.incoming.get(number, b""))
        if data:
            self.incoming[number] = bytearray()
        return data

    def ended(self, number):
        """Whether the server has closed the connection and everything was received."""
        return number not in self.sockets or (number in self.done and not self.incoming[number])

    def full(self, number):
        """Whether the server has so much left to take that more should not come."""
        return len(self.outgoing.get(number, b"")) >= MOST_WAITING

    def forget(self, number):
        """Close a connection that has ended: an open socket counts as memory of the session."""
        if connection := self.sockets.pop(number, None):
            connection.close()
            del self.outgoing[number], self.incoming[number]
            self.last.discard(number)
            self.done.discard(number)

    def interests(self):
        """File descriptor -> events to poll for."""
        wanted = {}
        for number in self.sockets:
            reading = number not in self.done and len(self.incoming[number]) < MOST_WAITING
            events = (select.POLLIN if reading else 0) | (select.POLLOUT if self.outgoing[number] else 0)
            if events:
                wanted[number] = events
        return wanted

    def move(self, number):
        """Read from and write to a connection that is ready."""
        self.write(number)
        try:
            data = os.read(number, CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self.quick(number)
        self.incoming[number] += data
        if not data:
            self.done.add(number)

    def quick(self, number):
        """Acknowledge at once, since servers that write in small pieces wait for it."""
        import socket

        with contextlib.suppress(OSError):
            self.sockets[number].setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)

    def write(self, number):
        """Write what the connection takes."""
        import socket

        waiting = self.outgoing[number]
        try:
            while waiting:
                del waiting[: os.write(number, waiting[:CHUNK])]
            if number in self.last:
                self.last.discard(number)
                self.sockets[number].shutdown(socket.SHUT_WR)
        except BlockingIOError:
            return
        except OSError:
            self.done.add(number)
            waiting.clear()

    def close(self):
        """Close all connections."""
        for connection in self.sockets.values():
            connection.close()
        self.__init__()
