"""What the writer of an EdgePlacement should hear at once.

A selector that nothing can satisfy is well formed, and may be meant as a way to place nothing for
now. So it is accepted, with a warning; the condition ``SelectorsSatisfiable`` says the same to
everybody who looks later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from skerry.api.kinds import GroupResource
from skerry.logic.placement.records import placement_of
from skerry.logic.resource import Object, Resource

_PLACEMENTS = GroupResource("edge.kcp.io", "edgeplacements")


def warning(resource: Resource) -> Resource:
    """Return *resource* as served; if it is that of EdgePlacements, with their warnings too."""
    if resource.info.group_resource != _PLACEMENTS:
        return resource
    return replace(resource, warnings=_after(resource.warnings))


def placement_warnings(placement: Object) -> Sequence[str]:
    """Return what is wrong with a valid EdgePlacement, in sentences."""
    read = placement_of(placement)
    return (*read.errors, *read.unsatisfiable)


def _after(first: Callable[[Object], Sequence[str]]) -> Callable[[Object], Sequence[str]]:
    return lambda obj: (*first(obj), *placement_warnings(obj))
