"""The console of a hub: its listener, who signs in, and what it is handed of the hub."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import orjson

import skerry
from skerry.api.edge_identity import NARROW_GROUPS
from skerry.api.errors import (
    BadRequest,
    Forbidden,
    MethodNotAllowed,
    NotFound,
    Unauthorized,
)
from skerry.api.kinds import GroupVersionResource
from skerry.app.api_server import ApiServer
from skerry.app.console_decisions import ConsoleDecisions
from skerry.app.console_desk import console_desk
from skerry.app.console_feed import feeding, run_feed
from skerry.app.console_logs import ConsoleLogs
from skerry.app.console_questions import Answering, ConsoleQuestions, Viewer
from skerry.app.console_record import ConsoleError, no_console
from skerry.app.core_controllers import embedded_transport
from skerry.app.hub_server import HubServer
from skerry.app.settings import ServerSettings
from skerry.kit.clock import Clock
from skerry.kit.ids import IdSource
from skerry.kit.log import Logger
from skerry.kit.timestamps import rfc3339
from skerry.scheduler.placement import location_chooser
from skerry.server.access import Attributes, Authenticator, Authorizer
from skerry.server.engine import Recorder
from skerry.server.extensions import CONSOLE_CODES, CONSOLE_SESSIONS, ExtensionHandler, Visit
from skerry.server.http.message import Answer, Peer, Request, Response
from skerry.server.http.server import HttpServer
from skerry.server.http.settings import HttpSettings
from skerry.server.request.info import RequestInfo
from skerry.server.security.authorization import is_administrator
from skerry.server.security.signing_rotation import Authorities
from skerry.server.security.tls import LiveContext
from skerry.server.user import User
from skerry.server.workspaces.routing import cluster_of_token
from skerry.web.assets import read_assets
from skerry.web.eyes import Eyes, Rights
from skerry.web.feed import Feed
from skerry.web.pace import Pace
from skerry.web.session_files import SessionFiles
from skerry.web.sessions import Kept, Session, Sessions
from skerry.web.site import HEADERS, Around, Site

log = Logger("console")

_ANONYMOUS = "system:anonymous"
_IMPERSONATE = "impersonate-"
_EXPIRE_SECONDS = 15.0
# Codes and tokens are short; files are compressed already.
_HTTP = HttpSettings(body_bytes=64 * 1024, gzip_bytes=1 << 30, headers=HEADERS)


@dataclass(frozen=True, slots=True)
class HeldCredential:
    """What somebody authenticated with, kept to be shown to the hub's own authentication again."""

    authenticator: Authenticator
    headers: Mapping[str, str]
    certificate: bytes | None
    cluster: str

    async def user(self) -> User:
        peer = Peer(certificate=self.certificate)
        shown = Request("GET", "/", headers=self.headers, peer=peer)
        return person(await self.authenticator.authenticate(shown, self.cluster))

    def packed(self) -> bytes:
        return msgspec.msgpack.encode((dict(self.headers), self.certificate, self.cluster))

    @classmethod
    def unpacked(cls, authenticator: Authenticator, packed: bytes) -> HeldCredential:
        """Return the credential that was packed, to be shown to *authenticator*."""
        kinds = tuple[dict[str, str], bytes | None, str]
        return cls(authenticator, *msgspec.msgpack.decode(packed, type=kinds))


def person(user: User) -> User:
    """Return *user* unless it is nobody, or an edge: they have no business at a console."""
    if user.name == _ANONYMOUS:
        raise Unauthorized("the console is for who is recognised: show a token or a certificate")
    if user.groups in NARROW_GROUPS:
        raise Forbidden("edges have no console")
    return user


def _credential(authenticator: Authenticator, request: Request, cluster: str) -> HeldCredential:
    kept = {
        name: value
        for name, value in request.headers.items()
        if name == "authorization" or name.startswith(_IMPERSONATE)
    }
    return HeldCredential(authenticator, kept, request.peer.certificate, cluster)


