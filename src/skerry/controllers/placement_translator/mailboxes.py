"""Mailbox workspaces: their names and the logical clusters behind them."""

from __future__ import annotations

from skerry.api.edge import Mailbox, mailbox_named
from skerry.api.objects import Object


class Mailboxes:
    """Which mailbox is which cluster, both ways round."""

    def __init__(self) -> None:
        self._clusters: dict[Mailbox, str] = {}
        self._names: dict[str, Mailbox] = {}

    def cluster(self, mailbox: Mailbox) -> str | None:
        """Return the cluster of a mailbox; None while it has none or is going away."""
        return self._clusters.get(mailbox)

    def name(self, cluster: str) -> Mailbox | None:
        """Return the mailbox a cluster is."""
        return self._names.get(cluster)

    def __iter__(self) -> object:
        return iter(list(self._clusters))

    def put(self, mailbox: Mailbox, cluster: str) -> None:
        self.remove(mailbox)
        self._clusters[mailbox] = cluster
        self._names[cluster] = mailbox

    def remove(self, mailbox: Mailbox) -> None:
        cluster = self._clusters.pop(mailbox, None)
        if cluster is not None:
            del self._names[cluster]


def mailbox_cluster(workspace: Object | None) -> str:
    """Return the cluster of a Workspace that is a mailbox and can be used; else nothing."""
    if workspace is None or "deletionTimestamp" in workspace["metadata"]:
        return ""
    if mailbox_named(workspace["metadata"]["name"]) is None:
        return ""
    return str((workspace.get("spec") or {}).get("cluster", ""))
