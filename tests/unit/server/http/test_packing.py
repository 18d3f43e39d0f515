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
        self.writes = self.drained = 0

    def write(self, chunk: bytes) -> None:
        self.written += chunk
        self.writes += 1

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


Step = bytes | None | tuple[bytes]
_CHUNKS = st.one_of(st.binary(min_size=1, max_size=50), st.binary(min_size=500, max_size=600))


@given(st.lists(st.one_of(st.none(), _CHUNKS, st.tuples(_CHUNKS)), max_size=12))
def test_everything_written_so_far_can_be_read_at_any_moment(steps: list[Step]) -> None:
    sink, expected = Sink(), b""
    sender = PackedSender(sink)
    for step in steps:
        if step is None:
            sender.rest()
        elif isinstance(step, tuple):
            sender.write_last(step[0])
            expected += step[0]
        else:
            sender.write(step)
            expected += step
        assert read(sink.written) == expected


def test_what_is_written_last_goes_in_one_piece_and_nothing_is_held_after_it() -> None:
    for before, size in ((b"", 40), (b"", 4000), (b"a", 40)):
        sink = Sink()
        sender = PackedSender(sink)
        if before:
            sender.write(before)
        writes = sink.writes
        sender.write_last(b"b" * size)
        assert sink.writes == writes + 1
        sender.rest()
        assert sink.writes == writes + 1, "there is nothing to let go of"
        sender.write_last(b"c")
        assert read(sink.written) == before + b"b" * size + b"c"


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
