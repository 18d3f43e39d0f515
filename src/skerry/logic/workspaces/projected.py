"""Objects that are only passing through.

A copy in a mailbox carries a label that says so, and what came up from an edge an annotation. Both
are inert on the hub whatever their kind: RBAC among them grants nothing here, a quota limits
nothing, a ServiceAccount gets no token. They mean what they say at the edge.
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
    notes = (obj.get("metadata") or {}).get("annotations") or {}
    return is_projected(obj) or bool(notes.get(UPSYNCED) == "true")
