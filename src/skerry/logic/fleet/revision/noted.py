"""Which revision a mailbox is at, as its SyncerConfig tells in an annotation.

``cluster/web=42,cluster/db=7``: a mailbox has placements of many workspaces, and names alone would
not tell them apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skerry.api.edge import REVISIONS, edge_placement_ref
from skerry.api.refs import ObjectRef


def noted(config: Mapping[str, Any]) -> str:
    """Return the annotation of a SyncerConfig; empty when it has none."""
    return str((config["metadata"].get("annotations") or {}).get(REVISIONS, ""))


def noted_text(revisions: Mapping[ObjectRef, int]) -> str:
    """Return the annotation for these placements."""
    return ",".join(f"{each.cluster}/{each.name}={n}" for each, n in sorted(revisions.items()))


def noted_revisions(metadata: Mapping[str, Any]) -> dict[ObjectRef, int]:
    """Return what a SyncerConfig with that metadata tells; what is malformed tells nothing."""
    text = noted({"metadata": metadata})
    found = {}
    for part in text.split(",") if text else ():
        name, _, number = part.rpartition("=")
        cluster, slash, placement = name.partition("/")
        if slash and number.isdecimal() and number.isascii() and len(number) <= 18:
            found[edge_placement_ref(cluster, placement)] = int(number)
    return found
