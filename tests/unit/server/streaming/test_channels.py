"""Exec over SPDY, as Go clients other than the newest kubectl speak it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from skerry.api.errors import BadRequest
from skerry.server.http.message import Request, Upgrade
from skerry.server.streaming.remote_command import RemoteCommand, remote_command
from skerry.wire.spdy import Finished, Received, Spdy
from tests.kit.server.commands import Command, OpenWire
from tests.kit.server.spdy import Client, control
from tests.kit.server.websocket import Wire

OFFERED = "v4.channel.k8s.io, v3.channel.k8s.io, v2.channel.k8s.io, channel.k8s.io"
HEADERS = {"upgrade": "SPDY/3.1", "x-stream-protocol-version": OFFERED}


async def played(wire: Wire, command: Command, query: str) -> dict[int, bytes]:
    """Return what came on each stream, and with a True at the end of those that ended."""

    @asynccontextmanager
    async def begin() -> AsyncIterator[RemoteCommand]:
        yield command

    answer = remote_command(Request("POST", "/", query, headers=HEADERS), begin)
    assert isinstance(answer, Upgrade)
    assert (answer.protocol, answer.headers) == (
        "SPDY/3.1",
        (("X-Stream-Protocol-Version", "v4.channel.k8s.io"),),
    )
    await answer.run(wire)
    found: dict[int, bytes] = {}
    for event in Spdy().receive(wire.sent):
        if isinstance(event, Received):
            found[event.stream] = found.get(event.stream, b"") + event.data
        elif isinstance(event, Finished) and not event.reset:
            found[event.stream] = found.get(event.stream, b"") + b"$"
    return found


def data(stream: int, content: bytes, *, last: bool = False) -> bytes:
    return Spdy.sent(stream, content, last=last)


def opening(*kinds: str) -> bytes:
    client = Client()
    return b"".join(client.open(2 * place + 1, streamtype=kind) for place, kind in enumerate(kinds))


async def test_every_channel_has_a_stream_and_ends_with_the_command() -> None:
    command = Command()
    wire = OpenWire(
        opening("error", "stdin"),
        opening_more("stdout", "stderr"),
        data(3, b"hello") + data(3, b"", last=True),
    )
    found = await played(wire, command, "stdin=true&stdout=true&stderr=true")
    assert command.given == b"hello"
    assert (found[5], found[7]) == (b"out$", b"err$")
    assert json.loads(found[1].removesuffix(b"$"))["status"] == "Success"


def opening_more(*kinds: str) -> bytes:
    # Compression goes on from one frame to the next.
    client = Client()
    client.open(1, streamtype="error")
    client.open(3, streamtype="stdin")
    return b"".join(client.open(2 * place + 5, streamtype=kind) for place, kind in enumerate(kinds))


async def test_a_terminal_has_a_size_and_one_output() -> None:
    command = Command(code=3)
    wire = OpenWire(
        opening("error", "stdin", "stdout", "resize"),
        data(7, b'{"Width":80,"Height":24}\n') + data(3, b"", last=True),
    )
    found = await played(wire, command, "stdin=true&stdout=true&stderr=true&tty=true")
    assert (command.size, found[5]) == ((80, 24), b"out$")
    status = json.loads(found[1].removesuffix(b"$"))
    assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "3"}]


async def test_who_never_opens_what_was_announced_begins_nothing() -> None:
    command = Command()
    early = b"".join(data(3, b"x") for _ in range(17))
    for pieces in ([opening("error")], [opening("error", "stdin"), early], [b"\x80\x09rubbish!"]):
        assert await played(Wire(*pieces), command, "stdin=true&stdout=true") == {}
    assert command.given == b""


async def test_streams_that_were_not_announced_are_refused_and_pings_answered() -> None:
    command = Command()
    command.ended.set()
    ping = control(6, b"\x00\x00\x00\x01")
    wire = OpenWire(opening("error", "unicorn", "stdout", "stdout") + ping)
    assert await played(wire, command, "stdout=true") == {
        1: b'{"metadata":{},"status":"Success"}$',
        5: b"out$",
    }
    assert ping in wire.sent
    resets = [
        event.stream
        for event in Spdy().receive(wire.sent)
        if isinstance(event, Finished) and event.reset
    ]
    assert resets == [3, 7]


def test_protocols_that_nobody_speaks_any_more_are_refused() -> None:
    @asynccontextmanager
    async def begin() -> AsyncIterator[RemoteCommand]:
        yield Command()
        await asyncio.sleep(0)

    old = {**HEADERS, "x-stream-protocol-version": "channel.k8s.io"}
    with pytest.raises(BadRequest, match="unable to negotiate protocol"):
        remote_command(Request("POST", "/", "stdout=true", headers=old), begin)
