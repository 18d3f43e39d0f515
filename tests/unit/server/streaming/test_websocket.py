"""WebSocket messages, whole and in pieces, from well-behaved peers and others."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.api.errors import BadRequest
from skerry.server.http.message import Request
from skerry.server.streaming.websocket import WebSocket, WebSocketClosed, handshake
from tests.kit.server.websocket import Wire, frame, masked


@given(st.lists(st.binary(max_size=300), max_size=5), st.integers(1, 50))
@settings(max_examples=60, deadline=None)
async def test_messages_arrive_whole_however_the_bytes_are_cut(
    messages: list[bytes], size: int
) -> None:
    stream = b"".join(masked(2, message) for message in messages)
    wire = Wire(*(stream[n : n + size] for n in range(0, len(stream), size)))
    socket = WebSocket(wire)
    assert [await socket.receive() for _ in messages] == messages
    with pytest.raises(WebSocketClosed):
        await socket.receive()


async def test_fragments_are_joined_and_pings_answered_in_between() -> None:
    wire = Wire(masked(2, b"one ", final=False) + masked(9, b"?") + masked(0, b"two"))
    assert await WebSocket(wire).receive() == b"one two"
    assert wire.sent == frame(10, b"?")


async def test_a_close_is_answered_and_ends_everything() -> None:
    wire = Wire(masked(8, struct.pack("!H", 1000)))
    socket = WebSocket(wire)
    with pytest.raises(WebSocketClosed):
        await socket.receive()
    socket.send(b"too late")
    assert wire.sent == frame(8, struct.pack("!H", 1000))


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (frame(2, b"unmasked"), 1002),
        (masked(0, b"continues nothing"), 1002),
        (masked(5, b"unknown"), 1002),
        (masked(1, b"\xff"), 1007),
        (masked(2, b"x" * 101), 1009),
        (masked(2, b"x" * 60, final=False) + masked(0, b"x" * 60, final=False), 1009),
    ],
)
async def test_what_breaks_the_protocol_ends_the_connection(data: bytes, code: int) -> None:
    wire = Wire(data)
    with pytest.raises(WebSocketClosed):
        await WebSocket(wire, max_message_bytes=100).receive()
    assert wire.sent[2:4] == struct.pack("!H", code)


@pytest.mark.parametrize("size", [0, 125, 126, 65535, 65536])
def test_messages_of_any_length_are_sent_as_the_standard_draws_them(size: int) -> None:
    wire = Wire()
    WebSocket(wire).send(b"x" * size)
    assert wire.sent == frame(2, b"x" * size)


class TestHandshake:
    headers = {  # noqa: RUF012 - read only
        "upgrade": "websocket",
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
        "sec-websocket-version": "13",
        "sec-websocket-protocol": "v5.channel.k8s.io, v4.channel.k8s.io",
    }

    def test_the_key_is_answered_as_the_standard_shows(self) -> None:
        found = handshake(Request("GET", "/", headers=self.headers), ["v4.channel.k8s.io"])
        assert found == [
            ("Sec-WebSocket-Accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="),
            ("Sec-WebSocket-Protocol", "v4.channel.k8s.io"),
        ]

    @pytest.mark.parametrize(
        "changed",
        [{"upgrade": "h2c"}, {"sec-websocket-version": "8"}, {"sec-websocket-protocol": "chat"}],
    )
    def test_other_requests_are_refused(self, changed: dict[str, str]) -> None:
        request = Request("GET", "/", headers={**self.headers, **changed})
        with pytest.raises(BadRequest):
            handshake(request, ["v5.channel.k8s.io"])
