"""OpenID Connect put together: settings, and the way to the issuer."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import urlsplit

from skerry.kit.clock import Clock
from skerry.kit.trust import trusting
from skerry.logic.machinery.oidc import OidcError, OidcSettings, check_settings
from skerry.logic.machinery.oidc_login import Form
from skerry.runtime.http import HttpTransport, Limits
from skerry.runtime.transport import TransportError
from skerry.server.security.oidc import IssuerKeys, OidcTokens

# From the first packet to the last; issuers answer within a second.
_SECONDS = 10.0
# Hundreds of keys; no issuer has as many.
_MAX_BYTES = 1 << 20
_LIMITS = Limits(connections=1, connect_seconds=5.0, request_seconds=_SECONDS)
_NOTHING = Form({}, b"")

# (method, URL, what is sent): the status and the answer; OidcError when none comes.
Exchange = Callable[[str, str, Form], Awaitable[tuple[int, bytes]]]


def build_oidc(
    settings: OidcSettings, ca_file: Path | None, clock: Clock
) -> tuple[OidcTokens, IssuerKeys]:
    """Return what recognises people, and what keeps the issuer's keys while it runs."""
    check_settings(settings)
    exchange = exchanging(issuer_context(ca_file))

    async def fetch(url: str) -> bytes:
        status, body = await exchange("GET", url, _NOTHING)
        if status != 200:
            raise OidcError(f"{url[:200]}: status {status}")
        return body

    keys = IssuerKeys(settings.issuer_url, fetch, clock)
    return OidcTokens(settings, keys, clock), keys


def issuer_context(ca_file: Path | None) -> ssl.SSLContext:
    """Return what an issuer must prove itself by."""
    if ca_file is None:
        return trusting(b"")
    try:
        # An empty file would stand for the system's authorities.
        return trusting(ca_file.read_bytes() or b"\n")
    except (OSError, ValueError, ssl.SSLError) as error:
        raise OidcError(f"--oidc-ca-file {ca_file}: {error}") from error


def exchanging(tls: ssl.SSLContext) -> Exchange:
    """Return what asks an issuer; its answers are bounded in time and size."""

    async def exchange(method: str, url: str, form: Form) -> tuple[int, bytes]:
        try:
            async with asyncio.timeout(_SECONDS):
                return await _exchanged(method, url, form, tls)
        except (TransportError, TimeoutError, ValueError) as error:
            raise OidcError(f"{url[:200]}: {str(error) or 'no answer in time'}") from error

    return exchange


async def _exchanged(method: str, url: str, form: Form, tls: ssl.SSLContext) -> tuple[int, bytes]:
    """Return the status and what was answered; redirections are not followed."""
    parts = urlsplit(url)
    transport = HttpTransport(parts.hostname or "", parts.port or 443, tls, limits=_LIMITS)
    body = bytearray()
    try:
        headers = {"accept": "application/json", **form.headers}
        path = parts.path or "/"
        async with transport.stream(method, path, parts.query, headers, form.body) as answer:
            async for chunk in answer:
                body += chunk
                if len(body) > _MAX_BYTES:
                    raise OidcError(f"{url[:200]}: more than {_MAX_BYTES} bytes")
            return answer.status, bytes(body)
    finally:
        with contextlib.suppress(TransportError):
            await transport.close()