class Console:
    """The console of one hub."""

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
        self._settings = settings
        self._host = urlsplit(hub_url).hostname or ""
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._ids = ids
        self._recorder = recorder
        self._clock = clock
        self._pace = Pace(clock)
        kept = Kept(
            SessionFiles(settings.data_dir / "console-sessions"),
            lambda packed: HeldCredential.unpacked(authenticator, packed),
        )
        self.sessions = Sessions(clock, ids, self._ended, kept)
        self.url = ""
        # Counts changes of rights; what somebody may see is asked again whenever it differs.
        self.rights_version = 0
        self._feed = Feed(location_chooser)
        self._http: HttpServer | None = None

    def extensions(self) -> dict[str, ExtensionHandler]:
        """Return what the API's own port answers about the console."""
        return {CONSOLE_CODES: self._codes, CONSOLE_SESSIONS: self._listed}

    async def listen(
        self, authorities: Authorities, api: HubServer, sockets: Sequence[socket.socket] = ()
    ) -> None:
        """Take the port; ConsoleError when it cannot be had, or the certificate not be used.

        *sockets* listen there already, in whoever supervises this process.
        """
        settings = self._settings
        desk = console_desk(self._feed, self._eyes(api), self._clock, questions_of(api, self._feed))
        desk = replace(desk, facts=lambda: facts_of(api))
        around = Around(self._by_token, self._record, self._audit, self._names)
        site = Site(read_assets(), self.sessions, desk, self._pace, self._clock, around)
        self._http = HttpServer(site.handle, _HTTP)
        context = self._context(authorities)
        try:
            port = await self._http.start(
                settings.bind_address, settings.console_port or 0, tls=context, sockets=sockets
            )
        except OSError as error:
            problem = no_console(settings, error)
            if settings.console_optional:
                log.warning("the hub goes without its console", problem=problem)
                return
            raise ConsoleError(problem) from error
        host = f"[{self._host}]" if ":" in self._host else self._host
        self.url = f"https://{host}:{port}"
        log.info("console ready", v=0, url=self.url)

    def rights_changed(self) -> None:
        """Have everybody's views look again what they may show."""
        self.rights_version += 1

    def _eyes(self, api: HubServer) -> Eyes:
        authorizer = self._authorizer

        def may(user: User, cluster: str, verb: str, gvr: GroupVersionResource) -> bool:
            asked = Attributes(cluster, verb, gvr.group, gvr.version, gvr.resource)
            return authorizer.authorize(user, asked).allowed

        state = api.state
        # Workspaces come and go as well, and with them who may enter.
        rights = Rights(
            may, lambda: (self.rights_version, len(state.clusters)), state.path_of, state.resolve
        )
        return Eyes(self._feed, rights)

    async def run(self, api: ApiServer) -> None:
        """Keep sessions' time and the feed until cancelled; then close the listener."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._pace.run())
                tasks.create_task(self._expire())
                tasks.create_task(run_feed(self._feed, feeding(api, self._clock), self._ids))
        finally:
            if self._http is not None:
                await self._http.stop(self._settings.drain_seconds)

    async def _expire(self) -> None:
        while True:
            await self._clock.sleep(_EXPIRE_SECONDS)
            self.sessions.expire()

    def _context(self, authorities: Authorities) -> ssl.SSLContext:
        certificate, key = self._settings.console_cert_file, self._settings.console_key_file
        if (certificate is None) != (key is None):
            raise ConsoleError("--console-cert and --console-key go together")
        if certificate is not None and key is not None:
            return given_context(certificate, key)
        live = LiveContext(authorities.context(asks=False))

        def changed() -> None:
            live.present = authorities.context(asks=False)

        authorities.listeners.append(changed)
        return live

    def _names(self) -> frozenset[str]:
        """Return the names by which browsers may call the console."""
        given = (self._host, "localhost", "127.0.0.1", "::1", *self._settings.tls_sans)
        return frozenset(each.lower() for each in given)

    # Signing in.

    async def _codes(self, visit: Visit) -> Answer:
        request = visit.request
        if request.method != "POST":
            raise MethodNotAllowed
        if not self.url:
            raise NotFound("this hub serves no console: its port was taken")
        user = person(visit.user)
        # By the time a browser is there, the fleet has been read.
        self._feed.wanted.set()
        credential = _credential(self._authenticator, request, visit.cluster)
        code, expires = self.sessions.issue(user, credential)
        document = {"code": code, "url": self.url, "expires": rfc3339(expires)}
        return Response(201, orjson.dumps(document), headers=(("Cache-Control", "no-store"),))

    async def _by_token(self, token: str, request: Request) -> tuple[User, HeldCredential]:
        header = f"Bearer {token}"
        cluster = cluster_of_token(header)
        credential = HeldCredential(self._authenticator, {"authorization": header}, None, cluster)
        return await credential.user(), credential

    async def _listed(self, visit: Visit) -> Answer:
        """List sessions, or end one: one's own, and everybody's for the hub's administrators."""
        user = person(visit.user)
        seen = [
            each
            for each in self.sessions.all()
            if each.user.principal == user.principal or is_administrator(user)
        ]
        if visit.request.method in ("GET", "HEAD"):
            return Response(body=orjson.dumps({"sessions": [_described(each) for each in seen]}))
        if visit.request.method != "DELETE":
            raise MethodNotAllowed
        named = visit.request.query.get("id", "")
        if not named:
            raise BadRequest("id: name the session to end")
        found = next((each for each in seen if each.id == named), None)
        if found is None:
            raise NotFound(f"there is no session {named[:64]!r} of yours")
        self.sessions.end(found, f"revoked by {user.name}")
        return Response(204)

    # What is noted.

    def _record(self, request: Request, user: User | None, answer: Answer) -> None:
        info = RequestInfo(path=request.path, verb=request.method.lower())
        self._recorder.finished(request, info, user, answer, served=True)

    def _audit(self, verb: str, kind: str, user: User, code: int) -> None:
        path = f"/console/{'subscriptions' if verb == 'watch' else 'questions'}/{kind}"
        self._note(path, verb, user, code)

    def _ended(self, session: Session, reason: str) -> None:
        log.info("console session ended", v=2, user=session.user.name, reason=reason)
        self._note("/console/session", "delete", session.user, 200)

    def _note(self, path: str, verb: str, user: User, code: int) -> None:
        request = Request(verb.upper(), path)
        info = RequestInfo(path=path, verb=verb)
        self._recorder.finished(request, info, user, Response(code), served=True)


def questions_of(api: HubServer, feed: Feed) -> dict[str, Answering]:
    """Return the questions that are answered over the hub's own API, with the viewer's rights."""
    viewer = Viewer(lambda user: embedded_transport(api, user), feed)
    asked = ConsoleQuestions(viewer, lambda: api.dispatcher.position)
    others = (ConsoleDecisions(viewer), ConsoleLogs(viewer, lambda: api.router.edges is not None))
    return asked.by_kind() | {k: v for each in others for k, v in each.by_kind().items()}


def given_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """Return the context of a listener that shows a certificate that a person gives."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise ConsoleError(f"--console-cert {certificate}: {error}") from error
    return context


def facts_of(api: ApiServer) -> Mapping[str, object]:
    """Return what a hello says of the hub."""
    version = {"version": skerry.__version__}
    return {**version, "store": api.store.identity, "revision": api.dispatcher.position}


def _described(session: Session) -> dict[str, str]:
    return {
        "id": session.id,
        "user": session.user.name,
        "address": session.address,
        "began": rfc3339(session.began),
        "ends": rfc3339(session.ends),
    }
