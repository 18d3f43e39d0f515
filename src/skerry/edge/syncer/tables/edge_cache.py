"""The rows of ``present``: the edge as far as it concerns us, where we placed something.

Watches begin with the first object that needs them. A type in few namespaces is watched in each
of them, so that a syncer needs no right to look elsewhere; in many, once for the whole edge.

Until a watch has read its place, the edge is asked about single objects. One that goes after that
and before the watch begins is never in the watch, whose changes therefore never name it. So
``completed`` says when a place was read, and what should be there is compared with it once.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.kit.signal import Signal
from skerry.logic.fleet.syncing.access import MAX_NAMESPACES
from skerry.logic.fleet.syncing.present import present
from skerry.runtime.client import Selection
from skerry.runtime.index import Key
from skerry.runtime.informer import Informer, InformerFactory


@dataclass(slots=True)
class _Type:
    """The watches of one type, by namespace; the empty one is the whole edge."""

    watches: dict[str, Informer] = field(default_factory=dict)


class EdgeCache:
    """Rows of edge objects; ``changed`` is sent with the old and the new one, ``completed`` with
    the type and the namespace that were read completely, the empty one for the whole edge."""

    def __init__(self, factory: InformerFactory) -> None:
        self._factory = factory
        self.changed = Signal[[ObjectRef, Object | None, Object | None]]()
        self.completed = Signal[[GroupVersionResource, str]]()
        self._types: dict[GroupVersionResource, _Type] = {}

    def watch(self, gvr: GroupVersionResource, namespace: str) -> Informer:
        """Return the watch that covers a namespace (empty: cluster-scoped), begun if need be."""
        known = self._types.setdefault(gvr, _Type())
        wide = known.watches.get("")
        if wide is not None:
            return wide
        found = known.watches.get(namespace)
        if found is None:
            if len(known.watches) >= MAX_NAMESPACES:
                namespace = ""
            found = known.watches[namespace] = self._begun(gvr, namespace)
        return found

    def known(self, gvr: GroupVersionResource, ref: ObjectRef) -> bool:
        """Tell whether *ref*'s place was read completely."""
        return self.watch(gvr, ref.namespace).synced.is_set()

    def get(self, gvr: GroupVersionResource, ref: ObjectRef) -> Object | None:
        """Return the row of *ref*; None when there is none, or none known."""
        return self.watch(gvr, ref.namespace).index.get(Key("", ref.namespace, ref.name))

    def _begun(self, gvr: GroupVersionResource, namespace: str) -> Informer:
        selection = Selection(namespace=namespace)
        informer = self._factory.informer(gvr, selection, transform=present, packed=True)

        def handler(old: Object | None, new: Object | None) -> None:
            self.changed.send(ObjectRef.local(gvr.group_resource, new or old or {}), old, new)

        informer.add_handler(handler)
        informer.completed.connect(lambda: self.completed.send(gvr, namespace))
        return informer
