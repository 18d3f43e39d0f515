"""Plans applied to plain dictionaries: what a server would have afterwards, near enough."""

from __future__ import annotations

import copy

from skerry.api.objects import Object
from skerry.logic.machinery.plan import (
    Apply,
    Create,
    Delete,
    DeleteCollection,
    Patch,
    Plan,
    Record,
    Target,
    Update,
)


class Objects:
    """A few objects by type and name; plans change them."""

    def __init__(self) -> None:
        self.held: dict[tuple[str, str], Object] = {}
        self._numbers = 0

    def put(self, resource: str, obj: Object) -> Object:
        self._numbers += 1
        obj = copy.deepcopy(obj)
        metadata = obj["metadata"]
        metadata.setdefault("namespace", "ns")
        metadata.setdefault("uid", f"uid-{self._numbers}")
        metadata.setdefault("creationTimestamp", f"2026-01-01T00:{self._numbers:02d}:00Z")
        metadata["resourceVersion"] = str(self._numbers)
        metadata.setdefault("generation", 1)
        self.held[resource, metadata["name"]] = obj
        return obj

    def of(self, resource: str) -> tuple[Object, ...]:
        return tuple(obj for (kind, _), obj in self.held.items() if kind == resource)

    def apply(self, plan: Plan) -> None:
        for action in plan:
            match action:
                case Create():
                    if self._key(action.target) not in self.held:
                        self.put(action.target.gvr.resource, action.object)
                case Update():
                    self.held[self._key(action.target)] = copy.deepcopy(action.object)
                case Delete():
                    self.held.pop(self._key(action.target), None)
                case Patch():
                    found = self.held.get(self._key(action.target))
                    if found is not None:
                        _merge(found, action.patch)
                case DeleteCollection() | Apply() | Record():
                    raise AssertionError(f"no workload controller does this: {action}")

    @staticmethod
    def _key(target: Target) -> tuple[str, str]:
        return (target.gvr.resource, target.name)


def _merge(into: Object, patch: Object) -> None:
    for name, value in patch.items():
        if value is None:
            into.pop(name, None)
        elif isinstance(value, dict) and isinstance(into.get(name), dict):
            _merge(into[name], value)
        else:
            into[name] = copy.deepcopy(value)


def run(pod: Object) -> None:
    """Make a pod run and be ready."""
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    pod["status"] = {"phase": "Running", "conditions": [condition]}
