"""What the console's listener answers: the page, its files, sessions, and the socket.

The page is static and public: whoever opens it has nothing yet, and links to any view work from a
chat. Everything that shows or changes something needs a session.

| request | answer |
|---|---|
| ``GET /`` | to the fleet |
| ``GET /console/assets/HASH/PATH`` | a file of the page, to be kept for ever |
| ``POST /console/session`` | a session, for a code or a token, ours or an issuer's |
| ``POST /console/oidc`` | where to sign in at the issuer, if there is one |
| ``GET``, ``DELETE /console/session`` | who is signed in; the end of it |
| ``GET /console/socket`` | the WebSocket of a tab |
| ``GET /console/...`` | the page, which reads its address itself |
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from skerry.api.errors import (
    ApiError,
    BadRequest,
    MethodNotAllowed,
    NotFound,
    TooManyRequests,
    Unauthorized,
    UnsupportedMediaType,
)
from skerry.kit.clock import Clock
from skerry.kit.timestamps import rfc3339
from skerry.logic.fleet.console.frames import MAX_FRAME_BYTES, SUBPROTOCOL
from skerry.server.http.encoding import accepts_gzip, error_response
from skerry.server.http.message import Answer, Request, Response, Sender, Upgrade
from skerry.server.streaming.websocket import WebSocket, as_duplex, handshake
from skerry.server.user import User
from skerry.web.assets import PREFIX, Asset, Assets
from skerry.web.desk import Desk
from skerry.web.oidc import LIFETIME_SECONDS, OidcSignIn
from skerry.web.origin import check_host, check_navigation, check_own_page, check_site
from skerry.web.pace import Pace
from skerry.web.sessions import Credential, Session, Sessions
from skerry.web.tab import Tab
from skerry.web.terminals import Audit

COOKIE = "__Host-skerry"
# Of a browser that is away to sign in.
OIDC_COOKIE = "__Host-skerry-oidc"
SESSION = "/console/session"
SOCKET = "/console/socket"
OIDC = "/console/oidc"
FLEET = "/console/fleet"
# No script can be made of text, and nothing is fetched but from here.
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
# On every answer of the listener that has none of its own.
HEADERS = (
    ("Content-Security-Policy", CSP),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cache-Control", "no-store"),
)
# Kept by the browser as long as the session may last, and sent from our own page only.
_ATTRIBUTES = "Secure; HttpOnly; SameSite=Strict; Path=/"
_FOR_EVER = ("Cache-Control", "public, max-age=31536000, immutable")
_OWN_HEADER = "x-skerry-console"
_MAX_TOKEN_LENGTH = 16 * 1024
# Of one session: more than anybody can look at.
_MAX_TABS = 64

# What a pasted token stands for: whom, and what can be asked again.
ByToken = Callable[[str, Request], Awaitable[tuple[User, Credential]]]
Record = Callable[[Request, User | None, Answer], None]


@dataclass(frozen=True, slots=True)
class Around:
    """What the console is handed of the hub it belongs to."""

    by_token: ByToken
    record: Record
    audit: Audit
    names: Callable[[], Collection[str]]
    oidc: OidcSignIn | None = None


class Site:
    """Answers the requests of browsers."""

    def __init__(
        self,
        assets: Assets,
        sessions: Sessions,
        desk: Desk,
        pace: Pace,
        clock: Clock,
        around: Around,
    ) -> None:
        self._assets = assets
        self._sessions = sessions
        self._desk = desk
        self._pace = pace
        self._clock = clock
        self._around = around

    async def handle(self, request: Request) -> Answer:
        """Answer *request*; whatever concerns a session is audited."""
        answer: Answer
        try:
            authority = check_host(request.headers, self._around.names())
            answer = await self._answer(request, authority)
        except ApiError as error:
            answer = error_response(error)
        if request.path in (SESSION, SOCKET, OIDC):
            self._around.record(request, request.user, answer)
        return answer

    async def _answer(self, request: Request, authority: str) -> Answer:
        path = request.path
        if path == SESSION:
            return await self._session(request, authority)
        if path == OIDC:
            return await self._to_issuer(request, authority)
        if request.method not in ("GET", "HEAD"):
            raise MethodNotAllowed
        if path == SOCKET:
            return await self._socket(request, authority)
        if path.startswith(PREFIX):
            check_site(request.headers)
            asset = self._assets.files.get(path)
            if asset is None:
                raise NotFound.path()
            return _file(request, asset, _FOR_EVER)
        check_navigation(request.headers)
        if path == "/":
            return Response(302, headers=(("Location", FLEET),))
        if path == "/console" or path.startswith("/console/"):
            return _file(request, self._assets.page)
        raise NotFound.path()

    async def _session(self, request: Request, authority: str) -> Response:
        if request.method == "GET":
            check_site(request.headers)
            session = await self._signed_in(request)
            return _json({"user": session.user.name, "ends": rfc3339(session.ends)})
        _check_sender(request, authority)
        if request.method == "POST":
            return await self._sign_in(request)
        if request.method == "DELETE":
            self._sessions.end(await self._signed_in(request), "signed out")
            return Response(204, headers=(("Set-Cookie", f"{COOKIE}=; Max-Age=0; {_ATTRIBUTES}"),))
        raise MethodNotAllowed

    async def _sign_in(self, request: Request) -> Response:
        shown, address = _shown(request), request.peer.address
        if shown.state:
            cookie = _cookie(request, OIDC_COOKIE)
            user, credential = await self._issuer().finish(cookie, shown.state, shown.code)
            secret, session = self._sessions.begin(user, credential, address)
        elif shown.code:
            secret, session = await self._sessions.redeem(shown.code, address)
        else:
            user, credential = await self._around.by_token(shown.token, request)
            secret, session = self._sessions.begin(user, credential, address)
        request.user = session.user
        cookies = [f"{COOKIE}={secret}; {_ATTRIBUTES}"]
        if shown.state:
            cookies.append(f"{OIDC_COOKIE}=; Max-Age=0; {_ATTRIBUTES}")
        return Response(204, headers=tuple(("Set-Cookie", each) for each in cookies))

    async def _to_issuer(self, request: Request, authority: str) -> Response:
        if request.method != "POST":
            raise MethodNotAllowed
        _check_sender(request, authority)
        url, kept = await self._issuer().begin(authority)
        cookie = f"{OIDC_COOKIE}={kept}; Max-Age={LIFETIME_SECONDS}; {_ATTRIBUTES}"
        return Response(200, orjson.dumps({"url": url}), headers=(("Set-Cookie", cookie),))

    def _issuer(self) -> OidcSignIn:
        if self._around.oidc is None:
            raise NotFound("this hub knows no issuer to sign in at: --oidc-issuer-url names one")
        return self._around.oidc

    async def _signed_in(self, request: Request) -> Session:
        session = await self._sessions.find(_cookie(request))
        request.user = session.user
        return session

    async def _socket(self, request: Request, authority: str) -> Answer:
        check_own_page(request.headers, authority)
        session = await self._signed_in(request)
        headers = handshake(request, (SUBPROTOCOL,))
        if len(session.closing) >= _MAX_TABS:
            raise TooManyRequests(f"a session has at most {_MAX_TABS} tabs: close some", 60)

        async def run(sender: Sender) -> None:
            socket = WebSocket(as_duplex(sender), MAX_FRAME_BYTES)
            around = self._around
            tab = Tab(
                socket, session, self._sessions, self._desk, self._pace, self._clock, around.audit
            )
            await tab.run()

        return Upgrade(run, headers=headers)


def _file(request: Request, asset: Asset, *headers: tuple[str, str]) -> Response:
    varies = ("Vary", "Accept-Encoding")
    if asset.gzipped and accepts_gzip(request.headers.get("accept-encoding", "")):
        packed = ("Content-Encoding", "gzip")
        return Response(200, asset.gzipped, asset.media_type, (packed, varies, *headers))
    return Response(200, asset.body, asset.media_type, (varies, *headers))


def _json(document: Any) -> Response:
    return Response(body=orjson.dumps(document))


def _check_sender(request: Request, authority: str) -> None:
    """Raise unless the console's own page asks, and knows what it asks for."""
    check_own_page(request.headers, authority)
    if request.headers.get(_OWN_HEADER) != "1":
        raise BadRequest("X-Skerry-Console: want 1, as the console's own page sends it")


class _Shown(NamedTuple):
    """What somebody signs in by: a code of ours, a token, or a code and state of the issuer."""

    code: str
    token: str
    state: str


def _shown(request: Request) -> _Shown:
    named = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if named != "application/json":
        raise UnsupportedMediaType(f"a session is asked for in JSON, found {named[:64]!r}")
    try:
        document = orjson.loads(request.body)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"the body is no JSON: {error}") from error
    given = document if isinstance(document, dict) else {}
    found = _Shown(*(given.get(name, "") for name in _Shown._fields))
    if (
        not all(isinstance(each, str) for each in found)
        or bool(found.code) == bool(found.token)
        or (found.state and found.token)
    ):
        raise BadRequest(
            'want {"code": "..."}, {"code": "...", "state": "..."} or {"token": "..."}'
        )
    if len(found.token) > _MAX_TOKEN_LENGTH:
        raise Unauthorized
    return found._replace(token=found.token.strip())


def _cookie(request: Request, wanted: str = COOKIE) -> str:
    for pair in request.headers.get("cookie", "").split(";"):
        name, _, value = pair.strip().partition("=")
        if name == wanted:
            return value
    return ""
