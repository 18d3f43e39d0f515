"""The console of a group, which one of its processes serves.

A console keeps a picture of the whole fleet, so one process has it, and browsers reach that one by
the console's own port. What is asked on the API's port (a code to sign in with, who is signed in)
arrives at any process, and is handed on as it came: the one that has the console recognises the
caller by the same credential, and decides.
"""

from __future__ import annotations

import msgspec

from skerry.api.errors import TooManyRequests
from skerry.app.process_peers import Peers
from skerry.server.engine import Engine
from skerry.server.extensions import (
    CONSOLE_CODES,
    CONSOLE_SESSIONS,
    ExtensionHandler,
    Visit,
)
from skerry.server.http.message import Answer, Peer, Request, Response

# The process that has it: the first is never missing for longer than it takes to start.
CONSOLE_PROCESS = 0
_KIND = "console"


class _Asked(msgspec.Struct, array_like=True):
    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes
    address: str
    certificate: bytes | None


class _Answered(msgspec.Struct, array_like=True):
    status: int
    body: bytes
    content_type: str
    headers: list[tuple[str, str]]


def answer_for_console(peers: Peers, engine: Engine) -> None:
    """Have this process, which has the console, answer what the others hand on."""

    async def answered(content: bytes) -> bytes:
        asked = msgspec.msgpack.decode(content, type=_Asked)
        peer = Peer(asked.address, asked.certificate)
        request = Request(asked.method, asked.path, asked.query, asked.headers, asked.body, peer)
        answer = await engine.handle(request)
        if not isinstance(answer, Response):
            raise OSError("the console answers in one piece")
        body = answer.body if isinstance(answer.body, bytes) else b"".join(answer.body)
        headers = [(name, value) for name, value in answer.headers]
        return msgspec.msgpack.encode(_Answered(answer.status, body, answer.content_type, headers))

    peers.answers[_KIND] = answered


def console_elsewhere(peers: Peers) -> dict[str, ExtensionHandler]:
    """Return what a process without the console does when it is asked about it."""

    async def handed_on(visit: Visit) -> Answer:
        request = visit.request
        asked = _Asked(
            request.method,
            request.path,
            request.query_string,
            dict(request.headers),
            request.body,
            request.peer.address,
            request.peer.certificate,
        )
        answer = await peers.ask(CONSOLE_PROCESS, _KIND, msgspec.msgpack.encode(asked))
        if answer is None:
            raise TooManyRequests("the console is starting; try again")
        found = msgspec.msgpack.decode(answer, type=_Answered)
        return Response(found.status, found.body, found.content_type, tuple(found.headers))

    return {CONSOLE_CODES: handed_on, CONSOLE_SESSIONS: handed_on}
