"""Whose eyes: what somebody may see of what the console knows, asked again when rights change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyroaring import BitMap

from skerry.api.edge import EDGE_PLACEMENTS
from skerry.api.errors import Forbidden, NotFound
from skerry.api.kcp.resources import SYNC_TARGETS
from skerry.api.kinds import GroupVersionResource
from skerry.api.refs import ClusterName
from skerry.kit.text import shortened
from skerry.logic.fleet.console.filters import Sight
from skerry.server.user import User
from skerry.web.feed import Feed

# (who, where, verb, kind): what the hub's authorizer says.
May = Callable[[User, ClusterName, str, GroupVersionResource], bool]
_MAX_KNOWN = 256
_SHOWN = 128
UNNAMED = "?"


@dataclass(frozen=True, slots=True)
class Rights:
    """What the console is handed of the hub's security and workspaces."""

    may: May
    # Differs whenever somebody's rights may.
    version: Callable[[], object]
    path_of: Callable[[ClusterName], str]
    resolve: Callable[[str], ClusterName | None]


class Eyes:
    """What each viewer may see."""

    def __init__(self, feed: Feed, rights: Rights) -> None:
        self._feed = feed
        self.rights = rights
        self._known: dict[tuple[object, ...], tuple[object, Sight]] = {}

    def version(self) -> object:
        """Return what differs whenever somebody may see more or less."""
        return self.rights.version()

    def sight(self, user: User) -> Sight:
        """Return what *user* may see now."""
        edges = self._feed.edges
        version = (self.rights.version(), edges.membership)
        who = (user.name, user.groups, user.home)
        known = self._known.get(who)
        if known is not None and known[0] == version:
            return known[1]
        seen = BitMap()
        for cluster, members in edges.by_cluster.items():
            if self.rights.may(user, cluster, "list", SYNC_TARGETS):
                seen |= members
        sight = Sight(seen, lambda cluster: self.sees_placements(user, cluster), self._resolved)
        if len(self._known) >= _MAX_KNOWN:
            self._known.clear()
        self._known[who] = (version, sight)
        return sight

    def sees_placements(self, user: User, cluster: ClusterName) -> bool:
        """Tell whether *user* may see the placements of a workspace."""
        return self.rights.may(user, cluster, "list", EDGE_PLACEMENTS)

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
