"""Destinations as SinglePlacementSlices.

The slice with the placement's own name is there always; further ones are ``<name>-2``,
``<name>-3`` …, so that no object outgrows what a store takes and no change costs more than one of
them. Whoever wants the destinations of a placement reads all its slices
(``api.edge.placement_of_slice``); which of them holds what is decided in ``pages``.

A further slice may not take the name another placement's own slice has or would have: such a
number is left out. That depends only on which placements there are, so two placements never fight
over a slice.

Destinations of a placement with a Rollout carry two numbers more (``Assigned``): which they are,
for ever, and which revision they get. Of any other placement slices say nothing of that.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from operator import itemgetter
from typing import Any, NamedTuple

from skerry.api.edge import API_VERSION, SOURCE_PLACEMENT, SliceOwner
from skerry.api.kcp.history import MAX_SLOT
from skerry.api.objects import Object
from skerry.logic.fleet.placement.records import Destination

_LABEL_LENGTH = 63
_OBJECT_NAME_LENGTH = 253


class Assigned(NamedTuple):
    """What a destination of a placement with a Rollout is given.

    ``slot`` is its lasting number. ``revision`` is that of a PlacementRevision; 0 while it gets
    the objects as they are.
    """

    slot: int
    revision: int = 0

    def as_object(self) -> dict[str, int]:
        """Return the form it has in an entry of a slice."""
        return (
            {"slot": self.slot, "revision": self.revision} if self.revision else {"slot": self.slot}
        )


# -- names -----------------------------------------------------------------------------------


def page_number(placement: str, name: str) -> int | None:
    """Return which of a placement's slices has that name; None for a name that none has."""
    if name == placement:
        return 1
    _, _, ending = name.rpartition("-")
    if not ending.isdecimal() or ending.startswith("0") or len(ending) > 9:
        return None
    number = int(ending)
    return number if number > 1 and _numbered(placement, number) == name else None


def page_names(
    placement: str, present: Iterable[str], fresh: int, is_taken: Callable[[str], bool]
) -> list[str]:
    """Return the names that slices of a placement may have, in order.

    They are those of *present* that are its own, and *fresh* more. *is_taken* says whether a
    name belongs to somebody else. If the placement's own name does, another is the first.
    """
    numbers = {page_number(placement, name) for name in present} - {None}
    found = {n: _numbered(placement, n) for n in numbers if n is not None}
    found = {number: name for number, name in found.items() if not is_taken(name)}
    if not is_taken(placement):
        found[1] = placement
    else:
        found.pop(1, None)
    missing = fresh if found else max(fresh, 1)
    for number in count(2):
        if missing <= 0:
            break
        name = _numbered(placement, number)
        if number not in found and not is_taken(name):
            found[number] = name
            missing -= 1
    return [found[number] for number in sorted(found)]


def _numbered(name: str, number: int) -> str:
    return name if number == 1 else ended_name(name, f"-{number}")


def ended_name(name: str, ending: str) -> str:
    """Return *name* with an ending; one too long for that is cut and made unique by a hash."""
    plain = f"{name}{ending}"
    if len(plain) <= _OBJECT_NAME_LENGTH:
        return plain
    ending = f"-{_hash(name)}{ending}"
    return name[: _OBJECT_NAME_LENGTH - len(ending)].rstrip("-.") + ending


def base_names(name: str) -> Iterable[str]:
    """Return the placement that would leave out a number because of a placement called *name*."""
    base, _, number = name.rpartition("-")
    if base and number.isdecimal() and not number.startswith("0") and int(number) > 1:
        yield base


def label_for(placement: str) -> str:
    """Return the label's value for a placement; a name too long for a label is cut and hashed."""
    if len(placement) <= _LABEL_LENGTH:
        return placement
    ending = f"-{_hash(placement)}"
    return placement[: _LABEL_LENGTH - len(ending)].rstrip("-.") + ending


def _hash(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=5).hexdigest()


# -- content ---------------------------------------------------------------------------------


def destinations_in(obj: Mapping[str, Any]) -> list[Destination]:
    """Return the destinations a slice holds."""
    return list(map(Destination._make, _entries(obj)))


