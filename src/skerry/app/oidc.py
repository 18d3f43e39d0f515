"""OpenID Connect put together: settings, and the way to the issuer."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from pathlib import Path
from urllib.parse import urlsplit

from skerry.kit.clock import Clock
from skerry.logic.machinery.oidc import OidcError, OidcSettings, check_settings
from skerry.runtime.http import HttpTransport, Limits
from skerry.runtime.transport import TransportError
from skerry.server.security.oidc import Fetch, IssuerKeys, OidcTokens

# From the first packet to the last; issuers answer within a second.
_SECONDS = 10.0
# Hundreds of keys; no issuer has as many.
_MAX_BYTES = 1 << 20
_LIMITS = Limits(connections=1, connect_seconds=5.0, request_seconds=_SECONDS)


def build_oidc(
    settings: OidcSettings, ca_file: Path | None, clock: Clock
) -> tuple[OidcTokens, IssuerKeys]:
    """Return what recognises people, and what keeps the issuer's keys while it runs."""
    check_settings(settings)
    try:
        tls = ssl.create_default_context(cafile=None if ca_file is None else str(ca_file))
    except (OSError, ssl.SSLError) as error:
        raise OidcError(f"--oidc-ca-file {ca_file}: {error}") from error
    keys = IssuerKeys(settings.issuer_url, _fetching(tls), clock)
    return OidcTokens(settings, keys, clock), keys


def _fetching(tls: ssl.SSLContext) -> Fetch:
    async def fetch(url: str) -> bytes:
        try:
            async with asyncio.timeout(_SECONDS):
                return await _fetched(url, tls)
        except (TransportError, TimeoutError, ValueError) as error:
            raise OidcError(f"{url[:200]}: {str(error) or 'no answer in time'}") from error

    return fetch


async def _fetched(url: str, tls: ssl.SSLContext) -> bytes:
    """Return what is at *url*; redirections are not followed."""
    parts = urlsplit(url)
    transport = HttpTransport(parts.hostname or "", parts.port or 443, tls, limits=_LIMITS)
    body = bytearray()
    try:
        accept = {"accept": "application/json"}
        path = parts.path or "/"
        async with transport.stream("GET", path, parts.query, headers=accept) as answer:
            if answer.status != 200:
                raise OidcError(f"{url[:200]}: status {answer.status}")
            async for chunk in answer:
                body += chunk
                if len(body) > _MAX_BYTES:
                    raise OidcError(f"{url[:200]}: more than {_MAX_BYTES} bytes")
    finally:
        with contextlib.suppress(TransportError):
            await transport.close()
    return bytes(body)
