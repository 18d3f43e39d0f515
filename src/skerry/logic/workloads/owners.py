"""Owner references: which objects a controller counts as its own.

An object belongs to the one owner whose reference says ``controller: true``, recognised by uid: a
namesake created later owns nothing of its predecessor. Objects without such an owner that match
the selector are taken up; owned ones that no longer match are let go, for somebody else to take.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skerry.api.objects import Object
from skerry.logic.machinery.plan import Action, Patch, Target
from skerry.logic.machinery.selectors import Selector


def controller_of(obj: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the reference to the object's controlling owner."""
    for reference in obj["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            found: Mapping[str, Any] = reference
            return found
    return None


def controller_uid(obj: Mapping[str, Any]) -> str:
    """Return the uid of the controlling owner, empty when there is none."""
    reference = controller_of(obj)
    return "" if reference is None else str(reference["uid"])


def owner_reference(owner: Mapping[str, Any], api_version: str, kind: str) -> Object:
    """Return the reference that makes *owner* the controlling one."""
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


@dataclass(frozen=True, slots=True)
class Claim:
    """What an owner has, may take up, and must let go."""

    owned: tuple[Object, ...] = ()
    adopted: tuple[Object, ...] = ()
    released: tuple[Object, ...] = ()


def claim(owner: Object, selector: Selector, objects: Iterable[Object]) -> Claim:
    """Sort the objects of a namespace by what *owner* has to do with them.

    An owner that is being deleted adopts nothing; an object that is being deleted is neither
    adopted nor released.
    """
    uid = owner["metadata"]["uid"]
    owner_is_deleted = "deletionTimestamp" in owner["metadata"]
    owned: list[Object] = []
    adopted: list[Object] = []
    released: list[Object] = []
    for obj in objects:
        matches = selector.matches(obj["metadata"].get("labels"))
        held_by = controller_uid(obj)
        if held_by == uid:
            deleted = owner_is_deleted or "deletionTimestamp" in obj["metadata"]
            (owned if matches or deleted else released).append(obj)
        elif (
            not held_by
            and matches
            and not owner_is_deleted
            and "deletionTimestamp" not in obj["metadata"]
        ):
            adopted.append(obj)
    return Claim(tuple(owned), tuple(adopted), tuple(released))


def claim_actions(claimed: Claim, reference: Object, targets: TargetOf) -> list[Action]:
    """Return the patches that take up and let go."""
    actions: list[Action] = [
        Patch(
            targets(obj),
            {"metadata": {"uid": obj["metadata"]["uid"], "ownerReferences": [reference]}},
            reason="Adopted",
            kind="strategic",
            absent_is_fine=True,
        )
        for obj in claimed.adopted
    ]
    for obj in claimed.released:
        gone = {"$patch": "delete", "uid": reference["uid"]}
        patch = {"metadata": {"uid": obj["metadata"]["uid"], "ownerReferences": [gone]}}
        actions.append(
            Patch(targets(obj), patch, reason="Released", kind="strategic", absent_is_fine=True)
        )
    return actions


class TargetOf:
    """Names the objects of one type."""

    def __init__(self, gvr: Any) -> None:
        self.gvr = gvr

    def __call__(self, obj: Mapping[str, Any]) -> Target:
        metadata = obj["metadata"]
        return Target(self.gvr, metadata["name"], metadata.get("namespace", ""))


def oldest_first(objects: Iterable[Object]) -> Sequence[Object]:
    """Return *objects* by age, then by name so that the order is total."""
    return sorted(
        objects,
        key=lambda obj: (obj["metadata"].get("creationTimestamp", ""), obj["metadata"]["name"]),
    )
