"""Objects that are only passing through.

A copy in a mailbox carries a label that says so, and what came up from an edge an annotation. Both
are inert on the hub whatever their kind: RBAC among them grants nothing here, a quota limits
nothing, a ServiceAccount gets no token, a Secret is no credential, an APIBinding agrees to no
claim. They mean what they say at the edge.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PROJECTED = "edge.kcp.io/projected"
UPSYNCED = "edge.kcp.io/upsynced"
# Selects what is not passing through.
NOT_PROJECTED = f"{PROJECTED}!=yes"


def is_projected(obj: Mapping[str, Any]) -> bool:
    """Tell whether *obj* is a copy on its way to an edge."""
    labels = (obj.get("metadata") or {}).get("labels") or {}
    return bool(labels.get(PROJECTED) == "yes")


def is_inert(obj: Mapping[str, Any]) -> bool:
    """Tell whether *obj* is a copy on its way to an edge, or a report of one."""
    metadata = obj.get("metadata") or {}
    return is_passing_through(metadata.get("labels"), metadata.get("annotations"))


def is_passing_through(
    labels: Mapping[str, str] | None, annotations: Mapping[str, str] | None
) -> bool:
    """Tell whether an object with these is inert."""
    return (labels or {}).get(PROJECTED) == "yes" or (annotations or {}).get(UPSYNCED) == "true"
