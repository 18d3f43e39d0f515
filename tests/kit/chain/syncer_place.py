"""A hub, an edge and the state of a syncer's session that nobody runs, for tests of its parts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

from skerry.api.refs import ObjectRef
from skerry.app.syncer import hub_client
from skerry.edge.syncer.metrics import SyncerMetrics
from skerry.edge.syncer.session import Session
from skerry.edge.syncer.state import SyncerState
from skerry.edge.syncer.tables.journal import Journal, Offload
from skerry.edge.syncer.tables.sync_records import SyncRecords
from skerry.edge.syncer.upsync import UpsyncWatches
from skerry.logic.fleet.syncing.difference import Observed
from skerry.logic.fleet.syncing.evidence import Evidence
from skerry.logic.fleet.syncing.present import present
from skerry.logic.fleet.syncing.wanted import Desired
from skerry.runtime.client import Client
from skerry.runtime.informer import InformerFactory
from tests.kit.chain.inline import inline
from tests.kit.chain.syncer_world import CONFIG_MAPS, NAMESPACES, SyncerWorld

PAGE = ObjectRef("", "", "configmaps", "shop", "page")
FULL = Evidence(
    synced=True, configured=True, trusted=True, store="a", revision=100, config_revision=100
)
CONTENT = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "page", "namespace": "shop"},
    "data": {"index.html": "hello"},
}
WANTED = Desired("v1", CONTENT, "m1", 5)


class Place:
    """A hub, an edge and the state of a session that nobody runs."""

    def __init__(self, world: SyncerWorld, journal: Journal) -> None:
        self.world = world
        self.journal = journal
        edge = Client(world.to_edge, clock=world.clock)
        hub = hub_client(world.hub.transport, world.clock)
        records = SyncRecords(journal)
        session = Session(world.settings, hub, edge, records, world.ids, SyncerMetrics())
        self.state: SyncerState = session.state
        self.watches = UpsyncWatches(self.state, InformerFactory(edge, ids=world.ids))

    async def observed(self, wanted: Desired | None = WANTED) -> Observed:
        """Return what an observer would see of the page, with the best of evidence."""
        live = await self.world.at_edge(CONFIG_MAPS, "page")
        return Observed(
            PAGE,
            wanted,
            True,
            None if live is None else present(live),
            self.state.records.placed(PAGE),
            FULL,
            budget=self.state.budget.of(PAGE),
        )

    def remembered(self) -> list[str]:
        return self.journal.keys("")


@asynccontextmanager
async def place(
    folder: Path, *, namespace: bool = True, offload: Offload = inline
) -> AsyncIterator[Place]:
    world = SyncerWorld(folder)
    async with world.running():
        journal = Journal(folder / "journal", offload=offload)
        if namespace:
            for server in (world.edge, world.hub):
                shop = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
                await server.client.create(NAMESPACES, shop)
        with closing(journal):
            yield Place(world, journal)
