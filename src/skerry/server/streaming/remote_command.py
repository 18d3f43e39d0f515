"""Exec and attach: the channels of Kubernetes, over a WebSocket or over SPDY.

There is one for input, output, errors, the size of the terminal, and the Status that says how it
ended. In a WebSocket the first byte of a message names the channel; SPDY, which kubectl spoke until
1.30 and other clients still do, has a stream for each.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from skerry.server.codec import dump
from skerry.server.http.message import Answer, Request, Sender, Upgrade
from skerry.server.streaming.channels import (
    END,
    ERROR,
    RESIZE,
    STDERR,
    STDIN,
    STDOUT,
    Channels,
    ChannelsClosed,
    SpdyChannels,
    accept_spdy,
    is_spdy,
)
from skerry.server.streaming.websocket import WebSocket, WebSocketClosed, as_duplex, handshake

_PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")


class CommandError(Exception):
    """The command could not be started, or there is nothing to attach to."""


class RemoteCommand(Protocol):
    """Something whose output is read and whose input is written."""

    def output(self) -> AsyncIterator[bytes]:
        """Yield what it writes, to its end."""

    def errors(self) -> AsyncIterator[bytes]:
        """Yield what it writes to its error output."""

    async def write(self, data: bytes) -> None:
        """Give it input; harmless when it does not listen any more."""

    def end_input(self) -> None:
        """Say that no more input comes."""

    def resize(self, width: int, height: int) -> None:
        """Tell its terminal, if it has one, its size."""

    async def wait(self) -> int:
        """Return its exit code."""


Begin = Callable[[], AbstractAsyncContextManager[RemoteCommand]]
"""Begins a command, which ends with the context; raises ``CommandError``."""


def remote_command(request: Request, begin: Begin) -> Answer:
    """Answer with a command over its channels; raises ``BadRequest`` when none are asked for."""
    if is_spdy(request):
        return _upgrade_to_spdy(request, begin)
    headers = handshake(request, _PROTOCOLS)
    tty = request.query.get("tty") in ("true", "1")
    quiet = request.query.get("stdout") in (None, "false", "0") and not tty

    async def run(duplex: Sender) -> None:
        channels = _WebSocketChannels(WebSocket(as_duplex(duplex)))
        # An empty message tells the client that the connection stands.
        channels.send(ERROR if quiet else STDOUT, b"")
        await _converse(channels, begin)

    return Upgrade(run, status=101, headers=tuple(headers))


def _upgrade_to_spdy(request: Request, begin: Begin) -> Answer:
    headers = accept_spdy(request)

    async def run(duplex: Sender) -> None:
        channels = SpdyChannels(as_duplex(duplex), request.query)
        with contextlib.suppress(ChannelsClosed):
            await channels.opened()
            await _converse(channels, begin)

    return Upgrade(run, status=101, headers=headers, protocol="SPDY/3.1")


class _WebSocketChannels:
    """Channels by the first byte of messages."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket

    def send(self, channel: int, data: bytes) -> None:
        self._socket.send(bytes([channel]) + data)

    async def drain(self) -> None:
        await self._socket.drain()

    async def receive(self) -> tuple[int, bytes]:
        while True:
            try:
                message = await self._socket.receive()
            except WebSocketClosed as error:
                raise ChannelsClosed from error
            if message:
                return message[0], message[1:]

    def end(self, status: bytes) -> None:
        self.send(ERROR, status)
        self._socket.close()


async def _converse(channels: Channels, begin: Begin) -> None:
    channels.end(await _conversation(channels, begin))
    with contextlib.suppress(ConnectionError):
        await channels.drain()


async def _conversation(channels: Channels, begin: Begin) -> bytes:
    """Carry streams both ways; returns the Status that tells how it ended."""
    try:
        async with begin() as running:
            return exit_status(await _carried(channels, running))
    except CommandError as error:
        return _failure(str(error))


async def _carried(channels: Channels, running: RemoteCommand) -> int:
    async with asyncio.TaskGroup() as tasks:
        listening = tasks.create_task(_listen(channels, running))
        writing = [
            tasks.create_task(_speak(channels, STDOUT, running.output())),
            tasks.create_task(_speak(channels, STDERR, running.errors())),
        ]
        await asyncio.wait([*writing, listening], return_when=asyncio.FIRST_COMPLETED)
        if listening.done() and not all(task.done() for task in writing):
            # The user has left; so does the command.
            for task in writing:
                task.cancel()
            return 137
        await asyncio.wait(writing)
        code = await running.wait()
        listening.cancel()
    return code


async def _speak(channels: Channels, channel: int, chunks: AsyncIterator[bytes]) -> None:
    async for chunk in chunks:
        channels.send(channel, chunk)
        await channels.drain()


async def _listen(channels: Channels, running: RemoteCommand) -> None:
    """Pass on what the user sends, until they leave."""
    while True:
        try:
            channel, content = await channels.receive()
        except ChannelsClosed:
            return
        if channel == STDIN:
            await running.write(content)
        elif channel == END and content[:1] == bytes([STDIN]):
            running.end_input()
        elif channel == RESIZE:
            with contextlib.suppress(ValueError, KeyError, TypeError):
                size = json.loads(content)
                running.resize(int(size["Width"]), int(size["Height"]))


def exit_status(code: int) -> bytes:
    """Return the Status of a command's end, as kubelet sends it on the error channel."""
    if code == 0:
        return dump({"metadata": {}, "status": "Success"})
    return dump(
        {
            "metadata": {},
            "status": "Failure",
            "message": f"command terminated with non-zero exit code: exit status {code}",
            "reason": "NonZeroExitCode",
            "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
        }
    )


def _failure(message: str) -> bytes:
    text = f"Internal error occurred: {message}"
    return dump(
        {
            "metadata": {},
            "status": "Failure",
            "message": text,
            "reason": "InternalError",
            "details": {"causes": [{"message": message}]},
            "code": 500,
        }
    )
