"""A command in a pod at an edge, as its user has it: kubectl's channels over a WebSocket."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from typing import Any, Final, Protocol

from wsproto.connection import ConnectionType

from skerry.app.edge_pods import EdgePods, Query
from skerry.app.explain_names import Unanswered
from skerry.runtime.transport import TransportError, UpgradedLine
from skerry.server.streaming.websocket import WebSocket, WebSocketClosed

_STDIN, _STDOUT, _STDERR, _ERROR, _RESIZE, _END = 0, 1, 2, 3, 4, 255
_V5: Final = "v5.channel.k8s.io"
_PROTOCOLS: Final = (_V5, "v4.channel.k8s.io")
# Kubernetes' own ends send 32 KiB at once; an edge that sends more is not believed.
_MAX_MESSAGE_BYTES: Final = 1 << 20


class Terminal(Protocol):
    """Where a command's streams begin and end for its user."""

    def typed(self) -> AsyncIterator[bytes]:
        """Yield what is typed, to its end."""

    def sizes(self) -> AsyncIterator[tuple[int, int]]:
        """Yield width and height of the terminal, now and whenever they change."""

    async def show(self, text: bytes, *, error: bool) -> None:
        """Show what the command wrote; the command waits for as long as this does."""


async def run_command(
    pods: EdgePods,
    pod: str,
    query: Query,
    terminal: Terminal,
    begun: Callable[[], None] = lambda: None,
) -> int:
    """Run a command; return its exit code. Raises what kept it from running, or ending.

    *begun* is called once the edge has taken it.
    """
    try:
        async with pods.websocket(pod, "exec", query, _PROTOCOLS) as line:
            begun()
            return await _conversation(line, query, terminal)
    except TransportError as error:
        await pods.explain_loss(pod, error)
        raise


async def _conversation(line: UpgradedLine, query: Query, terminal: Terminal) -> int:
    socket = WebSocket(line, _MAX_MESSAGE_BYTES, ConnectionType.CLIENT)
    wanted = dict(query)
    async with asyncio.TaskGroup() as tasks:
        speaking = []
        if "stdin" in wanted:
            ends = line.headers.get("sec-websocket-protocol") == _V5
            speaking.append(tasks.create_task(_typing(socket, terminal, ends=ends)))
        if "tty" in wanted:
            speaking.append(tasks.create_task(_resizing(socket, terminal)))
        # What is raised in here would leave as a group, which nobody handles.
        try:
            ended: bytes | TransportError = await _shown(socket, terminal)
        except TransportError as error:
            ended = error
        for task in speaking:
            task.cancel()
    if isinstance(ended, TransportError):
        raise ended
    return _exit_code(ended)


async def _shown(socket: WebSocket, terminal: Terminal) -> bytes:
    """Show what comes until the Status that ends it, which is returned."""
    while True:
        try:
            message = await socket.receive()
        except WebSocketClosed as error:
            raise TransportError("the connection ended before the command did") from error
        channel, text = message[:1], message[1:]
        if channel == bytes([_ERROR]) and text:
            return text
        if text:
            await terminal.show(text, error=channel == bytes([_STDERR]))


async def _typing(socket: WebSocket, terminal: Terminal, *, ends: bool) -> None:
    with contextlib.suppress(ConnectionError):  # whoever reads says how it was lost
        async for text in terminal.typed():
            socket.send(bytes([_STDIN]) + text)
            await socket.drain()
    if ends:
        socket.send(bytes([_END, _STDIN]))


async def _resizing(socket: WebSocket, terminal: Terminal) -> None:
    async for width, height in terminal.sizes():
        size = json.dumps({"Width": width, "Height": height})
        socket.send(bytes([_RESIZE]) + size.encode())


def _exit_code(raw: bytes) -> int:
    """Return what a command's last Status says; raises its message where there is no code."""
    status = _status(raw)
    if status.get("status") == "Success":
        return 0
    causes = (status.get("details") or {}).get("causes") or ()
    for cause in causes:
        text = str(cause.get("message", ""))
        if cause.get("reason") == "ExitCode" and text.isdigit():
            return int(text)
    raise Unanswered(str(status.get("message") or "the command was not run"))


def _status(raw: bytes) -> dict[str, Any]:
    try:
        found = json.loads(raw)
    except ValueError:
        return {"message": raw.decode(errors="replace")}
    return found if isinstance(found, dict) else {}
