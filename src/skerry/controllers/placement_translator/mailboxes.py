"""Mailbox workspaces: their names and the logical clusters behind them."""

from __future__ import annotations

from skerry.api.objects import Object

_MIDDLE = "-mb-"


class Mailboxes:
    """Which mailbox is which cluster, both ways round."""

    def __init__(self) -> None:
        self._clusters: dict[str, str] = {}
        self._names: dict[str, str] = {}

    def cluster(self, name: str) -> str | None:
        """Return the cluster of a mailbox; None while it has none or is going away."""
        return self._clusters.get(name)

    def name(self, cluster: str) -> str | None:
        """Return the mailbox a cluster is."""
        return self._names.get(cluster)

    def __iter__(self) -> object:
        return iter(list(self._clusters))

    def put(self, name: str, cluster: str) -> None:
        self.remove(name)
        self._clusters[name] = cluster
        self._names[cluster] = name

    def remove(self, name: str) -> None:
        cluster = self._clusters.pop(name, None)
        if cluster is not None:
            del self._names[cluster]


def mailbox_cluster(workspace: Object | None) -> str:
    """Return the cluster of a Workspace that is a mailbox and can be used; else nothing."""
    if workspace is None or "deletionTimestamp" in workspace["metadata"]:
        return ""
    if len(workspace["metadata"]["name"].split(_MIDDLE)) != 2:
        return ""
    return str((workspace.get("spec") or {}).get("cluster", ""))
