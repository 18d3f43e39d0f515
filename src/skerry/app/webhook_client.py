"""The way to webhooks over real sockets: which addresses, which trust, which connections.

Connections are kept and shared by all calls of the same place with the same trust. Where only some
networks may be reached, a name is resolved here, and the connection goes to the very address that
was looked at: a name that changes its mind between the look and the connection gains nothing.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from typing import Final, NamedTuple

from skerry.app.service_endpoints import Unreachable, endpoint_of
from skerry.kit.trust import trusting
from skerry.logic.machinery.webhook_clients import ClientConfig
from skerry.runtime.http import HttpTransport, Limits
from skerry.runtime.transport import ConnectionLost, TransportError
from skerry.server.webhook_client import (
    MAX_ANSWER_BYTES,
    UnusableClient,
    WebhookError,
    WebhookReply,
)
from skerry.store.base import Store

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

# Places with connections of their own; those that were not used for longest are given up.
_MAX_PLACES: Final = 64
# To one place at once. A webhook that hangs must not make others wait for their turn, which counts
# as its time: no fewer than the writes that may be under way.
_LIMITS: Final = Limits(
    connections=1024, connect_seconds=30.0, request_seconds=35.0, answer_bytes=MAX_ANSWER_BYTES
)
_HEADERS: Final = {
    "content-type": "application/json",
    "accept": "application/json, */*",
    "user-agent": "kube-apiserver-admission",
}
_CERTIFICATE: Final = "tls: failed to verify certificate: x509: "
_UNKNOWN_AUTHORITY: Final = frozenset((18, 19, 20, 21))
_EXPIRED: Final = frozenset((9, 10))
_OTHER_NAME: Final = frozenset((62, 64))


class _Place(NamedTuple):
    """Where connections are alike: an address, the name it goes by, and who vouches for it."""

    host: str
    port: int
    address: str
    ca_bundle: bytes


def parse_networks(texts: Sequence[str]) -> tuple[Network, ...]:
    """Return the networks that *texts* name; ``ValueError`` says which of them is none."""
    return tuple(ipaddress.ip_network(text.strip()) for text in texts)


class HttpWebhookClient:
    """Calls webhooks. With *networks*, those that are there and no others; without *services*,
    none that Services stand before."""

    def __init__(
        self, store: Store, networks: Sequence[Network] | None = None, *, services: bool = True
    ) -> None:
        self._store = store
        self._networks = networks
        self._services = services
        self._transports: OrderedDict[_Place, HttpTransport] = OrderedDict()

    async def post(
        self, client: ClientConfig, cluster: str, query: str, body: bytes, seconds: float
    ) -> WebhookReply:
        """Return the answer of a webhook; see the protocol."""
        shown = f'Post "{client.url}?{query}"'
        try:
            async with asyncio.timeout(seconds):
                transport = await self._transport(client, cluster)
                answer = await transport.request("POST", client.path, query, _HEADERS, body)
        except TimeoutError as error:
            raise WebhookError(f"{shown}: context deadline exceeded") from error
        except (TransportError, Unreachable, ValueError) as error:
            raise WebhookError(f"{shown}: {_reason(client, error)}") from error
        return WebhookReply(*answer)

    async def close(self) -> None:
        """Give up all connections."""
        transports = list(self._transports.values())
        self._transports.clear()
        for transport in transports:
            await transport.close()

    async def _transport(self, client: ClientConfig, cluster: str) -> HttpTransport:
        address, port = client.host, client.port
        if client.service is not None:
            if not self._services:
                raise Unreachable("webhooks of workspaces are not called through Services")
            address, port = await endpoint_of(self._store, client.service, cluster)
        if self._networks is not None:
            address = await self._allowed(address, port)
        if client.ca_bundle is None:
            raise UnusableClient(_NO_BUNDLE)
        place = _Place(client.host, port, address, client.ca_bundle)
        known = self._transports.get(place)
        if known is not None:
            self._transports.move_to_end(place)
            return known
        made = self._transports[place] = HttpTransport(
            client.host,
            port,
            _trust(client.ca_bundle),
            address=address,
            limits=_LIMITS,
            repeats=True,
        )
        if len(self._transports) > _MAX_PLACES:
            _, oldest = self._transports.popitem(last=False)
            oldest.retire()
        return made

    async def _allowed(self, host: str, port: int) -> str:
        """Return an address of *host* that may be reached; nothing is said of any other."""
        async for address in _addresses(host, port):
            if any(address in network for network in self._networks or ()):
                return str(address)
        raise Unreachable("the hub's administrator allows no webhooks at this address")


async def _addresses(
    host: str, port: int
) -> AsyncIterator[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    """Yield the addresses of a host, each as the address that packets go to."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise Unreachable(f"dial tcp: lookup {host}: no such host") from error
    for *_, where in found:
        address = ipaddress.ip_address(str(where[0]).partition("%")[0])
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
            yield address.ipv4_mapped
        else:
            yield address


_NO_BUNDLE: Final = "unable to load root certificates: unable to parse bytes as PEM block"


def _trust(ca_bundle: bytes) -> ssl.SSLContext:
    try:
        return trusting(ca_bundle)
    except (ssl.SSLError, ValueError) as error:
        raise UnusableClient(_NO_BUNDLE) from error


def _reason(client: ClientConfig, error: Exception) -> str:
    """Return why a call failed, in the words of Go's client where it has some."""
    cause = error.__cause__
    if isinstance(cause, ssl.SSLCertVerificationError):
        if cause.verify_code in _UNKNOWN_AUTHORITY:
            return f"{_CERTIFICATE}certificate signed by unknown authority"
        if cause.verify_code in _EXPIRED:
            return f"{_CERTIFICATE}certificate has expired or is not yet valid"
        if cause.verify_code in _OTHER_NAME:
            return f"{_CERTIFICATE}certificate is not valid for {client.host}"
        return f"{_CERTIFICATE}{cause.verify_message}"
    if isinstance(cause, ConnectionRefusedError):
        return f"dial tcp {client.host}:{client.port}: connect: connection refused"
    if isinstance(cause, socket.gaierror):
        return f"dial tcp: lookup {client.host}: no such host"
    if isinstance(error, ConnectionLost):
        return "EOF"
    return str(error)
