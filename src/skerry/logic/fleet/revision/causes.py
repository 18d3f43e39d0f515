"""What is different from the revision before, and by whose hand.

Two manifests are compared by digest, so an object is among the causes when its content differs and
not when its status does. One that is gone has no resourceVersion any more. A first revision has no
causes: all of it is new, and a list of everything would explain nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.revision.manifest import Manifest

_MAX_MANAGER = 128


class Cause(NamedTuple):
    """One object that differs; ``resource_version`` is empty where it is gone."""

    item: ObjectRef
    resource_version: str = ""
    manager: str = ""
    user: str = ""

    def as_object(self) -> Object:
        """Return the form it has in a PlacementRevision."""
        _, group, resource, namespace, name = self.item
        found: Object = {
            "item": {"group": group, "resource": resource, "namespace": namespace, "name": name}
        }
        if self.resource_version:
            found["resourceVersion"] = self.resource_version
        if self.manager:
            found["manager"] = self.manager[:_MAX_MANAGER]
        if self.user:
            found["user"] = self.user
        return found


def causes(before: Manifest | None, now: Manifest) -> tuple[Cause, ...]:
    """Return what differs, in order; nothing for the first revision of all."""
    if before is None:
        return ()
    old, new = before.by_item, now.by_item
    found = []
    for item in sorted(old.keys() | new.keys()):
        was, becomes = old.get(item), new.get(item)
        if becomes is None:
            found.append(Cause(item))
        elif was is None or was.digest != becomes.digest:
            found.append(Cause(item, becomes.resource_version))
    return tuple(found)


def last_manager(obj: Mapping[str, Any]) -> str:
    """Return the field manager of the last change of an object's content, as it tells."""
    entries = [
        each
        for each in obj["metadata"].get("managedFields") or ()
        if each.get("subresource", "") != "status"
    ]
    newest = max(entries, key=lambda each: each.get("time") or "", default=None)
    return "" if newest is None else str(newest.get("manager", ""))
