"""Which guards concern which placement.

Those in the provider workspace concern placements of every workspace, those elsewhere the ones
beside them. Every guard that concerns a placement must hold, so one beside it only makes things
stricter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from skerry.api.refs import ClusterName, ObjectRef
from skerry.logic.fleet.guards.spec import Guard

# How messages call a guard that lies beside the placement, and not in the provider workspace.
_BESIDE = "./"


class GuardIndex:
    """Guards by workspace."""

    def __init__(self, provider: ClusterName = "") -> None:
        """*provider* is the logical cluster of the provider workspace."""
        self.provider = provider
        self._guards: dict[ClusterName, dict[ObjectRef, Guard]] = {}

    def __bool__(self) -> bool:
        """Tell whether there is any guard."""
        return bool(self._guards)

    def __iter__(self) -> Iterator[Guard]:
        for found in self._guards.values():
            yield from found.values()

    def get(self, ref: ObjectRef) -> Guard | None:
        """Return the guard called *ref*."""
        return self._guards.get(ref.cluster, {}).get(ref)

    def put(self, guard: Guard) -> None:
        """Have *guard* as it is given."""
        if guard.ref.cluster != self.provider:
            guard = replace(guard, name=f"{_BESIDE}{guard.ref.name}")
        self._guards.setdefault(guard.ref.cluster, {})[guard.ref] = guard

    def remove(self, ref: ObjectRef) -> None:
        """Forget the guard called *ref*."""
        found = self._guards.get(ref.cluster)
        if found is not None and found.pop(ref, None) is not None and not found:
            del self._guards[ref.cluster]

    def reaches(self, guard: ObjectRef, placement: ObjectRef) -> bool:
        """Tell whether a guard, whatever it selects, may be about a placement."""
        return guard.cluster in (self.provider, placement.cluster)

    def of(
        self, placement: ObjectRef, workspace: Mapping[str, str], labels: Mapping[str, str]
    ) -> tuple[Guard, ...]:
        """Return the guards of a placement, given the labels of its workspace and its own."""
        if not self._guards:
            return ()
        found = [*self._guards.get(self.provider, {}).values()]
        if placement.cluster != self.provider:
            found += self._guards.get(placement.cluster, {}).values()
        concerned = [each for each in found if each.concerns(workspace, labels)]
        if len(concerned) > 1:
            concerned.sort(key=lambda each: each.name)
        return tuple(concerned)
