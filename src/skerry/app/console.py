"""The console of a hub: its listener, and who signs in. Where the hub is, it does not know."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Sequence
from urllib.parse import urlsplit

import orjson

from skerry.api.errors import BadRequest, MethodNotAllowed, NotFound
from skerry.app.console_access import HubAccess
from skerry.app.console_credential import HeldCredential, credential_of, person
from skerry.app.console_decisions import ConsoleDecisions
from skerry.app.console_desk import console_desk
from skerry.app.console_events import ConsoleEvents
from skerry.app.console_feed import feeding, run_feed
from skerry.app.console_oidc import console_issuer, kept_credential
from skerry.app.console_past import PastReader
from skerry.app.console_pods import ConsolePods
from skerry.app.console_questions import Answering, ConsoleQuestions, Viewer
from skerry.app.console_record import ConsoleError, console_url, no_console
from skerry.app.settings import ServerSettings
from skerry.kit.clock import Clock
from skerry.kit.ids import IdSource
from skerry.kit.log import Logger
from skerry.kit.timestamps import rfc3339
from skerry.scheduler.placement import location_chooser
from skerry.server.access import Authenticator
from skerry.server.engine import Recorder
from skerry.server.http.message import Answer, Request, Response
from skerry.server.http.server import HttpServer
from skerry.server.http.settings import HttpSettings
from skerry.server.request.info import RequestInfo
from skerry.server.security.authorization import is_administrator
from skerry.server.user import User
from skerry.server.workspaces.routing import cluster_of_token
from skerry.web.assets import read_assets
from skerry.web.eyes import Eyes
from skerry.web.feed import Feed
from skerry.web.oidc import OidcSignIn
from skerry.web.pace import Pace
from skerry.web.session_files import SessionFiles
from skerry.web.sessions import Kept, Session, Sessions
from skerry.web.site import HEADERS, Around, Site

log = Logger("console")

_EXPIRE_SECONDS = 15.0
# Where a tab's doings are found in the audit log, by their verbs; all others are questions.
_AUDITED = {"watch": "subscriptions", "create": "programs"}
# Codes and tokens are short; files are compressed already.
_HTTP = HttpSettings(body_bytes=64 * 1024, gzip_bytes=1 << 30, headers=HEADERS)


class Console:
    """The console of one hub."""

    def __init__(
        self,
        settings: ServerSettings,
        hub_url: str,
        authenticator: Authenticator,
        recorder: Recorder,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        self._settings = settings
        self._host = urlsplit(hub_url).hostname or ""
        self._authenticator = authenticator
        self._ids = ids
        self._recorder = recorder
        self._clock = clock
        self._pace = Pace(clock)
        issuer = console_issuer(settings, authenticator, clock)
        self._oidc = None if issuer is None else OidcSignIn(issuer, clock, ids)
        kept = Kept(
            SessionFiles(settings.data_dir / "console-sessions"),
            lambda packed: kept_credential(packed, authenticator, issuer),
        )
        self.sessions = Sessions(clock, ids, self._ended, kept)
        self.url = ""
        self._feed = Feed(location_chooser)
        self._http: HttpServer | None = None

    async def listen(
        self, context: ssl.SSLContext, hub: HubAccess, sockets: Sequence[socket.socket] = ()
    ) -> None:
        """Take the port; ConsoleError when it cannot be had.

        *sockets* listen there already, in whoever supervises this process.
        """
        settings = self._settings
        eyes = Eyes(self._feed, hub.rights)
        viewer = Viewer(hub.transport_for, self._feed)
        past = PastReader(viewer, self._feed, eyes, self._clock)
        pods = ConsolePods(viewer, hub.tunnels, self._ids)
        questions = questions_of(hub, viewer) | pods.by_kind()
        desk = console_desk(
            self._feed, eyes, self._clock, questions, pods.programs(), hub.facts, past.read
        )
        around = Around(self._by_token, self._record, self._audit, self._names, self._oidc)
        issuer = "" if self._oidc is None else self._oidc.name
        site = Site(
            read_assets(issuer=issuer), self.sessions, desk, self._pace, self._clock, around
        )
        self._http = HttpServer(site.handle, _HTTP)
        try:
            port = await self._http.start(
                settings.bind_address, settings.console_port or 0, tls=context, sockets=sockets
            )
        except OSError as error:
            problem = no_console(settings, error)
            if settings.console_optional:
                log.warning("the hub goes without its console", error=problem)
                return
            raise ConsoleError(problem) from error
        self.url = console_url(self._host, port)
        log.info("console ready", v=0, url=self.url)

    async def run(self, hub: HubAccess) -> None:
        """Keep sessions' time and the feed until cancelled; then close the listener."""
        client = feeding(hub.transport_for, self._clock)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._pace.run())
                tasks.create_task(self._expire())
                tasks.create_task(run_feed(self._feed, client, self._ids))
        finally:
            if self._http is not None:
                await self._http.stop(self._settings.drain_seconds)

    async def _expire(self) -> None:
        while True:
            await self._clock.sleep(_EXPIRE_SECONDS)
            self.sessions.expire()

    def _names(self) -> frozenset[str]:
        """Return the names by which browsers may call the console."""
        given = (self._host, "localhost", "127.0.0.1", "::1", *self._settings.tls_sans)
        return frozenset(each.lower() for each in given)

    # Signing in.

    async def codes(self, request: Request, cluster: str, user: User) -> Response:
        """Give *user* a code to sign in with."""
        if request.method != "POST":
            raise MethodNotAllowed
        if not self.url:
            raise NotFound("this hub serves no console: its port was taken")
        # By the time a browser is there, the fleet has been read.
        self._feed.wanted.set()
        credential = credential_of(self._authenticator, request, cluster)
        code, expires = self.sessions.issue(person(user), credential)
        document = {"code": code, "url": self.url, "expires": rfc3339(expires)}
        return Response(201, orjson.dumps(document), headers=(("Cache-Control", "no-store"),))

    async def _by_token(self, token: str, request: Request) -> tuple[User, HeldCredential]:
        header = f"Bearer {token}"
        cluster = cluster_of_token(header)
        credential = HeldCredential(self._authenticator, {"authorization": header}, None, cluster)
        return await credential.user(), credential

    async def listed(self, request: Request, user: User) -> Response:
        """List sessions, or end one: one's own, and everybody's for the hub's administrators."""
        person(user)
        seen = [
            each
            for each in self.sessions.all()
            if each.user.principal == user.principal or is_administrator(user)
        ]
        if request.method in ("GET", "HEAD"):
            return Response(body=orjson.dumps({"sessions": [_described(each) for each in seen]}))
        if request.method != "DELETE":
            raise MethodNotAllowed
        named = request.query.get("id", "")
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
        self._note(f"/console/{_AUDITED.get(verb, 'questions')}/{kind}", verb, user, code)

    def _ended(self, session: Session, reason: str) -> None:
        log.info("console session ended", v=2, user=session.user.name, reason=reason)
        self._note("/console/session", "delete", session.user, 200)

    def _note(self, path: str, verb: str, user: User, code: int) -> None:
        request = Request(verb.upper(), path)
        info = RequestInfo(path=path, verb=verb)
        self._recorder.finished(request, info, user, Response(code), served=True)


def questions_of(hub: HubAccess, viewer: Viewer) -> dict[str, Answering]:
    """Return the questions that are answered over the hub's own API, with the viewer's rights."""

    async def revision() -> int:
        return int((await hub.facts())["revision"])

    asked = ConsoleQuestions(viewer, revision)
    decided, recorded = ConsoleDecisions(viewer), ConsoleEvents(viewer)
    return asked.by_kind() | decided.by_kind() | recorded.by_kind()


def _described(session: Session) -> dict[str, str]:
    return {
        "id": session.id,
        "user": session.user.name,
        "address": session.address,
        "began": rfc3339(session.began),
        "ends": rfc3339(session.ends),
    }
