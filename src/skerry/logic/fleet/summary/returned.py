"""Which status of a copy may become that of an object in a workspace.

What an edge reports is its own word, and a mailbox holds copies of several workspaces. So a status
goes back only to the workspace whose object the copy is, and only as much of it as a status has
room for: nobody fills a workspace through its objects' status.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from skerry.api.objects import Object
from skerry.api.refs import ClusterName
from skerry.logic.fleet.translation.ownership import owned_of

# Ten times what the longest lists of conditions take.
MAX_RETURNED_BYTES: Final = 128 * 1024


def returnable(copy: Mapping[str, Any] | None, cluster: ClusterName) -> Object | None:
    """Return the status of *copy* that may go back to its object in *cluster*; None for none."""
    if copy is None:
        return None
    owned = owned_of(copy)
    if owned is not None and owned.cluster != cluster:
        return None
    status = copy.get("status")
    if not isinstance(status, dict) or not status:
        return None
    return status if len(orjson.dumps(status)) <= MAX_RETURNED_BYTES else None
