"""A hub's console in a process of its own, as the hub sees it.

The hub listens at the console's port and hands that socket to a process that it starts, and starts
again whenever it ends: browsers wait meanwhile, and no address changes. The process has nothing of
the hub but what it asks for (``console_link``); every request it makes is authorized, limited and
audited here, as the viewer's.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

import msgspec
import orjson

from skerry.api.errors import ApiError, TooManyRequests, Unauthorized
from skerry.api.kinds import GroupVersionResource
from skerry.app.console_access import (
    allowing,
    facts_of,
    given_context,
    given_files,
    takes_tunnels,
)
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
    Asked,
    Certificates,
    Question,
    Recorded,
    Replies,
    SigningIn,
    Start,
    Versions,
    Visited,
    Visiting,
    Whose,
    authorized,
    packed,
)
from skerry.app.console_oidc import console_issuer
from skerry.app.console_record import ConsoleError, console_url, no_console
from skerry.app.hub_server import HubServer
from skerry.app.process_group import next_pause
from skerry.app.process_peers import GroupName, Peers
from skerry.app.settings import ServerSettings
from skerry.kit.clock import Clock
from skerry.kit.ids import IdSource
from skerry.kit.log import Logger, current_format
from skerry.server.access import Authenticator, Authorizer
from skerry.server.engine import Recorder
from skerry.server.extensions import CONSOLE_CODES, CONSOLE_SESSIONS, ExtensionHandler, Visit
from skerry.server.http.accepting import listening_sockets
from skerry.server.http.encoding import error_response
from skerry.server.http.message import Answer, Peer, Request, Response
from skerry.server.http.server import HttpServer
from skerry.server.http.settings import HttpSettings
from skerry.server.request.info import RequestInfo
from skerry.server.security.signing_rotation import Authorities

log = Logger("console")

PROGRAM = "skerry.app.console_process"
# How late a new workspace may be named; rights that change are noted at once.
_NOTE_SECONDS = 0.1
# A process starts within a second or two; who asks meanwhile waits for it.
_START_SECONDS = 20.0
_STOP_SECONDS = 5.0
# Questions about rights that are answered without a pause; each takes microseconds.
_RIGHTS_AT_ONCE = 1000
_CREDENTIAL = tuple[dict[str, str], bytes | None, str]


class ConsoleApart:
    """The console of one hub, in another process."""

    def __init__(
        self,
        settings: ServerSettings,
        hub_url: str,
        authenticator: Authenticator,
        authorizer: Authorizer,
        recorder: Recorder,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        # Whatever the process cannot read stops the hub's start, not the process again and again.
        console_issuer(settings, authenticator, clock)
        self._settings = settings
        self._hub_url = hub_url
        self._authenticator = authenticator
        self._may = allowing(authorizer)
        self._recorder = recorder
        self._clock = clock
        self._secret = ids.bytes(32).hex()
        self._group = GroupName.new(ids)
        self._peers = Peers(self._group, HUB, CONSOLE + 1)
        self._versions = Versions.new()
        self._sockets: list[socket.socket] = []
        self._certificates: Callable[[], Certificates] | None = None
        self._ready = asyncio.Event()
        self.url = ""
        # The process, for as long as there is one.
        self.pid = 0

    def extensions(self) -> dict[str, ExtensionHandler]:
        """Return what the API's own port answers about the console."""

        def handing_on(extension: str) -> ExtensionHandler:
            async def handed_on(visit: Visit) -> Answer:
                return await self._hand_on(extension, visit)

            return handed_on

        return {each: handing_on(each) for each in (CONSOLE_CODES, CONSOLE_SESSIONS)}

    def rights_changed(self) -> None:
        """Have everybody's views look again what they may show."""
        self._versions.rights_changed()

    async def listen(
        self, authorities: Authorities, api: HubServer, sockets: Sequence[socket.socket] = ()
    ) -> None:
        """Take the port; ConsoleError when it cannot be had, or the certificate not be used."""
        settings = self._settings
        given = given_files(settings)
        if given is not None:
            given_context(*given)
        try:
            self._sockets = list(sockets) or await listening_sockets(
                settings.bind_address, settings.console_port or 0, HttpSettings().backlog
            )
        except OSError as error:
            problem = no_console(settings, error)
            if settings.console_optional:
                log.warning("the hub goes without its console", error=problem)
                return
            raise ConsoleError(problem) from error
        host = urlsplit(self._hub_url).hostname or ""
        self.url = console_url(host, self._sockets[0].getsockname()[1])
        self._certificates = lambda: _certificates(authorities)
        self._answer_for(api)

    async def run(self, api: HubServer, authorities: Authorities) -> None:
        """Keep the process going until cancelled."""
        if not self._sockets:
            return
        http = HttpServer(lambda request: self._acting(api, request))
        port = await http.start("127.0.0.1", 0)
        changed = asyncio.Event()
        authorities.listeners.append(changed.set)
        try:
            async with self._peers.serving(), asyncio.TaskGroup() as tasks:
                tasks.create_task(self._noting(api))
                tasks.create_task(self._proving(changed))
                tasks.create_task(self._supervising(port, takes_tunnels(api)))
        finally:
            authorities.listeners.remove(changed.set)
            for each in self._sockets:
                each.close()
            await http.stop(0)
            os.close(self._versions.descriptor)

    # The process.

    async def _supervising(self, port: int, tunnels: bool) -> None:
        pause = 0.0
        while True:
            began = self._clock.monotonic()
            try:
                ended = f"code {await self._process(port, tunnels)}"
            except OSError as error:
                # No memory or no descriptor left for it: the hub itself goes on.
                ended = f"not started: {error}"
            pause = next_pause(pause, self._clock.monotonic() - began)
            log.warning("the console's process ended; it starts again", ended=ended, seconds=pause)
            await self._clock.sleep(pause)

    async def _process(self, port: int, tunnels: bool) -> int:
        """Run the process once; return its exit code."""
        descriptors = (*(each.fileno() for each in self._sockets), self._versions.descriptor)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", PROGRAM, stdin=asyncio.subprocess.PIPE, pass_fds=descriptors
        )
        self.pid = process.pid
        try:
            if process.stdin is not None:
                start = packed(self._start(port, tunnels))
                # It reads on: with the end of this the hub is no more, and so is the process.
                with contextlib.suppress(ConnectionError):
                    process.stdin.write(len(start).to_bytes(4, "big") + start)
                    await process.stdin.drain()
            return await process.wait()
        finally:
            self.pid = 0
            self._ready.clear()
            await _ended(process)

    def _start(self, port: int, tunnels: bool) -> Start:
        settings, given = self._settings, given_files(self._settings)
        if self._certificates is None:
            raise ConsoleError("the console has not taken its port")
        return Start(
            str(settings.data_dir),
            self._hub_url,
            settings.bind_address,
            tuple(settings.tls_sans),
            settings.drain_seconds,
            None if given is None else (str(given[0]), str(given[1])),
            settings.verbosity,
            current_format(),
            (self._group.name, self._group.secret),
            port,
            self._secret,
            tuple(each.fileno() for each in self._sockets),
            self._versions.descriptor,
            tunnels,
            self._certificates(),
            _signing_in(settings),
        )

    async def _noting(self, api: HubServer) -> None:
        while True:
            self._versions.note_workspaces(len(api.state.clusters))
            await self._clock.sleep(_NOTE_SECONDS)

    async def _proving(self, changed: asyncio.Event) -> None:
        """Hand on new certificates; a process that is starting has them anyway."""
        while True:
            await changed.wait()
            changed.clear()
            if self._ready.is_set() and self._certificates is not None:
                await self._peers.ask(CONSOLE, CERTIFICATES, packed(self._certificates()))

    # What the process asks.

    async def _acting(self, api: HubServer, request: Request) -> Answer:
        """Answer a request that the console makes for somebody."""
        user = authorized(self._secret, request.headers.get("authorization", ""))
        if user is None:
            return error_response(Unauthorized())
        request.peer = Peer(user=user)
        return await api.engine.handle(request)

    def _answer_for(self, api: HubServer) -> None:
        async def facts(_: bytes) -> bytes:
            return orjson.dumps(facts_of(api))

        async def rights(content: bytes) -> bytes:
            asked = msgspec.msgpack.decode(content, type=Asked)
            state = api.state
            return packed(
                Replies(
                    await self._allowed(asked.rights),
                    [state.path_of(each) for each in asked.clusters],
                    [state.resolve(each) for each in asked.paths],
                )
            )

        async def ready(_: bytes) -> bytes:
            log.info("console ready", v=0, url=self.url, pid=self.pid)
            self._ready.set()
            return b""

        answers = {FACTS: facts, RIGHTS: rights, READY: ready}
        self._peers.answers.update(answers | {WHOSE: self._whose, RECORD: self._record})

    async def _allowed(self, asked: Sequence[Question]) -> list[bool]:
        """Answer who may what, and others between; rights that change meanwhile are asked anew."""
        found = []
        for number, (user, cluster, verb, *kind) in enumerate(asked):
            if number % _RIGHTS_AT_ONCE == _RIGHTS_AT_ONCE - 1:
                await asyncio.sleep(0)
            found.append(self._may(user, cluster, verb, GroupVersionResource(*kind)))
        return found

    async def _whose(self, content: bytes) -> bytes:
        headers, certificate, cluster = msgspec.msgpack.decode(content, type=_CREDENTIAL)
        shown = Request("GET", "/", headers=headers, peer=Peer(certificate=certificate))
        try:
            return packed(Whose(await self._authenticator.authenticate(shown, cluster)))
        except ApiError as error:
            return packed(Whose(None, error.code, str(error)))

    async def _record(self, content: bytes) -> bytes:
        for noted in msgspec.msgpack.decode(content, type=list[Recorded]):
            headers = {"user-agent": noted.agent} if noted.agent else {}
            request = Request(noted.method, noted.path, headers=headers, peer=Peer(noted.address))
            info = RequestInfo(path=noted.path, verb=noted.verb)
            self._recorder.finished(request, info, noted.user, Response(noted.status), served=True)
        return b""

    async def _hand_on(self, extension: str, visit: Visit) -> Answer:
        request = visit.request
        try:
            async with asyncio.timeout(_START_SECONDS):
                await self._ready.wait()
        except TimeoutError:
            raise TooManyRequests("the console is starting; try again") from None
        visiting = Visiting(
            extension,
            request.method,
            request.query_string,
            dict(request.headers),
            request.peer.certificate,
            visit.cluster,
            visit.user,
        )
        answer = await self._peers.ask(CONSOLE, VISIT, packed(visiting))
        if answer is None:
            raise TooManyRequests("the console is busy; try again")
        found = msgspec.msgpack.decode(answer, type=Visited)
        return Response(found.status, found.body, headers=tuple(found.headers))


async def _ended(process: asyncio.subprocess.Process) -> None:
    """Have a process end by itself, or else."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        async with asyncio.timeout(_STOP_SECONDS):
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _signing_in(settings: ServerSettings) -> SigningIn | None:
    if settings.oidc is None:
        return None
    return SigningIn(
        settings.oidc,
        str(settings.oidc_ca_file or ""),
        str(settings.console_oidc_secret_file or ""),
        settings.console_oidc_scopes,
    )


def _certificates(authorities: Authorities) -> Certificates:
    shown = authorities.shown()
    given = None if shown.given is None else (shown.given.certificate, shown.given.key)
    return Certificates((shown.own.certificate, shown.own.key), given, shown.names, shown.to_all)
