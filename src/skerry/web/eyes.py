"""Whose eyes: what somebody may see of what the console knows, asked again when rights change."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from pyroaring import BitMap

from skerry.api.edge import (
    CLUSTER_STATUS_SUMMARIES,
    EDGE_PLACEMENTS,
    SINGLE_PLACEMENT_SLICES,
    STATUS_SUMMARIES,
)
from skerry.api.errors import Forbidden, NotFound
from skerry.api.kcp.resources import SYNC_TARGETS
from skerry.api.kinds import GroupVersionResource
from skerry.api.refs import ClusterName
from skerry.kit.text import shortened
from skerry.logic.fleet.console.edges import PlacementKey
from skerry.logic.fleet.console.filters import Sight
from skerry.logic.fleet.console.placements import Stage
from skerry.server.user import User
from skerry.web.feed import Feed

Made = TypeVar("Made")
# (who, where, verb, kind): what the hub's authorizer says.
May = Callable[[User, ClusterName, str, GroupVersionResource], bool]
_MAX_CACHED = 256
_SHOWN = 128
UNNAMED = "?"


class Unlearned(Exception):
    """What was asked about rights is not known here yet: wait for ``Rights.learn``, ask again."""


async def _nothing() -> None:
    """Have nothing to learn: where the hub is, everything is known."""


@dataclass(frozen=True, slots=True)
class Rights:
    """What the console is handed of the hub's security and workspaces.

    Each may raise ``Unlearned`` where the hub is another process.
    """

    may: May
    # Differs whenever somebody's rights may.
    version: Callable[[], object]
    path_of: Callable[[ClusterName], str]
    resolve: Callable[[str], ClusterName | None]
    # Finds out what was asked for and not known.
    learn: Callable[[], Awaitable[None]] = _nothing

    async def settled(self, make: Callable[[], Made]) -> Made:
        """Return what *make* makes, once everything it asks about rights is known."""
        while True:
            try:
                return make()
            except Unlearned:
                await self.learn()


class Eyes:
    """What each viewer may see."""

    def __init__(self, feed: Feed, rights: Rights) -> None:
        self._feed = feed
        self.rights = rights
        self._cache: dict[tuple[object, ...], tuple[object, Sight]] = {}

    def version(self) -> object:
        """Return what differs whenever somebody may see more or less."""
        return self.rights.version()

    def sight(self, user: User) -> Sight:
        """Return what *user* may see now."""
        edges = self._feed.edges
        version = (self.rights.version(), edges.membership)
        who = (user.name, user.groups, user.home)
        cached = self._cache.get(who)
        if cached is not None and cached[0] == version:
            return cached[1]
        seen = BitMap()
        for cluster in self.allowed(user, edges.by_cluster, SYNC_TARGETS):
            seen |= edges.by_cluster[cluster]
        sight = Sight(seen, lambda cluster: self.sees_destinations(user, cluster), self._resolved)
        if len(self._cache) >= _MAX_CACHED:
            self._cache.clear()
        self._cache[who] = (version, sight)
        return sight

    def allowed(
        self, user: User, clusters: Iterable[ClusterName], gvr: GroupVersionResource
    ) -> set[ClusterName]:
        """Return the workspaces of *clusters* in which *user* may list a kind; asks for all."""
        found, unlearned = set(), False
        for cluster in clusters:
            try:
                if self.rights.may(user, cluster, "list", gvr):
                    found.add(cluster)
            except Unlearned:
                unlearned = True
        if unlearned:
            raise Unlearned
        return found

    def sees_placements(self, user: User, cluster: ClusterName) -> bool:
        """Tell whether *user* may see the placements of a workspace."""
        return self.rights.may(user, cluster, "list", EDGE_PLACEMENTS)

    def sees_destinations(self, user: User, cluster: ClusterName) -> bool:
        """Tell whether *user* may see where the placements of a workspace lead."""
        slices = self.rights.may(user, cluster, "list", SINGLE_PLACEMENT_SLICES)
        return slices and self.sees_placements(user, cluster)

    def hidden(self, user: User, cluster: ClusterName) -> list[str]:
        """Return the kinds of which placements of a workspace show nothing to *user*."""
        kinds = (SINGLE_PLACEMENT_SLICES, STATUS_SUMMARIES, CLUSTER_STATUS_SUMMARIES)
        return [
            f"{gvr.resource}.{gvr.group}"
            for gvr in kinds
            if not self.rights.may(user, cluster, "list", gvr)
        ]

    def stages(self, user: User, placement: PlacementKey) -> list[Stage]:
        """Return what became of the objects of a placement, as far as *user* may see."""
        may, cluster = self.rights.may, placement[0]
        return self._feed.placements.stages(
            placement,
            namespaced=may(user, cluster, "list", STATUS_SUMMARIES),
            cluster_scoped=may(user, cluster, "list", CLUSTER_STATUS_SUMMARIES),
        )

    def cluster(self, user: User, path: object, gvr: GroupVersionResource, verb: str) -> str:
        """Return the workspace at *path*, in which *user* may *verb* a kind.

        Forbidden names the verb and the kind, whether or not there is such a workspace.
        """
        if not isinstance(path, str) or not path:
            raise NotFound("ws: want the path of a workspace")
        cluster = self.rights.resolve(path)
        if cluster is None or not self.rights.may(user, cluster, verb, gvr):
            raise Forbidden(
                f"you may not {verb} {gvr.resource}.{gvr.group} in {shortened(path, _SHOWN)}"
            )
        return cluster

    def path(self, user: User, cluster: ClusterName, gvr: GroupVersionResource) -> str:
        """Return the path of a workspace to who may list *gvr* there; a question mark to others."""
        return (
            self.rights.path_of(cluster) if self.rights.may(user, cluster, "list", gvr) else UNNAMED
        )

    def _resolved(self, path: str) -> ClusterName:
        return self.rights.resolve(path) or ""
