"""What is attached to a program, over real sockets, with a pipe for the program's input."""

from __future__ import annotations

import json
import os
import selectors
import socket
import struct
import termios
from collections.abc import Iterator
from fcntl import ioctl
from pathlib import Path

import pytest

from skerry.edge.agent.attaching import (
    END,
    HEAD,
    RESIZE,
    SOCKET,
    STDIN,
    STDOUT,
    Attachment,
)


def send_what_is_taken(bench: Bench, client: socket.socket, stream: bytes) -> int:
    """Send until nobody takes any more; return how much was."""
    sent = 0
    while sent < len(stream):
        try:
            sent += client.send(stream[sent : sent + 16 * 1024])
        except BlockingIOError:
            break
        bench.turn()
    return sent


def message(channel: int, content: bytes = b"") -> bytes:
    return HEAD.pack(channel, len(content)) + content


class Bench:
    """An attachment, its selector turned by hand, and both ends of the program's input."""

    def __init__(self, root: Path, *, once: bool = False, terminal: bool = False) -> None:
        self.root = root
        ours, theirs = os.openpty() if terminal else reversed(os.pipe())
        self.program = theirs
        self.attachment = Attachment(str(root), ours, terminal=terminal, once=once)
        self.selector = selectors.DefaultSelector()
        self.attachment.watch(self.selector)
        self.clients: list[socket.socket] = []

    def client(self) -> socket.socket:
        made = socket.socket(socket.AF_UNIX)
        made.settimeout(5)
        place = os.open(self.root, os.O_PATH)
        made.connect(f"/proc/self/fd/{place}/{SOCKET}")
        os.close(place)
        self.clients.append(made)
        self.turn()
        return made

    def turn(self) -> None:
        """Handle everything that is ready, until nothing is."""
        while ready := self.selector.select(0):
            for key, _ in ready:
                key.data.handle(key.fd)

    def close(self) -> None:
        self.attachment.close()
        for client in self.clients:
            client.close()
        self.selector.close()
        os.close(self.program)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.close()


def test_everybody_attached_sees_what_the_program_writes(bench: Bench) -> None:
    clients = [bench.client(), bench.client()]
    bench.attachment.received(STDOUT, b"hello")
    assert [client.recv(100) for client in clients] == [message(STDOUT, b"hello")] * 2


def test_input_reaches_the_program_in_order_however_it_is_cut(bench: Bench) -> None:
    client = bench.client()
    sent = message(STDIN, b"one ") + message(STDIN, b"two")
    for start in range(0, len(sent), 3):
        client.sendall(sent[start : start + 3])
        bench.turn()
    assert os.read(bench.program, 100) == b"one two"


def test_who_does_not_read_is_left_and_the_others_stay(bench: Bench) -> None:
    slow, fast = bench.client(), bench.client()
    chunk = bytes(64 * 1024)
    wanted = len(message(STDOUT, chunk))
    for _ in range(200):
        bench.attachment.received(STDOUT, chunk)
        got = 0
        while got < wanted:
            got += len(fast.recv(wanted - got))
    assert len(bench.attachment._clients) == 1
    slow.setblocking(True)
    taken = 0
    while part := slow.recv(1 << 20):
        taken += len(part)
    assert taken < 100 * wanted


def test_a_program_that_does_not_read_makes_its_input_wait_at_the_sender(bench: Bench) -> None:
    """Else whoever sends fills the memory of the process that keeps the container."""
    client = bench.client()
    client.setblocking(False)
    stream = message(STDIN, bytes(32 * 1024)) * 100
    sent = send_what_is_taken(bench, client, stream)
    assert sent < len(stream)
    assert len(bench.attachment._waiting) < 256 * 1024
    # When it reads again the sender may go on, and everything comes.
    got = 0
    while got < 100 * 32 * 1024:
        got += len(os.read(bench.program, 1 << 20))
        bench.turn()
        sent += send_what_is_taken(bench, client, stream[sent:])
    assert sent == len(stream)


def test_input_that_waits_when_its_sender_ends_is_not_lost_and_blocks_nobody(
    tmp_path: Path,
) -> None:
    """A program such as ``cat`` reads more only when its own output was read."""
    bench = Bench(tmp_path, once=True)
    client = bench.client()
    content = bytes(range(256)) * 300  # more than a pipe holds
    client.sendall(message(STDIN, content) + message(END))
    bench.turn()
    client.close()
    got = b""
    while part := os.read(bench.program, 10_000):
        got += part
        bench.turn()
    assert got == content
    bench.close()


def test_a_terminal_takes_more_than_it_holds_though_nothing_is_written(tmp_path: Path) -> None:
    bench = Bench(tmp_path, terminal=True)
    attributes = termios.tcgetattr(bench.program)
    attributes[3] &= ~(termios.ECHO | termios.ICANON)
    termios.tcsetattr(bench.program, termios.TCSANOW, attributes)
    client = bench.client()
    client.sendall(message(STDIN, b"x" * 30_000))
    bench.turn()
    got = 0
    while got < 30_000:
        got += len(os.read(bench.program, 10_000))
        bench.turn()
    bench.close()


def test_input_ends_with_the_first_who_gave_it_where_it_is_wanted_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path, once=True)
    client = bench.client()
    client.sendall(message(STDIN, b"last"))
    client.close()
    bench.turn()
    assert os.read(bench.program, 100) == b"last"
    assert os.read(bench.program, 100) == b""
    bench.close()


def test_input_goes_on_after_one_left_where_it_is_wanted_for_good(bench: Bench) -> None:
    first = bench.client()
    first.sendall(message(STDIN, b"one") + message(END))
    bench.turn()
    first.close()
    bench.turn()
    bench.client().sendall(message(STDIN, b" two"))
    bench.turn()
    assert os.read(bench.program, 100) == b"one two"


def test_a_terminal_has_the_size_it_is_given_and_nonsense_changes_nothing(tmp_path: Path) -> None:
    bench = Bench(tmp_path, terminal=True)
    client = bench.client()
    for content in (
        json.dumps({"Width": 120, "Height": 40}).encode(),
        b"{}",
        b"x",
        b'{"Width":[]}',
    ):
        client.sendall(message(RESIZE, content))
        bench.turn()
    rows, columns, *_ = struct.unpack("HHHH", ioctl(bench.program, termios.TIOCGWINSZ, bytes(8)))
    assert (rows, columns) == (40, 120)
    bench.close()


def test_the_socket_of_an_attempt_before_is_replaced(tmp_path: Path) -> None:
    for _ in range(2):
        bench = Bench(tmp_path)
        client = bench.client()
        bench.attachment.received(STDOUT, b"x")
        assert client.recv(100) == message(STDOUT, b"x")
        bench.close()
        assert client.fileno() == -1
