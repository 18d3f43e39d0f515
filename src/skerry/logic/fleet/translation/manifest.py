"""What a placement sends now, as the manifest of a revision and the contents it is made of.

A cut is one moment of the feeds: everything is read from the records that are in memory. It is
possible only when all of the workspace has been read, for what is unknown is not absent.

One revision serves all destinations, so objects are taken before customization, and grants are not
asked. What makes the next cut another revision, and what does not:

    an object comes, goes or changes         yes, by what is listed and by its digest
    a Customizer that one of them names      yes: it is among the inputs, with its own digest
    another selector, the same objects       yes: what is selected by is an input as well
    a Location, a slice, a grant             no: where it goes is no part of what goes
    a new status or resourceVersion          no: neither is part of a digest
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from skerry.api.edge import NO_ROLLBACK
from skerry.api.objects import Object
from skerry.api.refs import ClusterName, ObjectRef
from skerry.logic.fleet.customization.customize import CustomizerName
from skerry.logic.fleet.revision.manifest import (
    Inputs,
    Manifest,
    RevisionItem,
    content_digest,
    customizer_ref,
    input_digest,
)
from skerry.logic.fleet.translation.categories import DEFINITIONS, NAMESPACES
from skerry.logic.fleet.translation.desired import DEFINING, Lookup
from skerry.logic.fleet.translation.held import bare_record, customizer_record
from skerry.logic.fleet.translation.route import Route
from skerry.logic.fleet.translation.sources import Record
from skerry.logic.fleet.translation.workspaces import Scope, Workspaces, selection_scope

# What an EdgePlacement selects by; where that goes is no part of a revision.
_WHAT = ("namespaceSelector", "nonNamespacedObjects", "upsync", "reportedState")


@dataclass(frozen=True, slots=True)
class LiveState:
    """A manifest, and the records of its contents by their digests."""

    manifest: Manifest
    contents: Mapping[str, Record]


def what_digest(placement: Mapping[str, Any]) -> str:
    """Return the digest of what an EdgePlacement selects by."""
    spec = placement.get("spec") or {}
    return input_digest({key: spec[key] for key in _WHAT if spec.get(key)})


def live_scopes(placement: ObjectRef, workspaces: Workspaces) -> Iterator[Scope]:
    """Yield what must have been read so that a cut means anything.

    That is everything in the workspace: what has not been read yet might be selected too.
    """
    yield selection_scope(placement)
    yield from workspaces.all_scopes(placement.cluster)


def live_state(
    placement: ObjectRef, what: str, route: Route, workspaces: Workspaces, customizer: Lookup
) -> LiveState:
    """Return what a placement sends, as its workspace has it; *what* is of ``what_digest``.

    A Customizer that is named and not there is left out, and no later one takes its place in this
    revision: for what names it there is none, until the next.
    """
    cluster = placement.cluster
    items: dict[ObjectRef, RevisionItem] = {}
    customizers: dict[ObjectRef, RevisionItem] = {}
    contents: dict[str, Record] = {}
    for item, record in _sent(placement, route, workspaces):
        items[item] = entry = _entry(item, record)
        contents[entry.digest] = record
        if record.customizer is not None:
            _add_customizer(cluster, record.customizer, customizer, customizers, contents)
    inputs = Inputs(what, tuple(customizers.values()))
    return LiveState(Manifest(items.values(), inputs), contents)


def _sent(
    placement: ObjectRef, route: Route, workspaces: Workspaces
) -> Iterator[tuple[ObjectRef, Record]]:
    """Yield what is sent, by the rules of ``desired``.

    A Namespace goes when it is chosen. Unless it is named as well it is room for what is in it,
    the same for everybody, so that an edit of its labels is no new revision. What defines a kind
    goes when it is named or needed.
    """
    cluster = placement.cluster
    named, chosen = set(route.named(placement)), set(route.namespaces(placement))
    for item in set(route.items(placement)):
        record = workspaces.record(cluster, item)
        if record is None or not record.is_source:
            continue
        if item.group_resource == NAMESPACES:
            if item.name in chosen:
                yield item, record if item in named else bare_record(cluster, item)
        elif (
            item.group_resource not in DEFINING
            or item in named
            or route.needing([placement], cluster, item)
        ):
            yield item, record


def _entry(item: ObjectRef, record: Record) -> RevisionItem:
    """Return the entry of an object, with what a rollout must know before it goes back."""
    return RevisionItem(
        item,
        content_digest(item, record.digest),
        record.resource_version,
        len(record.text or b""),
        record.generation,
        _storage_version(record.copy()) if item.group_resource == DEFINITIONS else "",
        # Hardly any object has it: looking for the bytes spares unpacking all the others.
        NO_ROLLBACK.encode() in (record.text or b"") and _refuses_rollback(record.copy()),
    )


def _storage_version(definition: Object) -> str:
    """Return the version in which a definition has its objects stored; empty without one."""
    versions = (definition.get("spec") or {}).get("versions") or ()
    return next((str(each["name"]) for each in versions if each.get("storage")), "")


def _refuses_rollback(copy: Object) -> bool:
    return (copy["metadata"].get("annotations") or {}).get(NO_ROLLBACK) == "true"


def _add_customizer(
    cluster: ClusterName,
    name: CustomizerName,
    lookup: Callable[[ClusterName, str, str], Object | None],
    found: dict[ObjectRef, RevisionItem],
    contents: dict[str, Record],
) -> None:
    """Add a Customizer to the inputs, once for all the objects that name it."""
    ref = customizer_ref(*name)
    obj = None if ref in found else lookup(cluster, *name)
    if obj is not None:
        record = customizer_record(cluster, obj)
        digest = content_digest(ref, record.digest)
        found[ref] = RevisionItem(ref, digest, record.resource_version, len(record.text or b""))
        contents[digest] = record
