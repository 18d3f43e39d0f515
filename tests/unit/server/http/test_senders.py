"""What a stream writes to: framed chunks, or a connection of its own that is not overrun."""

from __future__ import annotations

import asyncio

from skerry.server.http.senders import ChunkedSender, ConnectionDuplex


class Connection:
    """Remembers what was written, and whether the peer is made to wait."""

    def __init__(self) -> None:
        self.written = b""
        self.closed = False
        self.reading_paused = False
        self.queued_bytes = 7
        self.drained = 0

    def write(self, chunk: bytes) -> None:
        self.written += chunk

    async def drain(self) -> None:
        self.drained += 1

    def pause_reading(self) -> None:
        self.reading_paused = True

    def resume_reading(self) -> None:
        self.reading_paused = False


async def test_chunks_are_framed_and_an_empty_one_does_not_end_the_answer() -> None:
    line = Connection()
    sender = ChunkedSender(line)
    sender.write(b"hello world, hello")
    sender.write(b"")
    assert line.written == b"12\r\nhello world, hello\r\n"
    await sender.drain()
    assert (line.drained, sender.queued_bytes, sender.closed) == (1, 7, False)


async def test_what_arrives_is_read_in_order() -> None:
    duplex = ConnectionDuplex(Connection())
    duplex.feed(b"a")
    duplex.feed(b"b")
    assert [await duplex.read(), await duplex.read()] == [b"a", b"b"]


async def test_a_reader_waits_for_more_and_hears_of_the_end() -> None:
    line = Connection()
    duplex = ConnectionDuplex(line)
    reading = asyncio.ensure_future(duplex.read())
    await asyncio.sleep(0)
    assert not reading.done()
    duplex.feed(b"x")
    assert await reading == b"x"
    line.closed = True
    assert await duplex.read() == b""
    duplex.write(b"y")
    assert line.written == b"y"


async def test_a_peer_that_is_far_ahead_waits_until_its_reader_has_caught_up() -> None:
    line = Connection()
    duplex = ConnectionDuplex(line)
    half = b"x" * (600 * 1024)
    duplex.feed(half)
    assert not line.reading_paused
    duplex.feed(half)
    assert line.reading_paused
    await duplex.read()
    assert not line.reading_paused
