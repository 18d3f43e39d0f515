"""The LocationConsent of an inventory workspace: reports, memory and confirmations in one object.

Two controllers write it, each its own part: the edge scheduler everything about whole destinations
and the memory of enforcement, the placement translator what it holds object by object. Both write
with the version they read, so neither undoes the other.

A confirmation is taken by removing its id from the annotation and noting it in the object, in one
write; only after that write may anybody act on it. So each confirmation is used once, also when
whoever took it dies at that moment: what has not gone by then is held again and has to be confirmed
again. If nothing has gone the id is the same as before, since an id stands for what is held.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from skerry.api.edge import API_VERSION, CONFIRM, ENFORCE, LOCATION_CONSENT_NAME, OBSERVE
from skerry.api.objects import Raw
from skerry.api.refs import CLUSTER_ANNOTATION

# Entries of one list: a person reads them, and none of them is lost by being left out for now.
MAX_ENTRIES = 50
# Names given as examples.
MAX_NAMES = 5
_MAX_CONFIRMATIONS = 20

REMOVE, OPEN = "Remove", "Open"


class Confirmation(NamedTuple):
    """An id that was taken, and what it stood for."""

    id: str
    action: str
    workspace: str = ""
    number: int = 0

    def written(self, time: str) -> dict[str, Any]:
        found: dict[str, Any] = {"id": self.id, "time": time, "action": self.action}
        if self.action == REMOVE:
            found |= {"workspace": self.workspace, "count": self.number}
        return found


def is_enforced(record: Raw | None) -> bool:
    """Return whether the mode in a LocationConsent is Enforce."""
    return record is not None and record.get("mode") == ENFORCE


def confirmed_ids(record: Raw | None) -> list[str]:
    """Return the ids that a person has written into the annotation, each once."""
    annotations = ((record or {}).get("metadata") or {}).get("annotations") or {}
    listed = (each.strip() for each in str(annotations.get(CONFIRM) or "").split(","))
    return list(dict.fromkeys(each for each in listed if each))


def without_ids(record: Raw, taken: Iterable[str]) -> dict[str, Any]:
    """Return *record* with *taken* removed from its annotation."""
    gone = set(taken)
    left = [each for each in confirmed_ids(record) if each not in gone]
    metadata = dict(record["metadata"])
    annotations = dict(metadata.get("annotations") or {})
    annotations.pop(CONFIRM, None)
    if left:
        annotations[CONFIRM] = ",".join(left)
    metadata["annotations"] = annotations
    return {**record, "metadata": metadata}


def with_confirmations(record: Raw, taken: Sequence[Confirmation], time: str) -> dict[str, Any]:
    """Return *record* with *taken* noted in it, the newest first."""
    if not taken:
        return dict(record)
    noted = [each.written(time) for each in taken]
    older = list(record.get("confirmations") or ())
    return {**record, "confirmations": [*noted, *older][:_MAX_CONFIRMATIONS]}


def entries(
    refused: Sequence[Mapping[str, Any]], held: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return one half of the report; what does not fit is counted."""
    found: dict[str, Any] = {}
    for name, listed in (("refused", refused), ("held", held)):
        if listed:
            found[name] = [dict(each) for each in listed[:MAX_ENTRIES]]
        if len(listed) > MAX_ENTRIES:
            found[f"{name}Omitted"] = len(listed) - MAX_ENTRIES
    return found


def with_part(record: Raw, name: str, part: Mapping[str, Any]) -> dict[str, Any]:
    """Return *record* with its part *name* (``destinations``, ``objects``) as given."""
    found = {key: value for key, value in record.items() if key not in (name, "held")}
    if part:
        found[name] = dict(part)
    waiting = sum(
        len(each.get("held") or ()) + int(each.get("heldOmitted") or 0)
        for each in (found.get("destinations") or {}, found.get("objects") or {})
    )
    found["held"] = waiting + ("opening" in found)
    return found


def new_record(cluster: str) -> dict[str, Any]:
    """Return an empty LocationConsent."""
    return {
        "apiVersion": API_VERSION,
        "kind": "LocationConsent",
        "metadata": {"name": LOCATION_CONSENT_NAME, "annotations": {CLUSTER_ANNOTATION: cluster}},
        "mode": OBSERVE,
    }


def lean_record(obj: Raw) -> dict[str, Any]:
    """Return what is worth caching of a LocationConsent."""
    metadata = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    return {**obj, "metadata": metadata}
