"""An OpenID Connect provider that listens: people sign in at it in a browser, and codes are real.

It does what an issuer must: a code is good once, for the client, the address and the PKCE secret
that it was asked for with. Tests make it lie by its members.
"""

from __future__ import annotations

import asyncio
import contextlib
import html
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode

from skerry.kit import log
from skerry.logic.machinery.oidc_login import challenge_of
from skerry.server.http.message import Answer, Request, Response
from skerry.server.http.server import HttpServer
from skerry.server.security.pki import open_pki
from tests.kit.server.certificates import server_context
from tests.kit.server.oidc_issuer import Issuer


class Provider(Issuer):
    """An issuer that listens; *answers* may say something else than the truth."""

    def __init__(self) -> None:
        super().__init__("")
        self.answers: dict[str, Answer] = {}
        self.stuck = asyncio.Event()
        # What codes and refresh tokens stand for.
        self.codes: dict[str, dict[str, str]] = {}
        self.refreshing: dict[str, str] = {}
        # What every ID token says besides; and whether refresh tokens are given.
        self.claims: dict[str, Any] = {}
        self.refreshes = False
        self.secret = ""
        # The forms that came to the token endpoint.
        self.forms: list[dict[str, str]] = []
        self._made = 0

    def document(self) -> dict[str, Any]:
        return {
            **super().document(),
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
        }

    async def handle(self, request: Request) -> Answer:
        self.fetched.append(request.path)
        if request.path in self.answers:
            return self.answers[request.path]
        if request.path == "/stuck":
            await self.stuck.wait()
        if request.path == "/authorize":
            return self._asking(request)
        if request.path == "/approve":
            return self._approved(_words(request.query_string))
        if request.path == "/token":
            return self._tokens(_words(request.body.decode()))
        found = self.jwks() if request.path == "/keys" else self.document()
        return Response(body=json.dumps(found).encode())

    def code(self, asked: dict[str, str], subject: str = "alice") -> str:
        """Return a code for somebody who has signed in here."""
        self._made += 1
        code = f"code-{self._made}"
        self.codes[code] = {**asked, "subject": subject}
        return code

    def _asking(self, request: Request) -> Response:
        """Show a page on which somebody signs in, or does not."""
        fields = "".join(
            f'<input type="hidden" name="{html.escape(name)}" value="{html.escape(value)}">'
            for name, value in _words(request.query_string).items()
        )
        buttons = "".join(
            f'<button name="as" value="{each}">Sign in as {each}</button>' for each in ("alice", "")
        )
        page = f'<title>Issuer</title><form action="/approve">{fields}{buttons}</form>'
        return Response(200, page.encode(), "text/html; charset=utf-8")

    def _approved(self, asked: dict[str, str]) -> Response:
        said = {"state": asked["state"]}
        if subject := asked.pop("as", ""):
            said["code"] = self.code(asked, subject)
        else:
            said["error"] = "access_denied"
        where = f"{asked['redirect_uri']}?{urlencode(said)}"
        return Response(302, headers=(("Location", where),))

    def _tokens(self, form: dict[str, str]) -> Response:
        self.forms.append(form)
        if form.get("grant_type") == "refresh_token":
            subject = self.refreshing.pop(form.get("refresh_token", ""), "")
            return self._given(subject, {}) if subject else _refused("invalid_grant")
        known = self.codes.pop(form.get("code", ""), None)
        if known is None or known["redirect_uri"] != form.get("redirect_uri"):
            return _refused("invalid_grant")
        if challenge_of(form.get("code_verifier", "")) != known["code_challenge"]:
            return _refused("invalid_grant")
        if form.get("client_secret", "") != self.secret:
            return _refused("invalid_client")
        return self._given(known["subject"], {"nonce": known["nonce"]})

    def _given(self, subject: str, said: dict[str, str]) -> Response:
        self._made += 1
        token = self.token(sub=subject, **{**said, "jti": str(self._made), **self.claims})
        document = {"id_token": token, "access_token": "a", "token_type": "Bearer"}
        if self.refreshes:
            self.refreshing[f"refresh-{self._made}"] = subject
            document["refresh_token"] = f"refresh-{self._made}"
        return Response(body=json.dumps(document).encode())


def _refused(error: str) -> Response:
    return Response(400, json.dumps({"error": error}).encode())


def _words(text: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(text).items()}


@contextlib.asynccontextmanager
async def listening(folder: Path) -> AsyncIterator[tuple[Provider, Path]]:
    """Run a provider; give it and the file of its authority."""
    log.configure(verbosity=0)
    pki = open_pki(folder / "issuer", ["127.0.0.1", "localhost"])
    provider = Provider()
    http = HttpServer(provider.handle)
    port = await http.start(tls=server_context(pki))
    provider.url = f"https://127.0.0.1:{port}"
    try:
        yield provider, pki.directory / "ca.crt"
    finally:
        provider.stuck.set()
        await http.stop(0.1)
