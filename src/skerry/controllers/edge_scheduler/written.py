"""What we know of slices: what the cache says, or what we wrote if that is newer.

A cache is behind by the time an event takes. Without memory of our own writes the next look at a
placement would be at a state that we have changed already, and lose a Conflict for it. The memory
of a write counts exactly until the cache has read the server's history beyond it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from skerry.api.edge import SINGLE_PLACEMENT_SLICES, edge_placement_ref, placement_of_slice
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef

_SLICE = SINGLE_PLACEMENT_SLICES.group_resource


class HeldSlice(NamedTuple):
    """A slice as last known."""

    metadata: dict[str, Any]
    digest: str


class WrittenSlices:
    """The slices we wrote and have not yet seen come back."""

    def __init__(self, seen: Callable[[], str]) -> None:
        """*seen* tells how far the cache has read the server's history."""
        self._seen = seen
        self._written: dict[ObjectRef, HeldSlice] = {}
        # Names of those slices by the placement they belong to.
        self._names: dict[ObjectRef, set[str]] = {}
        # Digests of writes under way, whose event may come before their answer.
        self._expected: dict[ObjectRef, str] = {}

    def expect(self, ref: ObjectRef, digest: str) -> None:
        """Take the next event that tells of destinations with that digest for our own."""
        self._expected[ref] = digest

    def expect_nothing(self, ref: ObjectRef) -> None:
        """Say that a write has ended, well or not."""
        self._expected.pop(ref, None)

    def note(self, answer: Object, digest: str) -> None:
        """Remember a slice as the server has it after our write, if the cache has not seen it.

        *answer* may be its metadata only; *digest* is that of the destinations it was sent.
        """
        metadata = {k: v for k, v in answer["metadata"].items() if k != "managedFields"}
        if _number(metadata.get("resourceVersion")) <= _number(self._seen()):
            return
        ref = ObjectRef.of(_SLICE, answer)
        self._drop(ref)
        self._written[ref] = HeldSlice(metadata, digest)
        self._names.setdefault(_owner(ref, metadata), set()).add(ref.name)

    def wrote(self, cached: Object) -> bool:
        """Tell whether what the cache is getting is what we wrote, or older than that."""
        ref = ObjectRef.of(_SLICE, cached)
        if self._expected.get(ref) == cached["digest"]:
            # Once: should the next look the same, it is somebody else's all the same.
            del self._expected[ref]
            return True
        held = self._written.get(ref)
        if held is None:
            return False
        ours = _number(held.metadata.get("resourceVersion"))
        return _number(cached["metadata"].get("resourceVersion")) <= ours

    def newest(self, ref: ObjectRef, cached: Object | None) -> HeldSlice | None:
        """Return what we wrote while the cache is behind it, else what the cache has."""
        held = self._written.get(ref)
        if held is not None:
            if _number(held.metadata.get("resourceVersion")) > _number(self._seen()):
                return held
            self._drop(ref)
        return None if cached is None else HeldSlice(cached["metadata"], cached["digest"])

    def names(self, placement: ObjectRef) -> Iterable[str]:
        """Return the names of the slices of a placement that we have memory of."""
        return self._names.get(placement, ())

    def _drop(self, ref: ObjectRef) -> None:
        held = self._written.pop(ref, None)
        if held is None:
            return
        owner = _owner(ref, held.metadata)
        names = self._names[owner]
        names.discard(ref.name)
        if not names:
            del self._names[owner]


def _owner(ref: ObjectRef, metadata: dict[str, Any]) -> ObjectRef:
    return edge_placement_ref(ref.cluster, placement_of_slice({"metadata": metadata}))


def _number(version: object) -> int:
    """Return how new a state is; where versions are no numbers, nothing is remembered."""
    text = str(version or "")
    return int(text) if text.isdigit() else 0
