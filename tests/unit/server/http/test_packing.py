"""A stream packed as it goes: whatever was written can be read at once."""

from __future__ import annotations

import zlib

from hypothesis import given
from hypothesis import strategies as st

from skerry.server.http.packing import PackedSender


class Sink:
    """Keeps what is written."""

    closed = False
    queued_bytes = 7

    def __init__(self) -> None:
        self.written = b""
        self.drained = 0

    def write(self, chunk: bytes) -> None:
        self.written += chunk

    async def drain(self) -> None:
        self.drained += 1


def read(packed: bytes) -> bytes:
    """Unpack a stream of gzip members, the last of which may be open."""
    found = b""
    while packed:
        reader = zlib.decompressobj(31)
        found += reader.decompress(packed)
        packed = reader.unused_data
    return found


@given(st.lists(st.one_of(st.none(), st.binary(min_size=1, max_size=50)), max_size=12))
def test_everything_written_so_far_can_be_read_at_any_moment(steps: list[bytes | None]) -> None:
    sink, expected = Sink(), b""
    sender = PackedSender(sink)
    for step in steps:
        if step is None:
            sender.rest()
        else:
            sender.write(step)
            expected += step
        assert read(sink.written) == expected


def test_resting_twice_or_before_anything_writes_nothing() -> None:
    sink = Sink()
    sender = PackedSender(sink)
    sender.rest()
    assert sink.written == b""
    sender.write(b"a")
    sender.rest()
    before = sink.written
    sender.rest()
    assert sink.written == before


async def test_everything_else_is_the_inner_senders() -> None:
    sink = Sink()
    sender = PackedSender(sink)
    await sender.drain()
    assert (sink.drained, sender.closed, sender.queued_bytes) == (1, False, 7)
