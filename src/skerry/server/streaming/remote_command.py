"""Exec and attach: the channel protocol of Kubernetes over WebSocket.

The first byte of a message names the stream: input, output, errors, the size of the terminal, and
the Status that says how it ended.
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
from skerry.server.streaming.websocket import WebSocket, WebSocketClosed, as_duplex, handshake

_STDIN, _STDOUT, _STDERR, _ERROR, _RESIZE, _END = 0, 1, 2, 3, 4, 255
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
    """Answer with a command over a WebSocket; raises ``BadRequest`` when none is asked for."""
    headers = handshake(request, _PROTOCOLS)
    tty = request.query.get("tty") in ("true", "1")
    quiet = request.query.get("stdout") in (None, "false", "0") and not tty

    async def run(duplex: Sender) -> None:
        socket = WebSocket(as_duplex(duplex))
        # An empty message tells the client that the connection stands.
        socket.send(bytes([_ERROR if quiet else _STDOUT]))
        socket.send(bytes([_ERROR]) + await _conversation(socket, begin))
        socket.close()
        with contextlib.suppress(ConnectionError):
            await socket.drain()

    return Upgrade(run, status=101, headers=tuple(headers))


async def _conversation(socket: WebSocket, begin: Begin) -> bytes:
    """Carry streams both ways; returns the Status that tells how it ended."""
    try:
        async with begin() as running:
            return exit_status(await _carried(socket, running))
    except CommandError as error:
        return _failure(str(error))


async def _carried(socket: WebSocket, running: RemoteCommand) -> int:
    async with asyncio.TaskGroup() as tasks:
        listening = tasks.create_task(_listen(socket, running))
        writing = [
            tasks.create_task(_speak(socket, _STDOUT, running.output())),
            tasks.create_task(_speak(socket, _STDERR, running.errors())),
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


async def _speak(socket: WebSocket, channel: int, chunks: AsyncIterator[bytes]) -> None:
    async for chunk in chunks:
        socket.send(bytes([channel]) + chunk)
        await socket.drain()


async def _listen(socket: WebSocket, running: RemoteCommand) -> None:
    """Pass on what the user sends, until they leave."""
    while True:
        try:
            message = await socket.receive()
        except WebSocketClosed:
            return
        if not message:
            continue
        channel, content = message[0], message[1:]
        if channel == _STDIN:
            await running.write(content)
        elif channel == _END and content[:1] == bytes([_STDIN]):
            running.end_input()
        elif channel == _RESIZE:
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
