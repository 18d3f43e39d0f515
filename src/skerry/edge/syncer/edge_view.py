"""The edge as far as it concerns us: only types we placed something of, where we placed it.

Watches begin with the first object that needs them. A type in few namespaces is watched in each
of them, so that a syncer needs no right to look elsewhere; in many, once for the whole edge.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.syncing.access import MOST_NAMESPACES
from skerry.logic.fleet.syncing.projection import reduced
from skerry.runtime.client import Selection
from skerry.runtime.index import Key
from skerry.runtime.informer import Informer, InformerFactory

# Told the old and the new reduced state.
Touched = Callable[[ObjectRef, Object | None, Object | None], None]


@dataclass(slots=True)
class _Type:
    """The watches of one type, by namespace; the empty one is the whole edge."""

    watches: dict[str, Informer] = field(default_factory=dict)


class EdgeView:
    """Reduced copies of edge objects, and a call for each change."""

    def __init__(self, factory: InformerFactory, touched: Touched) -> None:
        self._factory = factory
        self._touched = touched
        self._types: dict[GroupVersionResource, _Type] = {}

    def watch(self, gvr: GroupVersionResource, namespace: str) -> Informer:
        """Return the watch that covers a namespace (empty: cluster-scoped), begun if need be."""
        known = self._types.setdefault(gvr, _Type())
        wide = known.watches.get("")
        if wide is not None:
            return wide
        found = known.watches.get(namespace)
        if found is None:
            if len(known.watches) >= MOST_NAMESPACES:
                namespace = ""
            found = known.watches[namespace] = self._begun(gvr, namespace)
        return found

    def known(self, gvr: GroupVersionResource, ref: ObjectRef) -> bool:
        """Tell whether the view of *ref*'s place is complete."""
        return self.watch(gvr, ref.namespace).synced.is_set()

    def get(self, gvr: GroupVersionResource, ref: ObjectRef) -> Object | None:
        """Return the reduced object; None when there is none, or none known."""
        return self.watch(gvr, ref.namespace).index.get(Key("", ref.namespace, ref.name))

    def _begun(self, gvr: GroupVersionResource, namespace: str) -> Informer:
        selection = Selection(namespace=namespace)
        informer = self._factory.informer(gvr, selection, transform=reduced, packed=True)

        def handler(old: Object | None, new: Object | None) -> None:
            self._touched(ObjectRef.local(gvr.group_resource, new or old or {}), old, new)

        informer.add_handler(handler)
        return informer
