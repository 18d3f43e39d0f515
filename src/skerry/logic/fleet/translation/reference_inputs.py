"""What the reference reads: everything translation depends on, as plain objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from skerry.api.edge import Mailbox, edge_placement_ref, placement_of_slice
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.api.refs import CLUSTER_ANNOTATION, ObjectRef
from skerry.logic.fleet.translation.categories import BINDINGS, DEFINITIONS
from skerry.logic.fleet.translation.grants import Consent
from skerry.logic.fleet.translation.held import revisions_of
from skerry.logic.fleet.translation.merging import Copy
from skerry.logic.fleet.translation.route import Destinations, destinations_of
from skerry.logic.fleet.translation.selected import What, what_of
from skerry.logic.fleet.translation.types import ServedType, WorkspaceTypes, workspace_types
from skerry.logic.machinery.selectors import SelectorError

Objects = Mapping[GroupResource, Iterable[Object]]


@dataclass(frozen=True)
class Sources:
    """Everything translation depends on.

    ``objects`` holds what is in each workspace, by type: workload, Namespaces, APIBindings and
    CustomResourceDefinitions. ``withhold_denatured`` is for hubs on which copies are not inert.
    """

    common: tuple[ServedType, ...]
    objects: Mapping[str, Objects]
    placements: Iterable[Object] = ()
    slices: Iterable[Object] = ()
    customizers: Iterable[Object] = ()
    locations: Iterable[Object] = ()
    schemas: Mapping[tuple[str, str], Object] = field(default_factory=dict)
    strict: bool = True
    withhold_denatured: bool = False
    # Grants of inventory workspaces, and what mailboxes have that nobody confirmed may go.
    consent: Consent | None = None
    copies: Mapping[Mailbox, Mapping[ObjectRef, Copy]] = field(default_factory=dict)
    # Returns the path of a workspace.
    path: Callable[[str], str] = str
    # PlacementRevisions, and what RevisionContents hold, by workspace and name.
    revisions: Iterable[Object] = ()
    contents: Mapping[tuple[str, str], Object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Placed:
    """A placement with what it means (None: malformed) and its destinations."""

    name: ObjectRef
    what: What | None
    where: Destinations
    revisions: Mapping[Mailbox, int] = field(default_factory=dict)


def placed_in(sources: Sources) -> Iterator[Placed]:
    """Yield the placements with what they mean and where they go."""
    pieces: dict[ObjectRef, list[Object]] = {}
    for piece in sources.slices:
        name = edge_placement_ref(key_of(piece)[0], placement_of_slice(piece))
        pieces.setdefault(name, []).append(piece)
    for placement in sources.placements:
        cluster, _, short = key_of(placement)
        name = edge_placement_ref(cluster, short)
        try:
            what: What | None = what_of(placement)
        except SelectorError:
            what = None
        own = pieces.get(name, ())
        yield Placed(name, what, destinations_of(own), revisions_of(own))


def types_in(sources: Sources, cluster: str) -> WorkspaceTypes:
    """Return what a workspace serves."""
    found = sources.objects.get(cluster, {})
    return workspace_types(
        sources.common, found.get(BINDINGS, ()), sources.schemas, found.get(DEFINITIONS, ())
    )


def definition_of(served: ServedType) -> tuple[ObjectRef, ...]:
    """Return the object that brings a type, if one does."""
    return () if served.definition is None else (served.definition,)


def labels_of(obj: Object) -> Mapping[str, str]:
    """Return the labels of an object."""
    return obj["metadata"].get("labels") or {}


def key_of(obj: Object) -> tuple[str, str, str]:
    """Return the cluster, namespace and name of an object."""
    metadata = obj["metadata"]
    cluster = (metadata.get("annotations") or {}).get(CLUSTER_ANNOTATION, "")
    return cluster, metadata.get("namespace", ""), metadata["name"]
