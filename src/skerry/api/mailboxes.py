"""Names of mailbox workspaces and of what is in them from the start."""

from __future__ import annotations

import re
from typing import NamedTuple

# In every mailbox: the binding to the export of the provider workspace, which has this name.
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
