"""Names of the things translation is about."""

from __future__ import annotations

from typing import NamedTuple

from skerry.api.kinds import GroupResource
from skerry.logic.fleet.translation.categories import NAMESPACES


class Item(NamedTuple):
    """An object within a workspace, whatever its version; namespace is empty when it has none."""

    group: str
    resource: str
    namespace: str
    name: str

    @property
    def type(self) -> GroupResource:
        return GroupResource(self.group, self.resource)

    def __str__(self) -> str:
        local = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.type} {local}"


class PlacementName(NamedTuple):
    """An EdgePlacement: its logical cluster and its name."""

    cluster: str
    name: str

    def __str__(self) -> str:
        return f"{self.cluster}|{self.name}"


class LocationName(NamedTuple):
    """A Location: its logical cluster and its name."""

    cluster: str
    name: str

    def __str__(self) -> str:
        return f"{self.cluster}|{self.name}"


def namespace_item(name: str) -> Item:
    """Return the item of a Namespace."""
    return Item(*NAMESPACES, "", name)


# Every workspace has this one already; it is never made, changed or removed.
EVERYWHERE = namespace_item("default")
