"""The table ``selected``: what an EdgePlacement selects of its workspace, and why.

A placement chooses Namespaces by their labels, and with them everything in them, and names
cluster-scoped objects one by one. Stored is what it chooses and names; what is in a chosen
Namespace is a product with ``sources`` and is enumerated when asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

from skerry.api.edge import AGGREGATE
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.api.refs import ClusterName, ObjectRef, namespace_ref
from skerry.logic.fleet.placement.reported_state import reported_state
from skerry.logic.fleet.tables.flow import Dataflow
from skerry.logic.fleet.tables.relation import Relation
from skerry.logic.fleet.tables.table import Table
from skerry.logic.fleet.translation.categories import NAMESPACES
from skerry.logic.machinery.selectors import Selector, SelectorError

_ANY = ["*"]


@dataclass(frozen=True, slots=True)
class NamedObjects:
    """One entry of ``nonNamespacedObjects``."""

    group: str
    resources: frozenset[str] | None
    names: frozenset[str] | None
    selectors: tuple[Selector, ...]

    def is_about(self, item: ObjectRef) -> bool:
        """Tell whether the entry means objects of that type, whatever their names and labels."""
        return item.group == self.group and _listed(self.resources, item.resource)

    def selects(self, item: ObjectRef, labels: Mapping[str, str]) -> bool:
        if not self.is_about(item):
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
    # Whether the copies have to tell which generation of their source they are of.
    aggregates: bool = False

    def upsyncs(self, kind: GroupResource) -> bool:
        """Tell whether objects of a type may come up, for which the edge must have it."""
        return any(each.covers(*kind) for each in self.upsync)

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
        reported_state(spec) == AGGREGATE,
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


# -- the table -----------------------------------------------------------------------------------

Labels = Mapping[str, str]
# A candidate: its workspace, and its identity there.
Candidate = tuple[ClusterName, ObjectRef]


class Malformed(NamedTuple):
    """The row of a placement that cannot be understood: what it selects is unknown, not nothing."""

    message: str


# Why a placement selects something, as bits; enumerated flags would cost more than the join.
Why: TypeAlias = int
# Its ``namespaceSelector`` matches: the Namespace goes with everything in it.
CHOSEN: Final = 1
# ``nonNamespacedObjects`` means it.
NAMED: Final = 2


def placement_row(placement: Object) -> What | Malformed:
    """Return the row of an EdgePlacement in the input table."""
    try:
        return what_of(placement)
    except SelectorError as error:
        return Malformed(str(error))


def selected(what: What | Malformed, item: ObjectRef, labels: Labels) -> Why | None:
    """Return why a placement selects a Namespace or cluster-scoped object of its workspace.

    What is *in* a chosen Namespace is selected with it. That product is never stored.
    """
    if isinstance(what, Malformed):
        return None
    why = NAMED if what.names(item, labels) else 0
    if item.group_resource == NAMESPACES and what.namespaces.matches(labels):
        why |= CHOSEN
    return why or None


def deciding(item: ObjectRef) -> tuple[ObjectRef, Why]:
    """Return the candidate by which *item* is sent or not, and for which reason of its row.

    What is in a Namespace goes with it, and a Namespace goes when it is chosen: to name one in
    ``nonNamespacedObjects`` sends nothing. Everything else has to be named.
    """
    if item.namespace:
        return namespace_ref(item.namespace), CHOSEN
    return item, CHOSEN if item.group_resource == NAMESPACES else NAMED


def sends(what: What | Malformed, item: ObjectRef, labels: Labels) -> bool:
    """Tell whether a placement sends *item* for itself; *labels* are its deciding candidate's."""
    candidate, why = deciding(item)
    return bool((selected(what, candidate, labels) or 0) & why)


def derive_selected(
    flow: Dataflow,
    placements: Table[ObjectRef, What | Malformed],
    candidates: Relation[ClusterName, ObjectRef, Labels],
) -> Relation[ObjectRef, Candidate, Why]:
    """Return the table ``selected``: placement × candidate of the same workspace → why."""
    return flow.join(
        "selected",
        placements,
        candidates,
        lambda placement, _: placement.cluster,
        lambda key, _: key[0],
        lambda _, what, key, labels: selected(what, key[1], labels),
    )


def reference(
    placements: Mapping[ObjectRef, What | Malformed], candidates: Mapping[Candidate, Labels]
) -> dict[tuple[ObjectRef, Candidate], Why]:
    """Return the same from nothing but the inputs."""
    found = {}
    for placement, what in placements.items():
        for key, labels in candidates.items():
            why = selected(what, key[1], labels) if key[0] == placement.cluster else None
            if why is not None:
                found[placement, key] = why
    return found
