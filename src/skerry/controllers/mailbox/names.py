"""Names of mailboxes and of what is in them."""

from __future__ import annotations

import re
from typing import NamedTuple

from skerry.api.kinds import GroupVersionResource

NAME = "mailbox-controller"
SYNC_TARGETS = GroupVersionResource("workload.kcp.io", "v1alpha1", "synctargets")
WORKSPACES = GroupVersionResource("tenancy.kcp.io", "v1alpha1", "workspaces")
BINDINGS = GroupVersionResource("apis.kcp.io", "v1alpha1", "apibindings")

SYNC_TARGET_ANNOTATION = "edge.kcp.io/sync-target-name"
BINDING = "bind-edge"
EXPORT = "edge.kcp.io"

_SEPARATOR = "-mb-"
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch


class Mailbox(NamedTuple):
    """The mailbox of a SyncTarget: its logical cluster and its UID."""

    cluster: str
    uid: str

    @property
    def workspace(self) -> str:
        return f"{self.cluster}{_SEPARATOR}{self.uid}"

    def __str__(self) -> str:
        return self.workspace


def mailbox_named(workspace: str) -> Mailbox | None:
    """Return the mailbox a workspace's name stands for; None for any other workspace."""
    parts = workspace.split(_SEPARATOR)
    if len(parts) != 2 or not parts[0] or _UID(parts[1]) is None:
        return None
    return Mailbox(parts[0], parts[1])
