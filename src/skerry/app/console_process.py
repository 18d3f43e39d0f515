"""The process of a console: it keeps the picture of the fleet, and asks the hub for all else.

Started by ``console_apart``, which says on its standard input what it is to know, and with the end
of that input that it is to end.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import ssl
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import orjson
import uvloop

from skerry.api.errors import ApiError, Forbidden, ServiceUnavailable, Unauthorized
from skerry.app.console import Console
from skerry.app.console_access import HubAccess, given_context
from skerry.app.console_link import (
    CERTIFICATES,
    CONSOLE,
    FACTS,
    HUB,
    READY,
    RECORD,
    RIGHTS,
    VISIT,
    WHOSE,
    ActingTransport,
    Asked,
    Certificates,
    Recorded,
    Replies,
    Start,
    Versions,
    Visited,
    Visiting,
    Whose,
    packed,
)
from skerry.app.console_rights import LearnedRights
from skerry.app.process_peers import Peers
from skerry.app.settings import ServerSettings
from skerry.kit import log
from skerry.kit.clock import SystemClock
from skerry.kit.ids import SystemIds
from skerry.runtime.http import HttpTransport
from skerry.server.extensions import CONSOLE_CODES
from skerry.server.http.encoding import error_response
from skerry.server.http.message import Answer, Peer, Request
from skerry.server.request.info import RequestInfo
from skerry.server.security.pki import Credential
from skerry.server.security.tls import LiveContext, Shown
from skerry.server.user import User

_REFUSALS = {401: Unauthorized, 403: Forbidden}
_AWAY = "the hub does not answer; try again"
_PAUSE_SECONDS = 0.2
# Records that wait for the hub: with more of them nothing is answered until it takes some, for
# nothing is shown that is not audited.
_MAX_RECORDS = 20_000
_RECORDS_AT_ONCE = 500
# How long a process that ends waits for the hub to take the last of them.
_FLUSH_SECONDS = 2.0


class _Asking:
    """The hub's authentication and recorder, reached by messages."""

    def __init__(self, peers: Peers) -> None:
        self._peers = peers
        self._records: asyncio.Queue[Recorded | None] = asyncio.Queue(_MAX_RECORDS)

    async def authenticate(self, request: Request, cluster: str) -> User:
        shown = (dict(request.headers), request.peer.certificate, cluster)
        answer = await self._peers.ask(HUB, WHOSE, packed(shown))
        if answer is None:
            raise ServiceUnavailable(_AWAY)
        found = msgspec.msgpack.decode(answer, type=Whose)
        if found.user is None:
            raise _REFUSALS.get(found.code, ServiceUnavailable)(found.message)
        return found.user

    def knows(self, request: Request, cluster: str) -> bool:
        return False

    def finished(
        self,
        request: Request,
        info: RequestInfo,
        user: User | None,
        answer: Answer,
        *,
        served: bool,
    ) -> None:
        agent, address = request.headers.get("user-agent", ""), request.peer.address
        noted = Recorded(request.method, info.path, info.verb, user, answer.status, address, agent)
        try:
            self._records.put_nowait(noted)
        except asyncio.QueueFull as error:
            raise ServiceUnavailable(_AWAY) from error

    async def recording(self) -> None:
        """Hand on what is recorded, in its order; ``end`` ends that, and nothing is left out."""
        going_on = True
        while going_on:
            noted = [await self._records.get()]
            while len(noted) < _RECORDS_AT_ONCE and not self._records.empty():
                noted.append(self._records.get_nowait())
            going_on = None not in noted
            await _answered(self._peers, RECORD, packed([each for each in noted if each]))

    async def end(self) -> None:
        """Have ``recording`` end with what is recorded by now."""
        await self._records.put(None)


async def _answered(peers: Peers, kind: str, content: bytes = b"") -> bytes:
    """Return what the hub answers, however busy it is; without it this process ends anyway."""
    while True:
        answer = await peers.ask(HUB, kind, content)
        if answer is not None:
            return answer
        await asyncio.sleep(_PAUSE_SECONDS)


