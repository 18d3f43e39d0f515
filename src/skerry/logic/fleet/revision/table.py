"""The manifests that are known, and the contents that were read.

Manifests are all kept, at some hundred bytes for an object: they decide about every row. Contents
are as large as sources and hold Secrets: they are read when a row needs one, and a bounded amount
of them is kept, those used last.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TypeVar

from skerry.api.edge import edge_placement_ref
from skerry.api.refs import ClusterName, ObjectRef
from skerry.kit.caching import WeightedCache
from skerry.logic.fleet.revision.manifest import Manifest
from skerry.logic.fleet.revision.objects import RevisionPage, manifest_of

CONTENT_BYTES = 64 << 20

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class RevisionTable:
    """PlacementRevisions by placement and number."""

    def __init__(self) -> None:
        self._pages: dict[ObjectRef, dict[str, RevisionPage]] = {}
        self._placements: dict[tuple[ClusterName, str], ObjectRef] = {}
        self._manifests: dict[tuple[ObjectRef, int], Manifest | None] = {}

    def put(self, cluster: ClusterName, page: RevisionPage) -> tuple[ObjectRef, int]:
        """Take a page; returns which revision it belongs to."""
        placement = edge_placement_ref(cluster, page.placement)
        self._pages.setdefault(placement, {})[page.name] = page
        self._placements[cluster, page.name] = placement
        self._manifests.pop((placement, page.number), None)
        return placement, page.number

    def drop(self, cluster: ClusterName, name: str) -> tuple[ObjectRef, int] | None:
        """Forget a page; returns which revision it belonged to, None if it was not known."""
        placement = self._placements.pop((cluster, name), None)
        if placement is None:
            return None
        pages = self._pages[placement]
        number = pages.pop(name).number
        if not pages:
            del self._pages[placement]
        self._manifests.pop((placement, number), None)
        return placement, number

    def pages(self, placement: ObjectRef) -> list[RevisionPage]:
        """Return every page of a placement's revisions."""
        return list(self._pages.get(placement, {}).values())

    def manifest(self, placement: ObjectRef, number: int) -> Manifest | None:
        """Return a revision; None when it is not there as a whole."""
        key = (placement, number)
        if key not in self._manifests:
            pages = (each for each in self.pages(placement) if each.number == number)
            self._manifests[key] = manifest_of(pages)
        return self._manifests[key]

    def __iter__(self) -> Iterator[ObjectRef]:
        return iter(self._pages)


class Contents(WeightedCache[K, V]):
    """Contents that were read, weighed in bytes; those that are known not to be there."""

    def __init__(self, limit: int = CONTENT_BYTES) -> None:
        super().__init__(limit)
        self._absent: set[K] = set()

    def put(self, key: K, value: V, weight: int) -> None:
        self._absent.discard(key)
        super().put(key, value, weight)

    def note_absent(self, key: K) -> bool:
        """Take that a content is not there; returns whether that is news."""
        if key in self._absent:
            return False
        self._absent.add(key)
        return True

    def is_absent(self, key: K) -> bool:
        """Tell whether a content is known not to be there."""
        return key in self._absent
