"""The way to aggregated API servers over real sockets, and the proof by which they believe us.

Every request has a connection of its own: who asks is said in its headers, and a connection that
two requests share would have to be trusted not to mix them up.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from skerry.api.keys import PLAIN
from skerry.app.service_endpoints import Unreachable, endpoint_of
from skerry.controllers.core.api_services import build
from skerry.kit.clock import Clock
from skerry.kit.ids import IdSource
from skerry.kit.trust import trusting
from skerry.logic.machinery.aggregation import AggregatedVersion, identity_lines, returned
from skerry.logic.machinery.webhook_clients import ServiceRef
from skerry.runtime.client import Client
from skerry.runtime.context import ControllerContext
from skerry.runtime.http import HttpTransport, Limits, Upgraded
from skerry.runtime.informer import InformerFactory
from skerry.runtime.transport import TransportError
from skerry.server.aggregation.apis import AggregatedApis, Asked, unavailable
from skerry.server.http.message import Answer, Duplex, Response, Sender, Stream, Upgrade
from skerry.server.security.pki import Credential, open_front_proxy
from skerry.server.security.tls import load_credential
from skerry.server.streaming.websocket import as_duplex
from skerry.store.base import Store
from skerry.wire.http1 import request_head

_SECONDS: Final = 60.0
_LIMITS: Final = Limits(connect_seconds=5.0, request_seconds=_SECONDS, answer_bytes=0)
# What is held of an answer before it is passed on piece by piece.
_WHOLE_BYTES: Final = 1 << 20
# The largest list of resources that is remembered, and how long a server may take to give it.
_DISCOVERY_BYTES: Final = 4 << 20
_DISCOVERY_SECONDS: Final = 5.0
_FAILED: Final = "error trying to reach service: "


class _Connections(HttpTransport):
    """Requests whose heads are given line by line; a header may be there several times."""

    lines: Sequence[tuple[str, str]] = ()

    async def _payload(
        self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes
    ) -> bytes:
        return _head(method, path, query, self.lines, self._fixed, len(body)) + body


def _head(
    method: str,
    path: str,
    query: str,
    lines: Sequence[tuple[str, str]],
    fixed: Sequence[str],
    length: int,
) -> bytes:
    target = f"{path}?{query}" if query else path
    for name, value in lines:
        if any(each in text for each in "\r\n" for text in (name, value)):
            raise ValueError(f"header {name!r}: want no line breaks in it")
    listed = [f"{name}: {value}" for name, value in lines]
    if length or method in ("POST", "PUT", "PATCH"):
        listed.append(f"content-length: {length}")
    return request_head(method, target, {}, [*fixed, *listed])


class AggregatedServers:
    """Passes requests on. The front proxy's keys are kept in *directory*."""

    def __init__(self, store: Store, directory: Path, clock: Clock) -> None:
        self._store = store
        self._directory = directory
        self._clock = clock
        self._keys: tuple[Credential, Credential] | None = None

    @property
    def authority(self) -> str:
        """The authority, PEM, by which our certificate is known."""
        return self._proof()[0].certificate.decode("ascii")

    def _proof(self) -> tuple[Credential, Credential]:
        # Made when first needed: most servers never have an aggregated one.
        if self._keys is None:
            self._keys = open_front_proxy(self._directory, self._clock)
        return self._keys

    async def pass_on(self, version: AggregatedVersion, asked: Asked) -> Answer:
        """Return the other server's answer, or that it was not reached."""
        try:
            address, port = await self._where(version)
        except Unreachable:
            return unavailable("service unavailable")
        try:
            if asked.upgrade:
                return await self._upgraded(version, asked, address, port)
            return await self._answered(version, asked, address, port)
        except (TransportError, OSError, ValueError, EOFError) as error:
            return unavailable(f"{_FAILED}{error}")

    async def resources(self, version: AggregatedVersion) -> Mapping[str, Any]:
        """Return what a server says it serves; ``Unreachable`` says why it does not."""
        path = f"/apis/{version.group_version.group}/{version.group_version.version}"
        return await self._document(version, path)

    async def swagger(self, version: AggregatedVersion) -> Mapping[str, Any]:
        """Return what a server says of itself in OpenAPI v2; ``Unreachable`` as above."""
        return await self._document(version, "/openapi/v2")

    async def _document(self, version: AggregatedVersion, path: str) -> Mapping[str, Any]:
        address, port = await self._where(version)
        url = f"https://{address}:{port}{path}"
        limits = Limits(1, _DISCOVERY_SECONDS, _DISCOVERY_SECONDS, answer_bytes=_DISCOVERY_BYTES)
        transport = self._transport(version, address, port, limits)
        masters = identity_lines("system:kube-aggregator", "", ["system:masters"], {})
        transport.lines = [("accept", "application/json"), *masters]
        try:
            answer = await transport.request("GET", path)
        except (TransportError, ValueError) as error:
            raise Unreachable(f"failing or missing response from {url}: {error}") from error
        finally:
            await transport.close()
        if not 200 <= answer.status < 300:
            text = f"bad status from {url}: {answer.status}"
            raise Unreachable(f"failing or missing response from {url}: {text}")
        try:
            found = orjson.loads(answer.body)
        except orjson.JSONDecodeError:
            return {}
        return found if isinstance(found, dict) else {}

    async def _where(self, version: AggregatedVersion) -> tuple[str, int]:
        service = ServiceRef(version.namespace, version.service, version.port)
        return await endpoint_of(self._store, service, PLAIN)

    def _trust(self, version: AggregatedVersion) -> ssl.SSLContext:
        if version.ca_bundle is None:
            raise ValueError("unable to load root certificates: caBundle is not base64")
        try:
            context = trusting(version.ca_bundle)
        except (ssl.SSLError, UnicodeDecodeError) as error:
            raise ValueError("unable to load root certificates: caBundle is no PEM") from error
        if version.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        load_credential(context, self._proof()[1])
        return context

    def _transport(
        self, version: AggregatedVersion, address: str, port: int, limits: Limits = _LIMITS
    ) -> _Connections:
        return _Connections(
            version.host, port, self._trust(version), address=address, limits=limits
        )

    async def _answered(
        self, version: AggregatedVersion, asked: Asked, address: str, port: int
    ) -> Answer:
        transport = self._transport(version, address, port)
        transport.lines = asked.lines
        async with contextlib.AsyncExitStack() as opening:
            stream = await opening.enter_async_context(
                transport.stream(asked.method, asked.path, asked.query, body=asked.body)
            )
            pieces = aiter(stream)
            held: list[bytes] = []
            whole = not asked.is_watch and await _gathered(pieces, held)
            stack = opening.pop_all()
        media = stream.headers.get("content-type", "")
        headers = returned(stream.headers)
        if whole:
            await stack.aclose()
            return Response(stream.status, b"".join(held), media, headers)

        async def run(sender: Sender) -> None:
            async with stack:
                for piece in held:
                    sender.write(piece)
                async for piece in pieces:
                    sender.write(piece)
                    await sender.drain()

        return Stream(run, stream.status, media, headers, None, 1 if asked.is_watch else 0)

    async def _upgraded(
        self, version: AggregatedVersion, asked: Asked, address: str, port: int
    ) -> Answer:
        transport = self._transport(version, address, port)
        transport.lines = [*asked.lines, ("Connection", "Upgrade"), ("Upgrade", asked.upgrade)]
        async with contextlib.AsyncExitStack() as opening:
            found = await opening.enter_async_context(
                transport.upgraded(asked.upgrade, asked.path, asked.query, method=asked.method)
            )
            if found.status != 101:
                body, headers = await found.refusal(), dict(found.headers)
                media = headers.pop("content-type", "text/plain")
                return Response(found.status, body, media, returned(headers))
            stack = opening.pop_all()

        async def run(sender: Sender) -> None:
            async with stack:
                await _both_ways(as_duplex(sender), found)

        headers = dict(found.headers)
        kept = [(name, value) for name, value in returned(headers) if name != "upgrade"]
        return Upgrade(run, 101, "", kept, None, 0, protocol=headers.get("upgrade", asked.upgrade))


