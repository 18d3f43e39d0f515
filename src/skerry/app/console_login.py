"""Signing in to a hub's console with the credential of a kubeconfig."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode, urlsplit, urlunsplit

from skerry.api.errors import MethodNotAllowed, NotFound
from skerry.app.console_proxy import ConsoleProxy, Target
from skerry.app.explain_names import Unanswered
from skerry.app.hub_settings import HubSettings
from skerry.runtime.answers import answer_failure, decoded
from skerry.runtime.kubeconfig import Overrides, connect, load, tls_context
from skerry.runtime.transport import Answer

_CODES = "/skerry/console/codes"
_SESSIONS = "/skerry/console/sessions"
_JSON = {"content-type": "application/json"}


@dataclass(frozen=True, slots=True)
class LoginLink:
    """An address that signs in once, within a minute."""

    url: str
    code: str
    expires: str

    @property
    def address(self) -> str:
        """The link as a browser takes it. What follows ``#`` reaches no server and no log."""
        return f"{self.url}/console/login#code={self.code}"


async def login_link(settings: HubSettings) -> LoginLink:
    """Return a link that signs in as whom the kubeconfig stands for."""
    try:
        document = decoded((await _asked(settings, "POST", _CODES)).body)
    except (NotFound, MethodNotAllowed) as error:
        raise Unanswered(
            "the hub has no console; skerry hub --console-port PORT serves one"
        ) from error
    return LoginLink(document["url"], document["code"], document["expires"])


@asynccontextmanager
async def console_proxy(settings: HubSettings, port: int) -> AsyncIterator[str]:
    """Lead a browser to the console through this machine; yields the address that signs in."""
    link = await login_link(settings)
    config = load(settings.paths(), Overrides(context=settings.context))
    # The console shows the hub's own certificate, and asks for none.
    context = tls_context(replace(config, certificate=b"", key=b""))
    async with ConsoleProxy(Target(link.url, context)).listening(port) as url:
        yield replace(link, url=url).address


async def proxied(settings: HubSettings, port: int, show: Callable[[str], None]) -> None:
    """Lead a browser to the console until cancelled; *show* gets the link."""
    async with console_proxy(settings, port) as address:
        show(address)
        await asyncio.Event().wait()


async def console_sessions(settings: HubSettings) -> list[dict[str, Any]]:
    """Return the sessions of the console that whoever asks may see."""
    found: list[dict[str, Any]] = decoded((await _asked(settings, "GET", _SESSIONS)).body)[
        "sessions"
    ]
    return found


async def end_session(settings: HubSettings, session: str) -> None:
    """End one session of the console."""
    await _asked(settings, "DELETE", _SESSIONS, urlencode({"id": session}))


async def _asked(settings: HubSettings, method: str, path: str, query: str = "") -> Answer:
    config = load(settings.paths(), Overrides(context=settings.context))
    server = urlsplit(config.server)
    # Of the hub as a whole, whichever workspace the kubeconfig leads to.
    config = replace(config, server=urlunsplit((server.scheme, server.netloc, "", "", "")))
    transport = connect(config)
    try:
        answer = await transport.request(method, path, query, _JSON, b"")
    finally:
        await transport.close()
    if answer.status >= 300:
        raise answer_failure(answer)
    return answer
