"""Refuses a Rollout that forces a revision which is not there.

On a hub that is not ours the edge scheduler says so in the condition ``Valid``, and nothing moves.
"""

from __future__ import annotations

from skerry.api.edge import PLACEMENT_REVISIONS, ROLLOUTS
from skerry.api.errors import FieldError, Invalid
from skerry.api.keys import ObjectKey
from skerry.api.objects import Object
from skerry.logic.fleet.revision.objects import revision_name
from skerry.server.admission.operation import Operation
from skerry.store.base import Store

ROLLOUT_TYPE = ROLLOUTS.group_resource


class ForcedRevisions:
    """Looks for a revision when a Rollout begins to force it."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def admit(self, operation: Operation) -> None:
        if operation.verb == "DELETE" or operation.subresource:
            return
        number = _forced(operation.obj)
        if not number or number == _forced(operation.old or {}):
            return
        name = operation.obj["metadata"].get("name") or ""
        if not await self._is_there(operation, revision_name(name, number)):
            text = f"there is no revision {number} of EdgePlacement {name}"
            error = FieldError.invalid("spec.force.revision", number, text)
            raise Invalid.of(ROLLOUTS.group, "Rollout", name, [error])

    async def _is_there(self, operation: Operation, name: str) -> bool:
        wanted = PLACEMENT_REVISIONS.group_resource
        for resource in operation.call.types.resources:
            if (resource.info.group, resource.info.resource) == wanted:
                key = ObjectKey(
                    wanted.group,
                    resource.storage_resource,
                    operation.call.info.cluster,
                    "",
                    name,
                )
                return await self._store.get(key.path()) is not None
        return False


def _forced(obj: Object) -> int:
    found = ((obj.get("spec") or {}).get("force") or {}).get("revision")
    return found if isinstance(found, int) else 0