def _entries(obj: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return the destinations as plain tuples; somebody else's entry may lack a name."""
    listed = obj.get("destinations") or ()
    try:
        return list(map(_NAMES_IN, listed))
    except KeyError:
        return [tuple(each.get(name, "") for name in _NAMES) for each in listed]


_NAMES = ("cluster", "locationName", "syncTargetName", "syncTargetUID")
_NAMES_IN: Callable[[Mapping[str, str]], tuple[str, ...]] = itemgetter(*_NAMES)


def member(destination: Destination) -> int:
    """Return what stands for a destination where only membership matters.

    Eight bytes in place of some four hundred. Of ten thousand destinations two are taken for one
    another with a chance of one in 10**11; the number is this process's own and never written.
    """
    return hash(destination)  # as that of a plain tuple of the same names


def assigned_in(obj: Mapping[str, Any]) -> list[Assigned | None]:
    """Return what the destinations of a slice are given, in the order of ``destinations_in``.

    Anybody may write a slice: a number that no placement comes to is no slot.
    """
    return [
        Assigned(slot, each.get("revision") or 0)
        if (slot := each.get("slot") or 0) and 0 < slot <= MAX_SLOT
        else None
        for each in obj.get("destinations") or ()
    ]


def unpacked_members(packed: str) -> Sequence[int]:
    """Return the members of a lean slice, in order; eight characters are one."""
    return _unpacked(packed)


def _packed(numbers: Iterable[int]) -> str:
    return array("q", numbers).tobytes().decode("latin-1")


def _unpacked(packed: str) -> Sequence[int]:
    numbers = array("q")
    numbers.frombytes(packed.encode("latin-1"))
    return numbers


def lean_slice(obj: Mapping[str, Any]) -> Object:
    """Return what is worth keeping of a slice that is only compared: who is in it.

    And, where it says that, what they are given: slot and revision in turn.
    """
    metadata = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    lean = {"metadata": metadata, "members": _packed(map(hash, _entries(obj)))}
    if any(each.get("slot") for each in obj.get("destinations") or ()):
        given = assigned_in(obj)
        lean["assigned"] = _packed(number for each in given for number in each or _NOTHING)
    return lean


_NOTHING = Assigned(0)


def assigned_members(lean: Object) -> dict[int, Assigned]:
    """Return what the members of a lean slice are given; those that are given something."""
    if "assigned" not in lean:
        return {}
    numbers = iter(_unpacked(lean["assigned"]))
    given = map(Assigned, numbers, numbers)
    return {
        each: assigned
        for each, assigned in zip(unpacked_members(lean["members"]), given, strict=True)
        if assigned.slot
    }


def slice_fingerprint(lean: Object) -> tuple[str, str]:
    """Return what tells two states of a lean slice apart."""
    return lean["members"], lean.get("assigned", "")


# -- objects ---------------------------------------------------------------------------------


def new_slice(
    name: str,
    owner: SliceOwner,
    destinations: Iterable[Destination],
    assigned: Mapping[Destination, Assigned] | None = None,
) -> Object:
    """Return the slice object to create for a placement; *assigned* for one with a Rollout."""
    metadata: Object = {"name": name, "ownerReferences": [owner.reference()]}
    labels = _labels(name, owner)
    if labels:
        metadata["labels"] = labels
    given = assigned or {}
    return {
        "apiVersion": API_VERSION,
        "kind": "SinglePlacementSlice",
        "metadata": metadata,
        "destinations": [
            {**each.as_object(), **given[each].as_object()}
            if given and each in given
            else each.as_object()
            for each in destinations
        ],
    }


def _labels(name: str, owner: SliceOwner) -> dict[str, str]:
    return {} if name == owner.name else {SOURCE_PLACEMENT: label_for(owner.name)}


def corrected_metadata(metadata: Mapping[str, Any], owner: SliceOwner) -> Object:
    """Return *metadata* with our owner and label, and otherwise as it is."""
    labels = {
        key: value
        for key, value in (metadata.get("labels") or {}).items()
        if key != SOURCE_PLACEMENT
    }
    labels.update(_labels(metadata["name"], owner))
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
    if labels:
        corrected["labels"] = labels
    corrected["ownerReferences"] = [owner.reference(), *others]
    return corrected


def metadata_is_right(metadata: Mapping[str, Any], owner: SliceOwner) -> bool:
    """Tell whether a slice has our owner and label already."""
    label = (metadata.get("labels") or {}).get(SOURCE_PLACEMENT)
    if label != _labels(metadata["name"], owner).get(SOURCE_PLACEMENT):
        return False
    owners = [r for r in metadata.get("ownerReferences") or () if r.get("kind") == "EdgePlacement"]
    return owners == [owner.reference()]


def slice_as_written(sent: Mapping[str, Any], answer: Mapping[str, Any]) -> Object:
    """Return what a cache would keep of a slice that was sent whole and answered by metadata."""
    return lean_slice({"metadata": answer["metadata"], "destinations": sent.get("destinations")})
