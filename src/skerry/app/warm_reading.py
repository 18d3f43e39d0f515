"""Answers from what the console keeps up anyway, instead of reading the fleet for each question.

A viewer is asked for the same rights as somebody who lists: each list that is spared is asked for
one object, so the engine authorizes, limits and audits it as it would the whole. What was read
already is then looked at in the console's tables.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping

from skerry.api.edge import (
    EDGE_PLACEMENTS,
    LOCATION_CONSENTS,
    LOCATION_GRANTS,
    SINGLE_PLACEMENT_SLICES,
)
from skerry.api.errors import Forbidden, NotFound
from skerry.api.kcp.resources import LOCATIONS, SYNC_TARGETS, WORKSPACES
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.api.refs import ClusterName, ObjectRef
from skerry.app.hub_reading import FleetInventory, HubReader
from skerry.logic.fleet.explanation.standing import NOWHERE, Standing, Standings
from skerry.logic.fleet.placement.records import placement_of
from skerry.runtime.client import Client
from skerry.web.feed import Feed


class Kept(Mapping[ObjectRef, Object]):
    """The objects of a kind as the feed keeps them, opened one by one; perhaps of one cluster."""

    def __init__(self, feed: Feed, gvr: GroupVersionResource, cluster: ClusterName = "") -> None:
        self._feed = feed
        self._gvr = gvr
        self._cluster = cluster

    def __getitem__(self, ref: ObjectRef) -> Object:
        found = None
        if ref.group_resource == self._gvr.group_resource and self._is_here(ref.cluster):
            found = self._feed.object(self._gvr, (ref.cluster, ref.name))
        if found is None:
            raise KeyError(ref)
        return found

    def __iter__(self) -> Iterator[ObjectRef]:
        group, resource = self._gvr.group_resource
        for key in self._feed.keys(self._gvr):
            if self._is_here(key.cluster):
                yield ObjectRef(key.cluster, group, resource, "", key.name)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _is_here(self, cluster: ClusterName) -> bool:
        return not self._cluster or cluster == self._cluster


class WarmReader(HubReader):
    """Asks the hub only for what its console does not keep up."""

    def __init__(self, client: Client, workspace: str, feed: Feed) -> None:
        super().__init__(client, client, client, workspace)
        self._feed = feed

    async def inventory(
        self, placements: Iterable[Object], *, asks: bool = False
    ) -> FleetInventory:
        await self._feed.ready(answers=True)
        table, feed = self._feed.tables.table, self._feed
        for gvr in (LOCATION_GRANTS, LOCATION_CONSENTS):
            await self._consent_kind(gvr)
        picky = any(placement_of(each).workspaces is not None for each in placements)
        if table.consent.is_used or asks or picky:
            await may_list(await self._view(self._root, WORKSPACES.group), WORKSPACES)
        await may_list(await self._view(self._root, SYNC_TARGETS.group), SYNC_TARGETS)
        await may_list(await self._view(self._root, LOCATIONS.group), LOCATIONS)
        return FleetInventory(table, Kept(feed, LOCATIONS), Kept(feed, SYNC_TARGETS))

    async def standing(self, placement: ObjectRef) -> Standing:
        await may_list(self.own, SINGLE_PLACEMENT_SLICES)
        return self._feed.tables.standing(placement)

    async def placements_everywhere(self) -> Mapping[ObjectRef, Object]:
        return Kept(self._feed, EDGE_PLACEMENTS, await self._bounds(EDGE_PLACEMENTS))

    async def standings(self) -> Standings:
        bounds, tables = await self._bounds(SINGLE_PLACEMENT_SLICES), self._feed.tables
        return lambda ref: tables.standing(ref) if bounds in ("", ref.cluster) else NOWHERE

    async def _bounds(self, gvr: GroupVersionResource) -> ClusterName:
        """Return the cluster whose objects of a kind may be seen; empty: those of all."""
        await self._feed.ready(answers=True)
        try:
            await may_list(await self._edge_view(), gvr)
        except Forbidden:
            # Then those of the own workspace, which need not serve the kind, by who may list them.
            with contextlib.suppress(NotFound):
                await may_list(self.own, gvr)
            return await self.cluster()
        return ""

    async def _consent_kind(self, gvr: GroupVersionResource) -> list[Object]:
        await self._feed.ready(answers=True)
        try:
            await may_list(await self._edge_view(), gvr)
        except NotFound:
            return []
        return self._feed.kept(gvr)


async def may_list(client: Client, gvr: GroupVersionResource) -> None:
    """Raise what somebody would be answered who lists *gvr*."""
    await client.list_page(gvr, limit=1)
