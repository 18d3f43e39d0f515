"""Which objects of a workspace a summary is due for: those a placement sends on to the edge."""

from __future__ import annotations

from collections.abc import Mapping

from skerry.api.edge_categories import category_of
from skerry.api.kinds import GroupResource
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.summary.tables import Labels, Selects
from skerry.logic.fleet.translation.categories import (
    DEFAULT_NAMESPACE,
    DEFINITIONS,
    NAMESPACES,
)
from skerry.logic.fleet.translation.selected import What

# The mailbox has a life of its own for these: their status there is not the edge's.
_NATURED = (NAMESPACES, DEFINITIONS)
# The hub decides by what their status says of the workspace they are in.
_COUNTED_HERE = (GroupResource("", "resourcequotas"),)


def selection(what: What | None) -> Selects:
    """Return what tells whether an object is placed; None, a malformed choice, places nothing."""

    def selects(item: ObjectRef, labels: Labels, within: Labels) -> bool:
        if what is None or not category_of(item.group_resource).to_edge:
            return False
        if item == DEFAULT_NAMESPACE:
            return False  # every cluster has one of its own; what is in it goes nevertheless
        if item.namespace:
            return what.namespaces.matches(within)
        if item.group_resource == NAMESPACES:
            # Made at the edge for what is in it, whether or not it is named itself.
            return what.namespaces.matches(labels)
        return what.names(item, labels)

    return selects


def reports_status(resource: GroupResource, subresources: Mapping[str, object] | list[str]) -> bool:
    """Tell whether edges report a status of a kind with these *subresources*."""
    return "status" in subresources and resource not in _NATURED


def comes_back(resource: GroupResource) -> bool:
    """Tell whether the status that an edge reports may become that of the source.

    What a quota uses here is not what it uses at an edge, and no edge says when it is full.
    """
    return resource not in _COUNTED_HERE
