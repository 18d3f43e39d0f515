"""Many edges in one process: real sessions of the syncer, over TLS, with one edge for all.

    python -m bench.fleet_edges FOLDER FIRST LAST HEARTBEAT_SECONDS

FOLDER holds a kubeconfig ``edge-N.kubeconfig`` for each. Prints ``ready`` once every session has
read its mailbox and placed what is there; works until it is terminated.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import uvloop

from skerry.app.api_server import ApiServer
from skerry.app.hub_credential import HUB_LIMITS
from skerry.app.settings import ServerSettings, StoreSettings
from skerry.app.standalone import PLAIN_SERVER, serving
from skerry.app.syncer import hub_client
from skerry.edge.syncer.metrics import SyncerMetrics
from skerry.edge.syncer.session import Session
from skerry.edge.syncer.state import SyncerSettings
from skerry.edge.syncer.tables.journal import Journal
from skerry.edge.syncer.tables.sync_records import SyncRecords
from skerry.kit import log
from skerry.kit.clock import SystemClock
from skerry.kit.ids import SystemIds
from skerry.runtime.client import Client
from skerry.runtime.embedded import EmbeddedTransport
from skerry.runtime.kubeconfig import connect, load
from skerry.server.http.message import Peer, Request
from skerry.server.user import User

_ADMIN = User("admin", groups=("system:masters", "system:authenticated"))
# Edges of a fleet start one after the other, not in one moment.
_START_SPACING_SECONDS = 0.02


@contextlib.asynccontextmanager
async def edge(folder: Path) -> AsyncIterator[Client]:
    """Have an edge in this process, reached without a socket."""
    settings = ServerSettings(
        data_dir=folder, port=0, store=StoreSettings(kind="memory"), controllers="none"
    )
    async with serving(settings, PLAIN_SERVER) as running:
        yield Client(_inside(running.api))


def _inside(api: ApiServer) -> EmbeddedTransport:
    def request(**parts: object) -> Request:
        return Request(peer=Peer(user=_ADMIN), **parts)  # type: ignore[arg-type]

    return EmbeddedTransport(api.engine.handle, request)


def session(folder: Path, number: int, heartbeat: float, at_edge: Client) -> Session:
    """Return the session of one edge."""
    clock, ids = SystemClock(), SystemIds()
    name = f"edge-{number}"
    config = load([folder / f"{name}.kubeconfig"])
    transport = connect(config, clock=clock, limits=HUB_LIMITS, gzip=True)
    return Session(
        SyncerSettings(name=name, identity=name, heartbeat_seconds=heartbeat),
        hub_client(transport, clock),
        at_edge,
        SyncRecords(Journal(folder / f"{name}.journal")),
        ids,
        SyncerMetrics(),
    )


async def run(folder: Path, first: int, last: int, heartbeat: float) -> None:
    """Run the edges of this process until stopped."""
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    async with edge(folder / f"edge-server-{first}") as at_edge:
        tasks: list[asyncio.Task[None]] = []
        sessions: list[Session] = []
        for number in range(first, last):
            made = session(folder, number, heartbeat, at_edge)
            sessions.append(made)
            tasks.append(asyncio.create_task(made.run()))
            await asyncio.sleep(_START_SPACING_SECONDS)
        while any(made.state.outcomes.applied == 0 for made in sessions):
            await asyncio.sleep(0.2)
        print("ready", flush=True)
        await stopped.wait()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for made in sessions:
            await made.state.hub.transport.close()


if __name__ == "__main__":
    log.configure(verbosity=0)
    uvloop.run(run(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])))
