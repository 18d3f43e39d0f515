from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.runtime.transport import (
    MAX_LINE_BYTES,
    AnswerTimeout,
    ConnectionLost,
    TransportError,
    Unreachable,
    lines,
)


async def chunked(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def records(*chunks: bytes) -> list[bytes]:
    return [line async for line in lines(chunked(*chunks))]


@given(
    texts=st.lists(st.binary(min_size=1, max_size=5).filter(lambda text: b"\n" not in text)),
    cuts=st.lists(st.integers(0, 40)),
)
def test_records_are_the_same_however_they_are_cut(texts: list[bytes], cuts: list[int]) -> None:
    whole = b"".join(text + b"\n" for text in texts)
    at = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    chunks = [whole[start:end] for start, end in pairwise(at)]
    assert asyncio.run(records(*chunks)) == texts


async def test_a_record_without_its_newline_was_cut_off_and_is_no_event() -> None:
    assert await records(b'{"a":1}\n{"b"', b":2") == [b'{"a":1}']


async def test_empty_lines_keep_a_stream_alive_and_mean_nothing() -> None:
    assert await records(b"\n\na\n", b"\n") == [b"a"]


async def test_a_stream_without_newlines_is_refused_before_it_fills_the_memory() -> None:
    chunk = bytes(MAX_LINE_BYTES // 2)
    taken = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal taken
        while True:
            taken += 1
            yield chunk

    with pytest.raises(TransportError, match="want newline-separated records"):
        async for _ in lines(endless()):
            pass
    assert taken == 3


@pytest.mark.parametrize("kind", [Unreachable, ConnectionLost, AnswerTimeout])
def test_who_handles_a_failed_transport_handles_every_kind_of_it(
    kind: type[TransportError],
) -> None:
    assert issubclass(kind, TransportError)
