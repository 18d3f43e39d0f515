"""What the console knows of the fleet, kept up from informers for everybody who looks.

One index for all: the console reads for everybody and shows to each what they may see. It begins to
read when the first person comes, so that a hub whose console nobody opens pays nothing for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from skerry.api.edge import (
    EDGE_PLACEMENTS,
    ROLLOUTS,
    SINGLE_PLACEMENT_SLICES,
    STATUS_QUERIES,
    STATUS_SUMMARIES,
)
from skerry.api.errors import ServiceUnavailable
from skerry.api.kcp.resources import LOCATIONS, SYNC_TARGETS
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.logic.fleet.console.decided import ObjectRows, query_row, rollout_row
from skerry.logic.fleet.console.edges import EdgeIndex, EdgeKey, PlacementKey
from skerry.logic.fleet.console.placements import PlacementIndex
from skerry.logic.fleet.summary.content import CLUSTER_SCOPED
from skerry.runtime.index import Key
from skerry.runtime.informer import Informer

Take = Callable[[Mapping[str, Any]], None]
# Without these there is nothing to show; the others are there once a provider offers them.
_NEEDED = (SYNC_TARGETS, LOCATIONS)
_WAIT_SECONDS = 10.0


class Feed:
    """The indexes, and what keeps them up."""

    def __init__(self) -> None:
        self.edges = EdgeIndex()
        self.placements = PlacementIndex()
        self.objects: Mapping[GroupVersionResource, ObjectRows] = {
            ROLLOUTS: ObjectRows(rollout_row),
            STATUS_QUERIES: ObjectRows(query_row),
        }
        # Set when somebody wants to look.
        self.wanted = asyncio.Event()
        self._followed: dict[GroupVersionResource, Informer] = {}
        self._complete = asyncio.Event()
        edges, placements = self.edges, self.placements
        self.kinds: Mapping[GroupVersionResource, tuple[Take, Take]] = {
            SYNC_TARGETS: (edges.put_sync_target, edges.remove_sync_target),
            LOCATIONS: (edges.put_location, edges.remove_location),
            SINGLE_PLACEMENT_SLICES: (edges.put_slice, edges.remove_slice),
            EDGE_PLACEMENTS: (placements.put_placement, placements.remove_placement),
            STATUS_SUMMARIES: (placements.put_summary, placements.remove_summary),
            CLUSTER_SCOPED: (placements.put_summary, placements.remove_summary),
            **{gvr: (rows.put, rows.remove) for gvr, rows in self.objects.items()},
        }

    def follow(self, gvr: GroupVersionResource, informer: Informer) -> None:
        """Take in what *informer* has, and every change."""
        put, remove = self.kinds[gvr]

        def handle(old: Object | None, new: Object | None) -> None:
            if new is not None:
                put(new)
            elif old is not None:
                remove(old)

        self._followed[gvr] = informer
        informer.add_handler(handle)
        if all(each in self._followed for each in _NEEDED):
            self._complete.set()

    def object(self, gvr: GroupVersionResource, key: EdgeKey | PlacementKey) -> Object | None:
        """Return an object without namespace as it is kept."""
        informer = self._followed.get(gvr)
        return None if informer is None else informer.index.get(Key(key[0], "", key[1]))

    async def ready(self) -> None:
        """Wait until all that is followed has been read; ServiceUnavailable when that lasts."""
        self.wanted.set()
        try:
            async with asyncio.timeout(_WAIT_SECONDS):
                await self._complete.wait()
                for informer in list(self._followed.values()):
                    await informer.wait_synced()
        except TimeoutError as error:
            raise ServiceUnavailable("the hub is still reading the fleet") from error
