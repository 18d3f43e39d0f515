"""Many syncers in one process: the connections, watches and heartbeats of real ones.

    python -m bench.storm_syncers KUBECONFIG HEARTBEAT_SECONDS

Reads the clusters of their mailboxes, a line of JSON, and says every quarter of a second how many
follow theirs and how many heartbeats have failed. Each has its own transport with the limits of a
syncer, packed streams, and the real heartbeat with its own way of trying again. They apply nothing
anywhere, and all come with the one token of KUBECONFIG, by one set of TLS settings.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from pathlib import Path
from urllib.parse import urlsplit

import uvloop

from bench.memory import LightSyncer
from skerry.app.hub_credential import HUB_LIMITS
from skerry.app.syncer import hub_client
from skerry.edge.syncer.heartbeat import Heartbeat
from skerry.edge.syncer.metrics import SyncerMetrics
from skerry.edge.syncer.state import SyncerSettings
from skerry.kit import log
from skerry.kit.clock import SystemClock
from skerry.kit.ids import SystemIds
from skerry.runtime.http import HttpTransport
from skerry.runtime.kubeconfig import load, tls_context

# Edges of a fleet start one after the other, not in one moment.
_START_SPACING_SECONDS = 0.004


class Syncers:
    """The syncers of some mailboxes."""

    def __init__(self, kubeconfig: Path, heartbeat: float) -> None:
        self._config = load([kubeconfig])
        self._tls = tls_context(self._config)
        self._clock, self._ids = SystemClock(), SystemIds()
        self._metrics = SyncerMetrics()
        self._heartbeat = heartbeat
        self._syncers: list[LightSyncer] = []

    async def run(self, clusters: list[str]) -> None:
        """Be all of them until cancelled."""
        async with contextlib.AsyncExitStack() as stack, asyncio.TaskGroup() as tasks:
            tasks.create_task(self._report())
            for number, cluster in enumerate(clusters):
                transport = self._transport()
                stack.push_async_callback(transport.close)
                syncer = LightSyncer(
                    hub_client(transport, self._clock, cluster), self._ids, self._metrics.runtime
                )
                self._syncers.append(syncer)
                tasks.create_task(syncer.run())
                tasks.create_task(self._beat(syncer, f"light-{number}"))
                await asyncio.sleep(_START_SPACING_SECONDS)

    def _transport(self) -> HttpTransport:
        url = urlsplit(self._config.server)
        return HttpTransport(
            url.hostname or "",
            url.port or 443,
            self._tls,
            authorization=f"Bearer {self._config.token}",
            limits=HUB_LIMITS,
            gzip=True,
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
            following = sum(syncer.follows for syncer in self._syncers)
            print(json.dumps([following, int(failed._value.get())]), flush=True)
            await asyncio.sleep(0.25)


async def _nothing_to_report() -> None:
    return


if __name__ == "__main__":
    log.configure(verbosity=0)
    wanted = json.loads(sys.stdin.readline())
    uvloop.run(Syncers(Path(sys.argv[1]), float(sys.argv[2])).run(wanted))
