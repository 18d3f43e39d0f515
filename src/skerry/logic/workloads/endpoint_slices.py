"""Bringing EndpointSlices to what they should say, whoever says it."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any, Final

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.logic.machinery.plan import Action, Create, Delete, Target, Update
from skerry.logic.workloads.owners import TargetOf

_REASON: Final = "EndpointsChanged"
_CONTENT: Final = ("endpoints", "ports")
_METADATA: Final = ("labels", "annotations")


def slice_actions(
    kind: GroupVersionResource, present: Iterable[Object], wanted: Iterable[Object]
) -> list[Action]:
    """Return what makes the slices *wanted* of those *present*, which are known by their names.

    Annotations are left alone where those that are wanted have none: others write some.
    """
    needed = {item["metadata"]["name"]: item for item in wanted}
    known = {item["metadata"]["name"]: item for item in present}
    actions: list[Action] = []
    for name, item in sorted(needed.items()):
        target = Target(kind, name, item["metadata"]["namespace"])
        old = known.get(name)
        if old is None:
            actions.append(Create(target, item, reason=_REASON))
        elif _compared(old, item) != _compared(item, item):
            fresh = copy.deepcopy(old) | {field: item[field] for field in _CONTENT}
            fresh["metadata"] |= {
                field: item["metadata"][field] for field in _METADATA if field in item["metadata"]
            }
            actions.append(Update(target, fresh, reason=_REASON))
    for name in sorted(known.keys() - needed.keys()):
        old = known[name]
        actions.append(Delete(TargetOf(kind)(old), reason=_REASON, uid=old["metadata"]["uid"]))
    return actions


def _compared(item: Object, wanted: Object) -> list[Any]:
    """Return what a slice says of all that *wanted* says something about."""
    metadata = item["metadata"]
    kept = [metadata.get(field) or {} for field in _METADATA if field in wanted["metadata"]]
    return [*(item.get(field) or [] for field in _CONTENT), *kept]
