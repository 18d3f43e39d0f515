"""A container's input, and its output as it comes: the shim's side of ``kubectl attach``.

A container that wants input (``stdin``, ``tty``) has a socket in its directory. Whoever connects
there is sent what the program writes, and may write to it. Both ways, messages are one byte for
the channel, four for the length, and the content; channels are those of ``kubectl exec``.

Nobody may hold the program up: who does not read what it writes is left. Nor may the program hold
its keeper up: input that it does not take waits here, and while some does no more is read, so that
it waits with its sender. Nothing here ever blocks: a program that waits for its output to be read
before it reads more would otherwise wait for ever.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import selectors
import socket
import struct
import termios
from typing import Any

SOCKET = "attach.sock"
STDIN, STDOUT, STDERR, RESIZE, END = 0, 1, 2, 4, 255
HEAD = struct.Struct("!BI")
_CHUNK = 64 * 1024
# The end of input, as a terminal gets it.
_END_OF_TRANSMISSION = b"\x04"


class Attachment:
    """What is attached to one program."""

    def __init__(self, directory: str, target: int, *, terminal: bool, once: bool) -> None:
        """*target* is where the program's input is written; *once*: it ends with the first."""
        self._target: int | None = target
        self._terminal = terminal
        self._once = once
        self._waiting = b""
        # Whether the end of input comes after what waits, and whether nobody is read meanwhile.
        self._ending = False
        self._paused = False
        # A terminal is watched for output under its own number, by whoever logs that.
        self._writable = os.dup(target) if terminal else target
        self._clients: dict[int, tuple[socket.socket, bytearray]] = {}
        os.set_blocking(target, False)
        self._selector: selectors.BaseSelector | None = None
        # By a short way: the whole path may be longer than a socket's name can be.
        place = os.open(directory, os.O_PATH)
        self._listening = socket.socket(socket.AF_UNIX)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{directory}/{SOCKET}")
        self._listening.bind(f"/proc/self/fd/{place}/{SOCKET}")
        os.close(place)
        self._listening.listen(8)
        self._listening.setblocking(False)

    def watch(self, selector: selectors.BaseSelector) -> None:
        """Have events of the sockets passed to ``handle`` by whoever owns *selector*."""
        self._selector = selector
        selector.register(self._listening, selectors.EVENT_READ, self)

    def close(self) -> None:
        """Leave everybody."""
        for client, _ in list(self._clients.values()):
            self._leave(client)
        if self._selector is not None:
            self._selector.unregister(self._listening)
        self._listening.close()
        self._close_input()

    def received(self, channel: int, data: bytes) -> None:
        """Send what the program wrote to everybody attached."""
        if self._waiting:
            self._write()  # whoever writes has often just read
        message = HEAD.pack(channel, len(data)) + data
        for client, _ in list(self._clients.values()):
            try:
                sent = client.send(message)
            except OSError:
                sent = 0
            if sent < len(message):
                self._leave(client)

    def handle(self, descriptor: int) -> None:
        """Take what one of the sockets has to say."""
        if descriptor == self._listening.fileno():
            with contextlib.suppress(OSError):
                client, _ = self._listening.accept()
                client.setblocking(False)
                client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
                self._clients[client.fileno()] = (client, bytearray())
                if not self._paused:
                    self._register(client.fileno())
        elif descriptor in self._clients:
            self._read(*self._clients[descriptor])
        else:
            self._write()

    def _register(self, descriptor: int, events: int = selectors.EVENT_READ) -> None:
        if self._selector is not None:
            self._selector.register(descriptor, events, self)

    def _read(self, client: socket.socket, pending: bytearray) -> None:
        try:
            data = client.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._leave(client)
            return
        pending += data
        while len(pending) >= HEAD.size:
            channel, size = HEAD.unpack_from(pending)
            if len(pending) < HEAD.size + size:
                return
            content = bytes(pending[HEAD.size : HEAD.size + size])
            del pending[: HEAD.size + size]
            self._message(channel, content)

    def _pause(self) -> None:
        """Read nobody until the program has taken what waits; they notice by their own socket."""
        if not self._paused and self._selector is not None:
            self._paused = True
            for descriptor in self._clients:
                self._selector.unregister(descriptor)

    def _resume(self) -> None:
        if self._paused:
            self._paused = False
            for descriptor in self._clients:
                self._register(descriptor)

    def _message(self, channel: int, content: bytes) -> None:
        if channel == STDIN and self._target is not None:
            self._waiting += content
            self._write()
        elif channel == RESIZE and self._terminal and self._target is not None:
            with contextlib.suppress(ValueError, KeyError, TypeError, OSError, struct.error):
                size: dict[str, Any] = json.loads(content)
                packed = struct.pack("HHHH", int(size["Height"]), int(size["Width"]), 0, 0)
                fcntl.ioctl(self._target, termios.TIOCSWINSZ, packed)
        elif channel == END:
            self._end_input()

    def _write(self) -> None:
        """Give the program as much as it takes; the rest when it takes more."""
        target, selector = self._target, self._selector
        if target is None or selector is None:
            return
        try:
            self._waiting = self._waiting[os.write(target, self._waiting) :]
        except BlockingIOError:
            pass
        except OSError:
            self._waiting = b""  # it does not listen any more
        asked = self._writable in selector.get_map()
        if self._waiting:
            self._pause()
            if not asked:
                self._register(self._writable, selectors.EVENT_WRITE)
            return
        if asked:
            selector.unregister(self._writable)
        if self._ending:
            self._close_input()
        self._resume()

    def _leave(self, client: socket.socket) -> None:
        self._clients.pop(client.fileno(), None)
        if self._selector is not None:
            with contextlib.suppress(KeyError):
                self._selector.unregister(client)
        client.close()
        if self._once and not self._clients:
            self._end_input()

    def _end_input(self) -> None:
        """Tell the program that no more comes, if only one was to give it input."""
        if not self._once or self._target is None:
            return
        if self._terminal:
            self._waiting += _END_OF_TRANSMISSION
        else:
            self._ending = True
        self._write()

    def _close_input(self) -> None:
        if self._target is None:
            return
        if self._selector is not None and self._writable in self._selector.get_map():
            self._selector.unregister(self._writable)
        # Of a terminal only our own number for it: its output is still to be read.
        os.close(self._writable)
        self._target = None


def take_terminal() -> None:
    """Make the terminal that is the standard input the session's own."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