async def _run(start: Start, stdin: asyncio.StreamReader) -> None:
    peers = Peers(start.name, CONSOLE, CONSOLE + 1)
    asking, clock, ids = _Asking(peers), SystemClock(), SystemIds()
    settings = _settings(start)
    console = Console(settings, start.hub_url, asking, asking, clock, ids)
    hub = _access(start, peers)
    context, live = _contexts(start)
    sockets = [socket.socket(fileno=each) for each in start.sockets]
    peers.answers[VISIT] = lambda content: _visit(console, content)

    async def certificates(content: bytes) -> bytes:
        if live is not None:
            live.present = _context(msgspec.msgpack.decode(content, type=Certificates))
        return b""

    peers.answers[CERTIFICATES] = certificates
    async with peers.serving(), asyncio.TaskGroup() as tasks:
        await console.listen(context, hub, sockets)
        recording = tasks.create_task(asking.recording())
        running = tasks.create_task(console.run(hub))
        await peers.ask(HUB, READY)
        await stdin.read()
        running.cancel()
        # A hub that ends takes what is left; one that is gone does not.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_FLUSH_SECONDS):
                await asyncio.wait([running])
                await asking.end()
                await asyncio.wait([recording])
        recording.cancel()


def _settings(start: Start) -> ServerSettings:
    """Return what the console has to know of how its hub runs."""
    settings = ServerSettings(
        data_dir=Path(start.data_dir),
        bind_address=start.bind_address,
        tls_sans=start.tls_sans,
        drain_seconds=start.drain_seconds,
    )
    issuer = start.signing_in
    if issuer is None:
        return settings
    return replace(
        settings,
        oidc=issuer.oidc,
        oidc_ca_file=Path(issuer.ca_file) if issuer.ca_file else None,
        console_oidc_secret_file=Path(issuer.secret_file) if issuer.secret_file else None,
        console_oidc_scopes=issuer.scopes,
    )


def _access(start: Start, peers: Peers) -> HubAccess:
    inner = HttpTransport("127.0.0.1", start.port, None)

    async def ask(asked: Asked) -> Replies | None:
        answer = await peers.ask(HUB, RIGHTS, packed(asked))
        return None if answer is None else msgspec.msgpack.decode(answer, type=Replies)

    async def facts() -> Mapping[str, Any]:
        found: Mapping[str, Any] = orjson.loads(await _answered(peers, FACTS))
        return found

    rights = LearnedRights(ask, Versions(start.versions).read).rights()
    return HubAccess(
        lambda user: ActingTransport(inner, start.secret, user),
        rights,
        facts,
        lambda: start.tunnels,
    )


def _contexts(start: Start) -> tuple[ssl.SSLContext, LiveContext | None]:
    """Return what the listener proves itself with, and what of it may be exchanged."""
    if start.given is not None:
        return given_context(Path(start.given[0]), Path(start.given[1])), None
    live = LiveContext(_context(start.certificates))
    return live, live


def _context(certificates: Certificates) -> ssl.SSLContext:
    given = None if certificates.given is None else Credential(*certificates.given)
    own = Credential(*certificates.own)
    return Shown(own, given, certificates.names, certificates.to_all).context("")


async def _visit(console: Console, content: bytes) -> bytes:
    """Answer what somebody asked about the console on the API's own port."""
    asked = msgspec.msgpack.decode(content, type=Visiting)
    peer = Peer(certificate=asked.certificate)
    request = Request(asked.method, asked.extension, asked.query, asked.headers, b"", peer)
    try:
        if asked.extension == CONSOLE_CODES:
            answer = await console.codes(request, asked.cluster, asked.user)
        else:
            answer = await console.listed(request, asked.user)
    except ApiError as error:
        answer = error_response(error)
    body = answer.body if isinstance(answer.body, bytes) else b"".join(answer.body)
    return packed(Visited(answer.status, body, [(name, value) for name, value in answer.headers]))


async def _main() -> None:
    loop = asyncio.get_running_loop()
    # Whoever ends the hub by the keyboard ends the whole group: the hub says when it is over.
    for number in (signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, lambda: None)
    stdin = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stdin), sys.stdin.buffer)
    with contextlib.suppress(asyncio.IncompleteReadError):
        length = int.from_bytes(await stdin.readexactly(4), "big")
        start = msgspec.msgpack.decode(await stdin.readexactly(length), type=Start)
        log.configure(verbosity=start.verbosity, format=start.log_format)
        await _run(start, stdin)


if __name__ == "__main__":
    uvloop.run(_main())
