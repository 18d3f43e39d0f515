"""What an EdgePlacement selects, and where its slices send it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skerry.api.edge import Mailbox, location_ref
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.logic.machinery.selectors import Selector

_ANY = ["*"]


@dataclass(frozen=True, slots=True)
class NamedObjects:
    """One entry of ``nonNamespacedObjects``."""

    group: str
    resources: frozenset[str] | None
    names: frozenset[str] | None
    selectors: tuple[Selector, ...]

    def selects(self, item: ObjectRef, labels: Mapping[str, str]) -> bool:
        if item.group != self.group or not _listed(self.resources, item.resource):
            return False
        return _listed(self.names, item.name) or any(s.matches(labels) for s in self.selectors)


@dataclass(frozen=True, slots=True)
class UpsyncSet:
    """One entry of ``upsync``, as it was written."""

    group: str
    resources: tuple[str, ...]
    namespaces: tuple[str, ...]
    names: tuple[str, ...]

    def covers(self, group: str, resource: str) -> bool:
        """Tell whether objects of a type may come up."""
        return group == self.group and (self.resources == ("*",) or resource in self.resources)

    def written(self) -> Object:
        """Return the entry as a SyncerConfig has it."""
        found: Object = {"apiGroup": self.group, "resources": list(self.resources)}
        if self.namespaces:
            found["namespaces"] = list(self.namespaces)
        if self.names:
            found["names"] = list(self.names)
        return found


@dataclass(frozen=True, slots=True)
class What:
    """A placement's choice of objects of its workspace."""

    namespaces: Selector
    named: tuple[NamedObjects, ...] = ()
    upsync: tuple[UpsyncSet, ...] = ()

    def names(self, item: ObjectRef, labels: Mapping[str, str]) -> bool:
        """Tell whether ``nonNamespacedObjects`` means the cluster-scoped *item*."""
        return any(each.selects(item, labels) for each in self.named)


def what_of(placement: Object) -> What:
    """Return a placement's choice; ``SelectorError`` when one of its selectors is malformed.

    An absent ``namespaceSelector`` means every namespace, as an empty one does.
    """
    spec = placement.get("spec") or {}
    return What(
        Selector.from_label_selector(spec.get("namespaceSelector") or {}, "spec.namespaceSelector"),
        tuple(
            _named(entry, f"spec.nonNamespacedObjects[{index}]")
            for index, entry in enumerate(spec.get("nonNamespacedObjects") or ())
        ),
        tuple(map(_upsync, spec.get("upsync") or ())),
    )


def _named(entry: Mapping[str, Any], path: str) -> NamedObjects:
    return NamedObjects(
        entry.get("apiGroup", ""),
        _names(entry.get("resources")),
        _names(entry.get("resourceNames")),
        tuple(
            Selector.from_label_selector(selector, f"{path}.labelSelectors[{index}]")
            for index, selector in enumerate(entry.get("labelSelectors") or ())
        ),
    )


def _upsync(entry: Mapping[str, Any]) -> UpsyncSet:
    return UpsyncSet(
        entry.get("apiGroup", ""),
        tuple(entry.get("resources") or ()),
        tuple(entry.get("namespaces") or ()),
        tuple(entry.get("names") or ()),
    )


def _names(names: Sequence[str] | None) -> frozenset[str] | None:
    """Return the names meant; None means all. ``*`` means all only when it stands alone."""
    return None if names == _ANY else frozenset(names or ())


def _listed(names: frozenset[str] | None, name: str) -> bool:
    return names is None or name in names


# Where.

Where = Mapping[Mailbox, tuple[ObjectRef, ...]]


def where_of(slices: Iterable[Object]) -> dict[Mailbox, tuple[ObjectRef, ...]]:
    """Return the mailboxes that slices name, each with the Locations it is reached by, sorted."""
    found: dict[Mailbox, set[ObjectRef]] = {}
    for piece in slices:
        for destination in piece.get("destinations") or ():
            cluster = destination["cluster"]
            mailbox = Mailbox(cluster, destination["syncTargetUID"])
            location = location_ref(cluster, destination["locationName"])
            found.setdefault(mailbox, set()).add(location)
    return {mailbox: tuple(sorted(locations)) for mailbox, locations in found.items()}


@dataclass(frozen=True, slots=True)
class Placed:
    """A placement with its choice and its destinations.

    ``what`` is None when the choice is malformed: then nothing is known of what it means.
    """

    name: ObjectRef
    what: What | None
    where: Where
