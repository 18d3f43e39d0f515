"""Streams share a tunnel without waiting for each other, and nobody holds more than a window."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.wire.tunnel import (
    DATA,
    DATA_BYTES,
    END,
    HEAD,
    OPEN,
    PING,
    PONG,
    RESET,
    WINDOW,
    WINDOW_BYTES,
    Frame,
    FrameReader,
    StreamReset,
    Tunnel,
    TunnelError,
    TunnelStream,
    frame,
)

_FRAMES = st.one_of(
    st.builds(
        Frame,
        st.sampled_from([OPEN, HEAD, DATA, RESET]),
        st.integers(0, 2**32 - 1),
        st.binary(max_size=300),
    ),
    st.builds(Frame, st.sampled_from([END, PING, PONG]), st.integers(0, 2**32 - 1), st.just(b"")),
)


class _Line:
    """One direction of a connection that never ends."""

    def __init__(self) -> None:
        self.receive: Callable[[bytes], None] = lambda _: None
        self.queued_bytes = 0
        self.written = 0

    def write(self, chunk: bytes) -> None:
        self.written += len(chunk)
        self.receive(chunk)

    async def drain(self) -> None:
        await asyncio.sleep(0)


class _Ends:
    """Both ends of a tunnel, connected."""

    def __init__(self, max_streams: int = 64) -> None:
        self.opened: list[TunnelStream] = []
        self.down, self.up = _Line(), _Line()
        self.hub = Tunnel(self.down, asyncio.Event)
        self.edge = Tunnel(self.up, asyncio.Event, self.opened.append, max_streams)
        self.down.receive, self.up.receive = self.edge.receive, self.hub.receive

    def open(self, opening: bytes = b"{}") -> tuple[TunnelStream, TunnelStream]:
        stream = self.hub.open(opening)
        return stream, self.opened[-1]


@given(st.lists(_FRAMES, max_size=8), st.data())
def test_frames_are_the_same_however_their_bytes_are_cut(
    frames: list[Frame], data: st.DataObject
) -> None:
    raw = b"".join(frame(*each) for each in frames)
    reader, found, at = FrameReader(), list[Frame](), 0
    while at < len(raw):
        size = data.draw(st.integers(1, len(raw) - at))
        found += reader.feed(raw[at : at + size])
        at += size
    assert found == frames


@pytest.mark.parametrize(
    "raw",
    [
        frame(99, 1),
        frame(DATA, 1, bytes(DATA_BYTES + 1)),
        frame(PING, 0, b"x"),
        frame(WINDOW, 1, bytes(5)),
    ],
)
def test_what_is_no_frame_is_refused_before_it_is_held(raw: bytes) -> None:
    with pytest.raises(TunnelError):
        list(FrameReader().feed(raw[:9]))


async def test_a_stream_carries_its_opening_its_answer_and_data_both_ways() -> None:
    ends = _Ends()
    here, there = ends.open(b"what is asked")
    assert there.opening == b"what is asked"
    there.answer(b"how it is answered")
    assert await here.answered() == b"how it is answered"
    await here.write(b"up")
    await there.write(b"down")
    assert (await there.read(), await here.read()) == (b"up", b"down")
    here.end()
    there.end()
    assert (await here.read(), await there.read()) == (b"", b"")
    assert (len(ends.hub), len(ends.edge)) == (0, 0)


async def test_what_was_sent_before_the_end_is_read_though_both_have_ended() -> None:
    ends = _Ends()
    here, there = ends.open()
    here.end()
    await there.write(b"the last of it")
    there.end()
    assert await here.read() == b"the last of it"
    assert await here.read() == b""


async def test_whoever_reads_nothing_holds_one_window_and_stops_nobody_else() -> None:
    ends = _Ends()
    stuck, at_edge = ends.open()
    lively, lively_at_edge = ends.open()
    async with asyncio.TaskGroup() as tasks:
        writing = tasks.create_task(at_edge.write(bytes(3 * WINDOW_BYTES)))
        while ends.up.written < WINDOW_BYTES:
            await asyncio.sleep(0)
        before = ends.up.written
        for _ in range(50):
            await lively_at_edge.write(b"a line")
            assert await lively.read() == b"a line"
        assert not writing.done()
        assert ends.up.written - before < 50 * 100
        held = sum(map(len, stuck._inbox))
        assert held == WINDOW_BYTES
        taken = 0
        while taken < 3 * WINDOW_BYTES:
            taken += len(await stuck.read())
    assert taken == 3 * WINDOW_BYTES


@settings(max_examples=30)
@given(st.lists(st.integers(1, 200_000), max_size=8))
def test_everything_arrives_in_order_through_any_number_of_windows(sizes: list[int]) -> None:
    pieces = [bytes([number % 256]) * size for number, size in enumerate(sizes)]

    async def carried() -> bytes:
        ends = _Ends()
        here, there = ends.open()
        found = b""

        async def write() -> None:
            for piece in pieces:
                await there.write(piece)
            there.end()

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(write())
            while piece := await here.read():
                found += piece
        return found

    assert asyncio.run(carried()) == b"".join(pieces)


async def test_more_than_there_is_room_for_costs_the_tunnel() -> None:
    ends = _Ends()
    ends.open()
    piece = frame(DATA, 1, bytes(DATA_BYTES))
    for _ in range(WINDOW_BYTES // DATA_BYTES):
        ends.hub.receive(piece)
    with pytest.raises(TunnelError, match="no room"):
        ends.hub.receive(piece)


@pytest.mark.parametrize(
    "raw",
    [
        frame(OPEN, 1, b"{}"),
        frame(DATA, 7, b"x"),
        frame(WINDOW, 1, b"\x7f\xff\xff\xff"),
        frame(HEAD, 1, b"{}") + frame(HEAD, 1, b"{}"),
        frame(END, 1) + frame(DATA, 1, b"x"),
    ],
)
async def test_a_side_that_breaks_the_rules_costs_the_tunnel(raw: bytes) -> None:
    ends = _Ends()
    ends.open()
    with pytest.raises(TunnelError):
        ends.hub.receive(raw)


async def test_frames_of_a_stream_that_is_over_are_passed_over() -> None:
    ends = _Ends()
    here, _ = ends.open()
    here.reset("enough")
    ends.hub.receive(frame(DATA, 1, b"was on its way"))
    assert len(ends.hub) == 0


async def test_a_reset_ends_reads_and_writes_with_its_reason() -> None:
    ends = _Ends()
    here, there = ends.open()
    async with asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(_reason(here.read()))
        writing = tasks.create_task(_reason(here.write(bytes(2 * WINDOW_BYTES))))
        await asyncio.sleep(0)
        there.reset("the pod has gone")
    assert (reading.result(), writing.result()) == ("the pod has gone",) * 2


async def _reason(work: object) -> str:
    try:
        await work  # type: ignore[misc]
    except StreamReset as error:
        return str(error)
    return ""


async def test_a_lost_tunnel_ends_every_stream_with_the_cause_and_opens_none() -> None:
    ends = _Ends()
    here, _ = ends.open()
    over: list[str] = []
    here.over = lambda: over.append("over")
    ends.hub.lose("the line was cut")
    ends.hub.lose("and again")
    with pytest.raises(StreamReset, match="the line was cut"):
        await here.read()
    with pytest.raises(StreamReset, match="the line was cut"):
        ends.hub.open(b"{}")
    assert over == ["over"]


async def test_one_stream_too_many_is_reset_and_the_others_go_on() -> None:
    ends = _Ends(max_streams=1)
    first, at_edge = ends.open()
    second = ends.hub.open(b"{}")
    with pytest.raises(StreamReset, match="too many"):
        await second.answered()
    at_edge.answer(b"{}")
    assert await first.answered() == b"{}"


async def test_a_ping_is_answered_unless_the_other_side_takes_nothing() -> None:
    ends = _Ends()
    heard: list[bytes] = []
    ends.up.receive = heard.append
    ends.hub.ping()
    assert heard == [frame(PONG)]
    ends.up.queued_bytes = 2 << 20
    ends.hub.ping()
    assert heard == [frame(PONG)]


@pytest.mark.parametrize(
    ("comes", "why"),
    [
        ([frame(PING), b""], "the connection has ended"),
        ([frame(PING), TimeoutError()], "the edge was silent for too long"),
        ([frame(DATA, 7, b"x")], "the edge broke the protocol: stream 7: was never opened"),
    ],
)
async def test_what_comes_is_taken_until_it_ends_and_the_end_has_a_cause(
    comes: list[bytes | Exception], why: str
) -> None:
    line, left = _Line(), iter(comes)

    async def read() -> bytes:
        found = next(left)
        if isinstance(found, Exception):
            raise found
        return found

    assert await Tunnel(line, asyncio.Event).hear(read, "the edge") == why
