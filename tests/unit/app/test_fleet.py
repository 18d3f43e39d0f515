"""The fleet read from a real hub engine, at once and kept up; nothing is written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from skerry.api.edge import EDGE_PLACEMENTS
from skerry.api.errors import Forbidden
from skerry.api.kcp.resources import SYNC_TARGETS
from skerry.app.fleet import Fleet, FleetUnreadable
from skerry.runtime.client import Client
from tests.kit.chain.summarizer_hub import PROVIDER, Hub
from tests.kit.sim.loop import virtual

LOST = {
    "lastSyncerHeartbeatTime": "2026-03-01T12:00:00Z",
    "conditions": [
        {
            "type": "Ready",
            "status": "False",
            "reason": "ErrorHeartbeat",
            "message": "No heartbeat since then",
            "lastTransitionTime": "2026-03-01T12:01:00Z",
        }
    ],
}


def target(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "workload.kcp.io/v1alpha1",
        "kind": "SyncTarget",
        "metadata": {"name": name},
        "spec": {"cells": {}},
    }


class Town(Hub):
    """Two inventories and a workload's workspace."""

    @asynccontextmanager
    async def furnished(self) -> AsyncIterator[Fleet]:
        async with self.running([]):
            for inventory, edge in (("imw", "florin"), ("imw-2", "guilder")):
                await self.workspace("root", inventory)
                await self.at(f"root:{inventory}").create(SYNC_TARGETS, target(edge))
            await self.place("p")
            yield self.fleet()

    def fleet(
        self, root: Client | None = None, provider: Client | None = None, **more: int
    ) -> Fleet:
        return Fleet(
            provider or self.client.at("", PROVIDER),
            root or self.client.at("", "root"),
            self.client,
            self.client.clock,
            **more,
        )


@virtual
async def test_edges_and_placements_of_all_workspaces_are_read_with_their_paths() -> None:
    async with Town().furnished() as fleet:
        await fleet.read()
        edges, placements = fleet.overview.edges().rows, fleet.overview.placements().rows
        assert [(row.name, fleet.path(row.cluster)) for row in edges] == [
            ("florin", "root:imw"),
            ("guilder", "root:imw-2"),
        ]
        assert [(row.name, fleet.path(row.cluster)) for row in placements] == [("p", "root:wmw")]


async def _until(met: Callable[[], bool]) -> None:
    while not met():
        await asyncio.sleep(0.1)


@virtual
async def test_what_changes_is_followed() -> None:
    town = Town()
    async with town.furnished() as fleet, asyncio.TaskGroup() as tasks:
        # What the fleet starts ends with a task of its own.
        following: asyncio.Future[None] = asyncio.Future()

        async def follow() -> None:
            async with asyncio.TaskGroup() as own:
                await fleet.follow(own)
                following.set_result(None)

        running = tasks.create_task(follow())
        await following
        overview = fleet.overview
        inventory = town.at("root:imw")
        await inventory.patch(SYNC_TARGETS, "florin", {"status": LOST}, subresource="status")
        await _until(lambda: overview.counts().edges.get("Lost") == 1)
        assert overview.edges(1).rows[0].problem == "No heartbeat since then"
        await inventory.delete(SYNC_TARGETS, "florin")
        await _until(lambda: [row.name for row in overview.edges().rows] == ["guilder"])
        await town.owner.delete(EDGE_PLACEMENTS, "p")
        await _until(lambda: not overview.placements().rows)
        running.cancel()


@virtual
async def test_the_next_page_is_on_its_way_while_one_is_taken_in() -> None:
    town = Town()
    async with town.furnished():
        taken = list[int]()

        class Noting(Client):
            """A client that notes what was taken in when a further page was asked for."""

            async def list_page(self, *words: Any, **more: Any) -> Any:
                if more.get("continuation"):
                    taken.append(len(fleet.overview.edges().rows))
                return await super().list_page(*words, **more)

            def at(self, root: str, cluster: str = "") -> Client:
                return replace(self, root=root, cluster=cluster)

        root = Noting(town.client.transport, cluster="root")
        fleet = town.fleet(root=root, page_size=1)
        await fleet.read()
        assert taken == [0]
        assert [row.name for row in fleet.overview.edges().rows] == ["florin", "guilder"]


class _Closed(Client):
    """A client whose user may read nothing."""

    async def get(self, *_: Any, **__: Any) -> Any:
        raise Forbidden("apiexports is forbidden")


@virtual
async def test_a_part_that_may_not_be_read_is_named_and_the_other_shown() -> None:
    town = Town()
    async with town.furnished():
        closed = _Closed(town.client.transport)
        fleet = town.fleet(root=closed)
        await fleet.read()
        assert fleet.unreadable == {"edges": "apiexports is forbidden"}
        assert [row.name for row in fleet.overview.placements().rows] == ["p"]
        with pytest.raises(FleetUnreadable, match="apiexports is forbidden"):
            await town.fleet(root=closed, provider=closed).read()
