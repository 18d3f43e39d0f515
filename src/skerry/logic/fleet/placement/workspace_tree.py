"""Paths of workspaces, from the Workspace objects in their parents.

A Workspace object lies in the cluster of its parent and names the cluster of its own content. So
the path of a cluster is that of its parent and the object's name. Homes of users have no such
object; their cluster follows from the user's name alone.

A cluster that two Workspace objects claim has no path: neither claim can be verified here, and a
path gives rights.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from skerry.api.objects import Raw
from skerry.api.refs import CLUSTER_ANNOTATION, ObjectRef
from skerry.logic.machinery.workspaces.names import ROOT, home_cluster_name

NO_LABELS: Mapping[str, str] = {}
_HOME = "user:"


class Position(NamedTuple):
    """Where a workspace is: its path, its parent's path, and the labels of its Workspace object.

    Empty paths are not known.
    """

    path: str = ""
    parent: str = ""
    labels: Mapping[str, str] = NO_LABELS


NOWHERE = Position()


def lean_workspace(obj: Raw) -> dict[str, Any]:
    """Return what is worth caching of a Workspace: what it stands for, and its labels."""
    kept = ("name", "uid", "resourceVersion", "labels")
    metadata = {name: obj["metadata"][name] for name in kept if name in obj["metadata"]}
    cluster = (obj["metadata"].get("annotations") or {}).get(CLUSTER_ANNOTATION, "")
    metadata["annotations"] = {CLUSTER_ANNOTATION: cluster}
    return {"metadata": metadata, "spec": {"cluster": (obj.get("spec") or {}).get("cluster", "")}}


class WorkspaceTree:
    """Workspaces by cluster; kept up as their objects come, change and go."""

    def __init__(self) -> None:
        # Workspace objects by the cluster they name, and the other way round.
        self._claims: dict[str, dict[ObjectRef, Mapping[str, str]]] = {}
        self._named: dict[ObjectRef, str] = {}
        # Workspace objects by the cluster they lie in.
        self._inside: dict[str, set[ObjectRef]] = {}
        self._homes: dict[str, str] = {}
        self._cache: dict[str, Position] = {}

    def position(self, cluster: str) -> Position:
        """Return where a cluster is, as far as that is known."""
        cached = self._cache.get(cluster)
        if cached is None:
            cached = self._cache[cluster] = self._worked_out(cluster, set())
        return cached

    def path(self, cluster: str) -> str:
        """Return the path of a cluster; empty when it is not known."""
        return self.position(cluster).path

    def put(self, ref: ObjectRef, cluster: str, labels: Mapping[str, str]) -> set[str]:
        """Have the Workspace object *ref*; returns the clusters whose position may differ."""
        changed = set()
        before = self._named.get(ref)
        if before is not None and before != cluster:
            changed |= self.remove(ref)
        claims = self._claims.setdefault(cluster, {})
        if claims.get(ref) == labels:
            return changed
        relabelled = ref in claims
        claims[ref] = labels
        self._named[ref] = cluster
        self._inside.setdefault(ref.cluster, set()).add(ref)
        # Labels matter to the workspace itself, a path to everything below.
        return changed | self._forget(cluster, deep=not relabelled)

    def remove(self, ref: ObjectRef) -> set[str]:
        """Forget the Workspace object called *ref*; returns the clusters whose position differs."""
        cluster = self._named.pop(ref, None)
        if cluster is None:
            return set()
        claims = self._claims[cluster]
        del claims[ref]
        if not claims:
            del self._claims[cluster]
        inside = self._inside[ref.cluster]
        inside.discard(ref)
        if not inside:
            del self._inside[ref.cluster]
        return self._forget(cluster, deep=True)

    def relabel(self, cluster: str, labels: Mapping[str, str]) -> set[str]:
        """Give the one Workspace object of a cluster these labels; for what-if questions."""
        claims = self._claims.get(cluster, {})
        return self.put(next(iter(claims)), cluster, labels) if len(claims) == 1 else set()

    def know_home(self, path: str) -> set[str]:
        """Learn which cluster the home is that *path* begins with, if it begins with one."""
        if not path.startswith(_HOME):
            return set()
        user = path.removeprefix(_HOME).partition(":")[0]
        cluster = home_cluster_name(user)
        if cluster in self._homes:
            return set()
        self._homes[cluster] = f"{_HOME}{user}"
        return self._forget(cluster, deep=True)

    def _worked_out(self, cluster: str, below: set[str]) -> Position:
        if cluster == ROOT:
            return Position(ROOT)
        home = self._homes.get(cluster)
        if home is not None:
            return Position(home)
        claims = self._claims.get(cluster, {})
        if len(claims) != 1 or cluster in below:
            return NOWHERE
        [(ref, labels)] = claims.items()
        parent = self._worked_out(ref.cluster, {*below, cluster}).path
        return Position(f"{parent}:{ref.name}", parent, labels) if parent else NOWHERE

    def _forget(self, cluster: str, *, deep: bool) -> set[str]:
        """Forget what was worked out for a cluster, and for what is below it; return which."""
        found, waiting = {cluster}, [cluster]
        while deep and waiting:
            for ref in self._inside.get(waiting.pop(), ()):
                child = self._named[ref]
                if child not in found:
                    found.add(child)
                    waiting.append(child)
        for each in found:
            self._cache.pop(each, None)
        return found
