"""What is left of content that is being deleted, in the conditions that say so.

In kcp's words, by which people and programs find out whose finalizer holds a workspace or a
binding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from skerry.api.objects import Object
from skerry.logic.machinery.conditions import ready_first, set_conditions, unmet

BINDING_CONDITION = "BindingResourceDeleteSuccess"
WORKSPACE_CONDITION = "WorkspaceContentDeleted"


@dataclass(slots=True)
class Remaining:
    """How many objects are left, by group and resource, and how many each finalizer holds."""

    resources: Counter[tuple[str, str]] = field(default_factory=Counter)
    finalizers: Counter[str] = field(default_factory=Counter)

    def add(self, group: str, resource: str, finalizers: Sequence[str]) -> None:
        """Count one object that could not be removed."""
        self.resources[(group, resource.partition(":")[0])] += 1
        self.finalizers.update(set(finalizers))

    def _held(self) -> str:
        return ", ".join(
            sorted(
                f"{name} in {count} resource instances" for name, count in self.finalizers.items()
            )
        )

    def _left(self) -> str:
        return ", ".join(
            sorted(
                f"{resource}.{group} has {count} resource instances"
                for (group, resource), count in self.resources.items()
            )
        )

    def binding_condition(self) -> Object:
        """Return what a binding says whose objects remain."""
        message = f"Some content in the workspace has finalizers remaining: {self._held()}"
        return unmet(BINDING_CONDITION, "SomeFinalizersRemain", message)

    def workspace_condition(self) -> Object:
        """Return what a workspace says of which content remains."""
        message = f"Some resources are remaining: {self._left()}"
        if self.finalizers:
            message += (
                f"; Some content in the logical cluster has finalizers remaining: {self._held()}"
            )
        return unmet(WORKSPACE_CONDITION, "SomeResourcesRemain", message, severity="Info")


def set_condition(obj: Object, condition: Object, now: str) -> bool:
    """Put *condition* into the status of *obj* at its place; tell whether that changes anything.

    Conditions are sorted as kcp sorts them, Ready first. The time is that of the last change of
    status, not of the message.
    """
    status = obj.setdefault("status", {})
    old = status.get("conditions") or ()
    wanted = set_conditions(old, [condition], now)
    if wanted == list(old):
        return False
    status["conditions"] = ready_first(wanted)
    return True
