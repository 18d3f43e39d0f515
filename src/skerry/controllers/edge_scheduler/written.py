"""What we know of slices: what the cache says, or what we wrote if that is newer.

A cache is behind by the time an event takes. Without memory of our own writes the next look at a
placement would be at a state that we have changed already, and lose a Conflict for it. The memory
of a write counts exactly until the cache has read the server's history beyond it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from skerry.api.objects import Object
from skerry.logic.fleet.placement.records import Place, place_of
from skerry.logic.fleet.placement.slices import placement_name


class HeldSlice(NamedTuple):
    """A slice as last known."""

    metadata: dict[str, Any]
    digest: str


class WrittenSlices:
    """The slices we wrote and have not yet seen come back."""

    def __init__(self, seen: Callable[[], str]) -> None:
        """*seen* tells how far the cache has read the server's history."""
        self._seen = seen
        self._written: dict[Place, HeldSlice] = {}
        # Names of those slices by the placement they belong to.
        self._names: dict[Place, set[str]] = {}
        # Digests of writes under way, whose event may come before their answer.
        self._expected: dict[Place, str] = {}

    def expect(self, place: Place, digest: str) -> None:
        """Take the next event that tells of destinations with that digest for our own."""
        self._expected[place] = digest

    def expect_nothing(self, place: Place) -> None:
        """Say that a write has ended, well or not."""
        self._expected.pop(place, None)

    def note(self, answer: Object, digest: str) -> None:
        """Remember a slice as the server has it after our write, if the cache has not seen it.

        *answer* may be its metadata only; *digest* is that of the destinations it was sent.
        """
        metadata = {k: v for k, v in answer["metadata"].items() if k != "managedFields"}
        if _number(metadata.get("resourceVersion")) <= _number(self._seen()):
            return
        place = place_of(answer)
        self._drop(place)
        self._written[place] = HeldSlice(metadata, digest)
        self._names.setdefault(_owner(place, metadata), set()).add(place.name)

    def wrote(self, cached: Object) -> bool:
        """Tell whether what the cache is getting is what we wrote, or older than that."""
        place = place_of(cached)
        if self._expected.get(place) == cached["digest"]:
            # Once: should the next look the same, it is somebody else's all the same.
            del self._expected[place]
            return True
        held = self._written.get(place)
        if held is None:
            return False
        ours = _number(held.metadata.get("resourceVersion"))
        return _number(cached["metadata"].get("resourceVersion")) <= ours

    def newest(self, place: Place, cached: Object | None) -> HeldSlice | None:
        """Return what we wrote while the cache is behind it, else what the cache has."""
        held = self._written.get(place)
        if held is not None:
            if _number(held.metadata.get("resourceVersion")) > _number(self._seen()):
                return held
            self._drop(place)
        return None if cached is None else HeldSlice(cached["metadata"], cached["digest"])

    def names(self, placement: Place) -> Iterable[str]:
        """Return the names of the slices of a placement that we have memory of."""
        return self._names.get(placement, ())

    def _drop(self, place: Place) -> None:
        held = self._written.pop(place, None)
        if held is None:
            return
        owner = _owner(place, held.metadata)
        names = self._names[owner]
        names.discard(place.name)
        if not names:
            del self._names[owner]


def _owner(place: Place, metadata: dict[str, Any]) -> Place:
    return Place(place.cluster, placement_name({"metadata": metadata}))


def _number(version: object) -> int:
    """Return how new a state is; where versions are no numbers, nothing is remembered."""
    text = str(version or "")
    return int(text) if text.isdigit() else 0
