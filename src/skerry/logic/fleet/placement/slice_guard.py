"""Destinations of placements are the edge scheduler's to write.

A SinglePlacementSlice lies in the workspace of the placement, whose administrator may write there.
But a destination says which SyncTarget a Location stands for, and grants are given for Locations:
whoever pairs them as he likes reaches edges that no selector and no grant gave him. So others may
take destinations away, which the edge scheduler mends, and add none; nor do they say which
revision a destination gets, which is for its Rollout to say.
"""

from __future__ import annotations

from skerry.api.objects import Object

REFUSAL = "destinations are written by the edge scheduler"
_FIELDS = ("cluster", "locationName", "syncTargetName", "syncTargetUID", "slot", "revision")


def destination_entries(piece: Object) -> frozenset[tuple[str, ...]]:
    """Return the destinations of a slice, each as what it says of Location and SyncTarget."""
    return frozenset(
        tuple(str(each.get(name) or "") for name in _FIELDS)
        for each in piece.get("destinations") or ()
    )
