"""SPDY frames, both ways, against a small client written from the draft."""

from __future__ import annotations

import contextlib
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.wire.spdy import (
    DICTIONARY,
    Asked,
    Event,
    Finished,
    Opened,
    Received,
    Spdy,
    SpdyError,
)
from tests.kit.server.spdy import Client, control


def heard(data: bytes, spdy: Spdy | None = None) -> list[Event]:
    return list((spdy or Spdy()).receive(data))


def test_the_dictionary_is_the_drafts() -> None:
    assert len(DICTIONARY) == 1423
    # Adler's sum of it is what every compressed block names; 0xE3C6A7C2 in all implementations.
    assert zlib.adler32(DICTIONARY) == 0xE3C6A7C2


def test_streams_are_opened_with_headers_one_after_another() -> None:
    client, spdy = Client(), Spdy()
    first = heard(client.open(1, streamType="error", port="80"), spdy)
    second = heard(client.open(3, streamType="data", port="80", last=True), spdy)
    assert first == [Opened(1, {"streamtype": "error", "port": "80"})]
    assert second == [Opened(3, {"streamtype": "data", "port": "80"}), Finished(3)]


def test_data_ends_and_pings_are_understood() -> None:
    assert heard(Spdy.sent(3, b"abc", last=True)) == [Received(3, b"abc"), Finished(3)]
    assert heard(Spdy.reset(3)) == [Finished(3, reset=True)]
    ping = control(6, b"\0\0\0\1")
    assert heard(ping) == [Asked(ping)]
    assert heard(control(4, b"\0\0\0\0") + Spdy.farewell()) == []


@given(st.lists(st.binary(max_size=40), max_size=6), st.integers(1, 7))
def test_where_the_bytes_are_cut_does_not_matter(chunks: list[bytes], size: int) -> None:
    text = b"".join(Spdy.sent(5, chunk) for chunk in chunks)
    spdy = Spdy()
    found = [e for n in range(0, len(text), size) for e in spdy.receive(text[n : n + size])]
    assert found == [Received(5, chunk) for chunk in chunks if chunk]


@pytest.mark.parametrize(
    "data",
    [
        struct.pack("!HHI", 0x8002, 1, 0),
        control(1, b""),
        control(1, struct.pack("!IIBB", 1, 0, 0, 0) + b"nonsense"),
        struct.pack("!II", 1, 0xFFFFFF),
    ],
)
def test_what_breaks_the_protocol_is_refused(data: bytes) -> None:
    with pytest.raises(SpdyError):
        heard(data)


@given(st.binary(max_size=60))
def test_nothing_else_than_that_comes_of_noise(data: bytes) -> None:
    with contextlib.suppress(SpdyError):
        heard(data)


def test_what_one_side_opens_the_other_finds_opened() -> None:
    client, server = Spdy(), Spdy()
    headers = {"streamtype": "data", "port": "80", "requestid": "0"}
    raw = client.opened(1, {**headers, "streamtype": "error"}, last=True)
    raw += client.opened(3, headers)
    events = list(server.receive(raw))
    error = Opened(1, {**headers, "streamtype": "error"})
    assert events == [error, Finished(1), Opened(3, headers)]
    # A reply says nothing, and later ones are read by what it said.
    assert list(client.receive(server.accepted(1) + server.accepted(3))) == []
    assert list(client.receive(server.sent(3, b"hello"))) == [Received(3, b"hello")]
