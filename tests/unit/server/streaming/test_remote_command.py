"""Exec and attach carry every stream by its channel, and say how the command ended."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from skerry.api.errors import BadRequest
from skerry.server.http.message import Request, Upgrade
from skerry.server.streaming.remote_command import CommandError, RemoteCommand, remote_command
from tests.kit.server.commands import Command, OpenWire
from tests.kit.server.websocket import Wire, frame, masked

HEADERS = {
    "upgrade": "websocket",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    "sec-websocket-version": "13",
    "sec-websocket-protocol": "v5.channel.k8s.io",
}


async def played(wire: Wire, command: Command | None) -> dict[int, bytes]:
    """Return what came on each channel."""

    @asynccontextmanager
    async def begin() -> AsyncIterator[RemoteCommand]:
        if command is None:
            raise CommandError("no such program")
        yield command

    answer = remote_command(Request("GET", "/", "stdout=true", headers=HEADERS), begin)
    assert isinstance(answer, Upgrade)
    await answer.run(wire)
    return channels(wire.sent)


def channels(sent: bytes) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    while sent and sent[0] == 0x82:
        size, begins = sent[1], 2
        if size == 126:
            size, begins = int.from_bytes(sent[2:4], "big"), 4
        message, sent = sent[begins : begins + size], sent[begins + size :]
        found[message[0]] = found.get(message[0], b"") + message[1:]
    return found


async def test_streams_go_both_ways_by_their_channels() -> None:
    command = Command()
    wire = OpenWire(
        masked(2, b"\x00hello"), masked(2, b'\x04{"Width":80,"Height":24}'), masked(2, b"\xff\x00")
    )
    found = await played(wire, command)
    assert (command.given, command.size) == (b"hello", (80, 24))
    assert (found[1], found[2]) == (b"out", b"err")
    assert json.loads(found[3])["status"] == "Success"
    assert wire.sent.endswith(frame(8, b"\x03\xe8"))


async def test_the_exit_code_is_the_cause_of_a_failure() -> None:
    found = await played(OpenWire(masked(2, b"\xff\x00")), Command(code=3))
    status = json.loads(found[3])
    assert status["reason"] == "NonZeroExitCode"
    assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "3"}]


async def test_what_cannot_start_is_said_on_the_error_channel() -> None:
    status = json.loads((await played(OpenWire(), None))[3])
    assert (status["code"], status["message"]) == (
        500,
        "Internal error occurred: no such program",
    )


async def test_a_user_who_leaves_takes_the_command_along() -> None:
    status = json.loads((await played(Wire(), Command()))[3])
    assert status["details"]["causes"][0]["message"] == "137"


async def test_a_terminal_of_no_size_is_passed_over() -> None:
    command = Command()
    await played(OpenWire(masked(2, b"\x04{}"), masked(2, b"\xff\x00")), command)
    assert command.size == (0, 0)


def test_a_request_that_offers_no_channels_is_refused() -> None:
    with pytest.raises(BadRequest, match="Upgrade request required"):
        remote_command(Request("GET", "/"), asynccontextmanager(_nothing))


async def _nothing() -> AsyncIterator[RemoteCommand]:
    yield Command()
