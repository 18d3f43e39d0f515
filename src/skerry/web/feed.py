"""What the console knows of the fleet, kept up from informers for everybody who looks.

One index for all: the console reads for everybody and shows to each what they may see. It begins to
read when the first person comes, so that a hub whose console nobody opens pays nothing for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any

from skerry.api.edge import (
    CLUSTER_STATUS_SUMMARIES,
    EDGE_PLACEMENTS,
    LOCATION_CONSENTS,
    LOCATION_GRANTS,
    PLACEMENT_GUARDS,
    ROLLOUTS,
    SINGLE_PLACEMENT_SLICES,
    STATUS_QUERIES,
    STATUS_SUMMARIES,
)
from skerry.api.errors import ServiceUnavailable
from skerry.api.kcp.resources import LOCATIONS, SYNC_TARGETS, WORKSPACES
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.console.decided import ObjectRows, query_row, rollout_row
from skerry.logic.fleet.console.edges import EdgeIndex, EdgeKey, PlacementKey
from skerry.logic.fleet.console.placements import PlacementIndex
from skerry.logic.fleet.explanation.standing import FleetTables, placement_by
from skerry.logic.fleet.placement.choosing import MakeChoosing
from skerry.runtime.index import Key
from skerry.runtime.informer import Informer

Take = Callable[[Mapping[str, Any]], None]
# Without these there is nothing to show; the others are there once a provider offers them.
_NEEDED = (SYNC_TARGETS, LOCATIONS)
_WAIT_SECONDS = 10.0
_BY_PLACEMENT = "placement"
# What is followed for answers alone: no view waits for it.
_FOR_ANSWERS = (LOCATION_GRANTS, LOCATION_CONSENTS, PLACEMENT_GUARDS, WORKSPACES)


class Feed:
    """The indexes, and what keeps them up."""

    def __init__(self, choosing: MakeChoosing | None = None) -> None:
        """*choosing* makes what chooses for placements with a strategy; only answers need it."""
        self.tables = FleetTables(choosing, self._pieces)
        self.edges = EdgeIndex(self.tables.table)
        self.placements = PlacementIndex()
        self.objects: Mapping[GroupVersionResource, ObjectRows] = {
            ROLLOUTS: ObjectRows(rollout_row),
            STATUS_QUERIES: ObjectRows(query_row),
        }
        # Set when somebody wants to look.
        self.wanted = asyncio.Event()
        self._followed: dict[GroupVersionResource, Informer] = {}
        self._complete = asyncio.Event()
        edges, placements, tables = self.edges, self.placements, self.tables
        # What takes in an object of a kind, and what takes that it is gone.
        self.kinds: Mapping[GroupVersionResource, tuple[tuple[Take, Take], ...]] = {
            SYNC_TARGETS: ((edges.put_sync_target, edges.remove_sync_target),),
            LOCATIONS: ((edges.put_location, edges.remove_location),),
            SINGLE_PLACEMENT_SLICES: (
                (edges.put_slice, edges.remove_slice),
                (tables.put_slice, tables.remove_slice),
            ),
            EDGE_PLACEMENTS: (
                (placements.put_placement, placements.remove_placement),
                (tables.put_placement, tables.remove_placement),
            ),
            STATUS_SUMMARIES: ((placements.put_summary, placements.remove_summary),),
            CLUSTER_STATUS_SUMMARIES: ((placements.put_summary, placements.remove_summary),),
            LOCATION_GRANTS: ((tables.put_grant, tables.remove_grant),),
            LOCATION_CONSENTS: ((tables.put_consent, tables.remove_consent),),
            PLACEMENT_GUARDS: (),
            WORKSPACES: ((tables.put_workspace, tables.remove_workspace),),
            **{gvr: ((rows.put, rows.remove),) for gvr, rows in self.objects.items()},
        }

    def follow(self, gvr: GroupVersionResource, informer: Informer) -> None:
        """Take in what *informer* has, and every change."""
        takers = self.kinds[gvr]

        def handle(old: Object | None, new: Object | None) -> None:
            for put, remove in takers:
                if new is not None:
                    put(new)
                elif old is not None:
                    remove(old)

        self._followed[gvr] = informer
        if gvr == SINGLE_PLACEMENT_SLICES:
            informer.index.add_index(_BY_PLACEMENT, _by_placement)
        informer.add_handler(handle)
        if all(each in self._followed for each in _NEEDED):
            self._complete.set()

    def object(self, gvr: GroupVersionResource, key: EdgeKey | PlacementKey) -> Object | None:
        """Return an object without namespace as it is kept."""
        informer = self._followed.get(gvr)
        return None if informer is None else informer.index.get(Key(key[0], "", key[1]))

    def keys(self, gvr: GroupVersionResource) -> Iterator[Key]:
        """Yield where the objects of a kind are."""
        informer = self._followed.get(gvr)
        return iter(()) if informer is None else iter(informer.index)

    def kept(self, gvr: GroupVersionResource) -> list[Object]:
        """Return all objects of a kind, as they are kept."""
        informer = self._followed.get(gvr)
        return [] if informer is None else list(informer.index.objects())

    def _pieces(self, placement: ObjectRef) -> list[Object]:
        informer = self._followed.get(SINGLE_PLACEMENT_SLICES)
        return [] if informer is None else informer.index.by(_BY_PLACEMENT, placement)

    async def ready(self, *, answers: bool = False) -> None:
        """Wait until all that is followed has been read; ServiceUnavailable when that lasts.

        *answers*: what no view shows is wanted too.
        """
        self.wanted.set()
        try:
            async with asyncio.timeout(_WAIT_SECONDS):
                await self._complete.wait()
                for gvr, informer in list(self._followed.items()):
                    if answers or gvr not in _FOR_ANSWERS:
                        await informer.wait_synced()
        except TimeoutError as error:
            raise ServiceUnavailable("the hub is still reading the fleet") from error


def _by_placement(piece: Object) -> Iterable[Hashable]:
    """Index slices under their placement."""
    return (placement_by(piece),)