async def _gathered(pieces: AsyncIterator[bytes], held: list[bytes]) -> bool:
    """Take what comes into *held*; True when that was all, False once it is much."""
    size = 0
    async for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size > _WHOLE_BYTES:
            return False
    return True


async def _both_ways(client: Duplex, server: Upgraded) -> None:
    """Pass on what either side sends until one of them has ended."""

    async def passed(source: Duplex | Upgraded, target: Duplex | Upgraded) -> None:
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            while piece := await source.read():
                target.write(piece)
                await target.drain()

    async with asyncio.TaskGroup() as tasks:
        both = [tasks.create_task(passed(*way)) for way in ((client, server), (server, client))]
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        for task in both:
            task.cancel()


async def run_aggregation(
    client: Client, ids: IdSource, apis: AggregatedApis, servers: AggregatedServers
) -> None:
    """Keep up what is known of aggregated servers, until cancelled."""

    async def probe(version: AggregatedVersion) -> str:
        place = version.group_version
        try:
            found = await servers.resources(version)
        except (Unreachable, OSError, ValueError) as error:
            return str(error)
        if apis.learned.get(place) != found or place not in apis.described:
            # It need not describe itself to be of use.
            with contextlib.suppress(Unreachable, OSError, ValueError):
                apis.describe(place, await servers.swagger(version))
        apis.learned[place] = found
        return ""

    factory = InformerFactory(client, ids=ids)
    controller = build(ControllerContext(client=client, factory=factory, ids=ids), probe)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(factory.run())
        tasks.create_task(controller.run())
