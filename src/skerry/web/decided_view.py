"""Views of what was decided: Rollouts, StatusQueries, and that something was decided anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from skerry.api.edge import EDGE_PLACEMENTS
from skerry.api.errors import NotFound
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.logic.fleet.console.decided import ObjectRows
from skerry.server.user import User
from skerry.web.desk import members_patch
from skerry.web.eyes import Eyes
from skerry.web.feed import Feed

# As many as anybody reads; whoever wants more names a workspace.
MAX_LISTED = 500


class ObjectsView:
    """All objects of a kind that somebody may see, or those of one workspace."""

    def __init__(
        self,
        rows: ObjectRows,
        gvr: GroupVersionResource,
        eyes: Eyes,
        user: User,
        view: Mapping[str, Any],
    ) -> None:
        self._rows, self._gvr, self._eyes, self._user = rows, gvr, eyes, user
        self._path = view.get("ws") or ""

    def version(self) -> object:
        return self._rows.version, self._eyes.version()

    def content(self) -> Mapping[str, Any]:
        only = self._eyes.cluster(self._user, self._path, self._gvr, "list") if self._path else ""
        clusters = {only} if only else {cluster for cluster, _ in self._rows.rows}
        allowed = self._eyes.allowed(self._user, clusters, self._gvr)
        seen = {cluster: self._eyes.rights.path_of(cluster) for cluster in allowed}
        found = [
            {"ws": seen[cluster], "name": name, **row}
            for (cluster, name), row in self._rows.rows.items()
            if cluster in seen
        ]
        found.sort(key=lambda each: (each["ws"], each["name"]))
        return {"total": len(found), "objects": found[:MAX_LISTED]}

    def patch(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> Mapping[str, Any]:
        return members_patch(before, after)

    def close(self) -> None:
        """Nothing is kept."""


class ObjectView:
    """One object of a kind, as *shown* has it."""

    def __init__(
        self,
        feed: Feed,
        gvr: GroupVersionResource,
        shown: Callable[[Object], Mapping[str, Any]],
        eyes: Eyes,
        user: User,
        view: Mapping[str, Any],
    ) -> None:
        self._feed, self._gvr, self._shown = feed, gvr, shown
        self._eyes, self._user = eyes, user
        self._path, self._name = view.get("ws"), str(view.get("name", ""))

    def version(self) -> object:
        cluster = self._eyes.rights.resolve(str(self._path)) or ""
        changed = self._feed.objects[self._gvr].changed.get((cluster, self._name))
        return changed, self._eyes.version()

    def content(self) -> Mapping[str, Any]:
        cluster = self._eyes.cluster(self._user, self._path, self._gvr, "list")
        found = self._feed.object(self._gvr, (cluster, self._name))
        if found is None:
            raise NotFound(f"there is no {self._gvr.resource} {self._name!r} in {self._path}")
        return self._shown(found)

    def patch(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> Mapping[str, Any]:
        return members_patch(before, after)

    def close(self) -> None:
        """Nothing is kept."""


class DecidedView:
    """When a placement's destinations last changed: decisions are read when there are new ones."""

    def __init__(self, feed: Feed, eyes: Eyes, user: User, view: Mapping[str, Any]) -> None:
        self._feed, self._eyes, self._user = feed, eyes, user
        self._path, self._name = view.get("ws"), str(view.get("name", ""))

    def version(self) -> object:
        return self._feed.edges.version, self._eyes.version()

    def content(self) -> Mapping[str, Any]:
        cluster = self._eyes.cluster(self._user, self._path, EDGE_PLACEMENTS, "list")
        return {"decided": self._feed.edges.decided.get((cluster, self._name), 0)}

    def patch(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> Mapping[str, Any]:
        return members_patch(before, after)

    def close(self) -> None:
        """Nothing is kept."""
