"""Whether a workspace that denies access is there at all, as far as one may know.

A hub answers for a workspace that does not exist as for one of somebody else's: access denied. Who
may read the workspaces of a parent may know which it has; asking there, with one's own rights,
turns a typing mistake into "not found" and tells nobody else anything.
"""

from __future__ import annotations

from skerry.api.errors import ApiError, NotFound
from skerry.api.kcp.resources import WORKSPACES
from skerry.runtime.client import Client


async def missing_workspace(client: Client, path: str) -> str:
    """Return the first workspace on the way to *path* that is known not to exist; else nothing."""
    names = path.split(":")
    for number in range(1, len(names)):
        parent = ":".join(names[:number])
        try:
            await client.for_cluster(parent).get(WORKSPACES, names[number])
        except NotFound:
            return f"{parent}:{names[number]}"
        except ApiError:
            continue
    return ""
