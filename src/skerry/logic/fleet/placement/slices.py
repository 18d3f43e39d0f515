"""Destinations as SinglePlacementSlices.

The slice with the placement's own name holds the first destinations; what does not fit stands in
``<name>-2``, ``<name>-3`` …, so that no object outgrows what a store takes. Whoever wants the
destinations of a placement reads all its slices: those whose owner it is.

A further slice may not take the name another placement's own slice has or would have: such a
number is left out. That depends only on which placements there are, so two placements never fight
over a slice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

import orjson

from skerry.api.edge import API_VERSION, SOURCE_PLACEMENT, SliceOwner
from skerry.api.objects import Object
from skerry.logic.fleet.placement.records import Destination

# Some 200 bytes each: a slice stays near 1 MB, below etcd's 1.5 MB.
DESTINATIONS_PER_SLICE = 5000
_LABEL_LENGTH = 63
_OBJECT_NAME_LENGTH = 253


class WantedSlice(NamedTuple):
    """One slice as it should be; ``digest`` tells equal destinations."""

    name: str
    labels: Mapping[str, str]
    destinations: list[dict[str, str]]
    digest: str


def wanted_slices(
    name: str,
    destinations: Sequence[Destination],
    taken: AbstractSet[str] = frozenset(),
    per_slice: int = DESTINATIONS_PER_SLICE,
) -> list[WantedSlice]:
    """Return the slices that hold *destinations*; at least the one with the placement's name.

    *taken* are the names of the other placements in the workspace.
    """
    pages = [
        destinations[start : start + per_slice]
        for start in range(0, max(len(destinations), 1), per_slice)
    ]
    names = slice_names(name, len(pages), taken)
    return [_wanted(name, each, page) for each, page in zip(names, pages, strict=True)]


def slice_names(name: str, count: int, taken: AbstractSet[str]) -> list[str]:
    """Return the names of the first *count* slices of a placement."""
    names = [name]
    number = 1
    while len(names) < count:
        number += 1
        further = _numbered(name, number)
        if further not in taken:
            names.append(further)
    return names


def _numbered(name: str, number: int) -> str:
    """Return ``name-number``; a name too long for that is cut and told apart by a hash."""
    plain = f"{name}-{number}"
    if len(plain) <= _OBJECT_NAME_LENGTH:
        return plain
    ending = f"-{_hash(name)}-{number}"
    return name[: _OBJECT_NAME_LENGTH - len(ending)].rstrip("-.") + ending


def base_names(name: str) -> Iterable[str]:
    """Return the placement that would leave out a number because of a placement called *name*."""
    base, _, number = name.rpartition("-")
    if base and number.isdecimal() and not number.startswith("0") and int(number) > 1:
        yield base


def _wanted(placement: str, name: str, page: Sequence[Destination]) -> WantedSlice:
    listed = [destination.as_object() for destination in page]
    labels = {} if name == placement else {SOURCE_PLACEMENT: label_for(placement)}
    return WantedSlice(name, labels, listed, digest_of(listed))


def label_for(placement: str) -> str:
    """Return the label's value for a placement; a name too long for a label is cut and hashed."""
    if len(placement) <= _LABEL_LENGTH:
        return placement
    ending = f"-{_hash(placement)}"
    return placement[: _LABEL_LENGTH - len(ending)].rstrip("-.") + ending


def digest_of(destinations: Sequence[Mapping[str, Any]] | None) -> str:
    """Return what equal lists of destinations, in equal order, have in common."""
    return hashlib.blake2b(
        orjson.dumps(destinations or [], option=orjson.OPT_SORT_KEYS), digest_size=16
    ).hexdigest()


def lean_slice(obj: Mapping[str, Any]) -> Object:
    """Return what is worth keeping of a slice that is only compared: not its destinations."""
    metadata = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    return {"metadata": metadata, "digest": digest_of(obj.get("destinations"))}


def destinations_in(obj: Mapping[str, Any]) -> list[Destination]:
    """Return the destinations a slice holds."""
    return [
        Destination(
            each.get("cluster", ""),
            each.get("locationName", ""),
            each.get("syncTargetName", ""),
            each.get("syncTargetUID", ""),
        )
        for each in obj.get("destinations") or ()
    ]


def new_slice(wanted: WantedSlice, owner: SliceOwner) -> Object:
    """Return the slice object to create."""
    metadata: Object = {"name": wanted.name, "ownerReferences": [owner.reference()]}
    if wanted.labels:
        metadata["labels"] = dict(wanted.labels)
    return {
        "apiVersion": API_VERSION,
        "kind": "SinglePlacementSlice",
        "metadata": metadata,
        "destinations": wanted.destinations,
    }


def corrected_metadata(
    metadata: Mapping[str, Any], wanted: WantedSlice, owner: SliceOwner
) -> Object:
    """Return *metadata* with our owner and label, and otherwise as it is."""
    labels = {
        key: value
        for key, value in (metadata.get("labels") or {}).items()
        if key != SOURCE_PLACEMENT
    }
    others = [
        reference
        for reference in metadata.get("ownerReferences") or ()
        if reference.get("kind") != "EdgePlacement"
    ]
    corrected = {
        key: value
        for key, value in metadata.items()
        if key not in ("labels", "ownerReferences", "managedFields")
    }
    if labels or wanted.labels:
        corrected["labels"] = {**labels, **wanted.labels}
    corrected["ownerReferences"] = [owner.reference(), *others]
    return corrected


def metadata_is_right(metadata: Mapping[str, Any], wanted: WantedSlice, owner: SliceOwner) -> bool:
    """Tell whether a slice has our owner and label already."""
    label = (metadata.get("labels") or {}).get(SOURCE_PLACEMENT)
    if label != wanted.labels.get(SOURCE_PLACEMENT):
        return False
    owners = [r for r in metadata.get("ownerReferences") or () if r.get("kind") == "EdgePlacement"]
    return owners == [owner.reference()]


def _hash(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=5).hexdigest()
