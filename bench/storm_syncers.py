"""Many syncers in one process: the connections, watches and heartbeats of real ones.

    python -m bench.storm_syncers KUBECONFIG HEARTBEAT_SECONDS

Reads their mailboxes and certificates, a line of JSON, and says every quarter of a second how they
fare (``Standing``). Each has its own certificate, its own transport with the limits of a syncer,
packed streams, and the real heartbeat with its own way of trying again. They apply nothing
anywhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import uvloop

from bench.memory import LightSyncer
from skerry.app.hub_credential import HUB_LIMITS
from skerry.app.open_files import raise_open_files
from skerry.app.syncer import hub_client
from skerry.edge.syncer.heartbeat import Heartbeat
from skerry.edge.syncer.metrics import SyncerMetrics
from skerry.edge.syncer.state import SyncerSettings
from skerry.kit import garbage, log
from skerry.kit.clock import SystemClock
from skerry.kit.ids import SystemIds
from skerry.runtime.http import HttpTransport
from skerry.runtime.kubeconfig import load, tls_context
from skerry.runtime.transport import NO_HEADERS, Answer, AnswerStream, Transport
from skerry.runtime.wrapping import WrappedTransport

_REPORT_SECONDS = 0.25
_NICE = 19


class Edge(msgspec.Struct):
    """The mailbox of an edge, and what the edge shows to enter it."""

    cluster: str
    certificate: str
    key: str


class Fleet(msgspec.Struct):
    """The edges of one process. They start so many seconds apart, as those of a fleet do."""

    edges: list[Edge]
    spacing_seconds: float


class Standing(msgspec.Struct):
    """How the syncers of a process fare."""

    # How many have read all there is, and follow.
    following: int = 0
    # When the one was heard by the hub whose last heartbeat is longest ago; 0: one never was.
    heard: float = 0.0
    # How many heartbeats had to be sent again.
    failed: int = 0
    # How many requests the hub answered with "not now".
    refused: int = 0


class Counted(WrappedTransport):
    """Notes when the hub has answered, what it refused, and whether its stream is open."""

    def __init__(self, inner: Transport) -> None:
        super().__init__(inner)
        self.heard = 0.0
        self.refused = 0
        self.streams = 0

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        answer = await super().request(method, path, query, headers, body)
        if answer.status in (429, 503):
            self.refused += 1
        elif method == "PATCH":
            self.heard = time.time()
        return answer

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> AsyncIterator[AnswerStream]:
        async with super().stream(method, path, query, headers, body) as answer:
            self.refused += answer.status in (429, 503)
            self.streams += 1
            try:
                yield answer
            finally:
                self.streams -= 1


class Syncers:
    """The syncers of some mailboxes."""

    def __init__(self, kubeconfig: Path, heartbeat: float) -> None:
        self._config = replace(load([kubeconfig]), token="")
        self._clock, self._ids = SystemClock(), SystemIds()
        self._metrics = SyncerMetrics()
        self._heartbeat = heartbeat
        self._syncers: list[LightSyncer] = []
        self._counted: list[Counted] = []

    async def run(self, fleet: Fleet) -> None:
        """Be all of them until cancelled."""
        async with contextlib.AsyncExitStack() as stack, asyncio.TaskGroup() as tasks:
            tasks.create_task(self._report())
            for number, edge in enumerate(fleet.edges):
                transport = Counted(self._transport(edge))
                stack.push_async_callback(transport.close)
                client = hub_client(transport, self._clock, edge.cluster)
                syncer = LightSyncer(client, self._ids, self._metrics.runtime, follows_types=False)
                self._counted.append(transport)
                self._syncers.append(syncer)
                tasks.create_task(syncer.run())
                tasks.create_task(self._beat(syncer, f"light-{number}"))
                await asyncio.sleep(fleet.spacing_seconds)
            garbage.settle()

    def _transport(self, edge: Edge) -> HttpTransport:
        url = urlsplit(self._config.server)
        own = replace(self._config, certificate=edge.certificate.encode(), key=edge.key.encode())
        return HttpTransport(
            url.hostname or "", url.port or 443, tls_context(own), limits=HUB_LIMITS, gzip=True
        )

    async def _beat(self, syncer: LightSyncer, name: str) -> None:
        while not syncer.follows:
            await asyncio.sleep(1.0)
        # Spread over the whole interval, as those of edges are that have been there for long.
        await asyncio.sleep(self._heartbeat * self._ids.fraction())
        settings = SyncerSettings(name=name, identity=name, heartbeat_seconds=self._heartbeat)
        beating = Heartbeat(
            syncer.client, settings, self._ids, self._metrics, lambda: True, _nothing_to_report
        )
        await beating.run()

    async def _report(self) -> None:
        failed = self._metrics.heartbeats.labels("failed")
        while True:
            standing = Standing(
                following=sum(
                    syncer.follows and bool(counted.streams)
                    for syncer, counted in zip(self._syncers, self._counted, strict=True)
                ),
                heard=min((each.heard for each in self._counted), default=0.0),
                failed=int(failed._value.get()),
                refused=sum(each.refused for each in self._counted),
            )
            print(msgspec.json.encode(standing).decode(), flush=True)
            await asyncio.sleep(_REPORT_SECONDS)


class _Nowhere(io.TextIOBase):
    def write(self, text: str) -> int:
        return len(text)


async def _nothing_to_report() -> None:
    return


if __name__ == "__main__":
    # Each of them says each time that the hub is away.
    log.configure(stream=_Nowhere())
    raise_open_files()
    # They are other machines, whose work takes nothing from the hub.
    os.nice(_NICE)
    wanted = msgspec.json.decode(sys.stdin.buffer.readline(), type=Fleet)
    uvloop.run(Syncers(Path(sys.argv[1]), float(sys.argv[2])).run(wanted))
