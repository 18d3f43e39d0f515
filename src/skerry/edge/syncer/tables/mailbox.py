"""The mailbox as last heard: its SyncerConfigs and every object of the types they name.

One watch per type; where the hub offers that, all of them share a stream and tell differences
only. Objects are kept packed and without what servers note for themselves. ``synced`` says that a
type was read completely in this session; from then on every change of it is sent, in order, as
the informer promises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from skerry.api.kinds import GroupResource, GroupVersionResource
from skerry.api.objects import Object
from skerry.api.refs import CLUSTER_ANNOTATION, ObjectRef
from skerry.kit.signal import Signal
from skerry.logic.fleet.syncing.wanted import revision_of
from skerry.runtime.index import Key
from skerry.runtime.informer import Informer, InformerFactory


@dataclass(slots=True)
class _Followed:
    gvr: GroupVersionResource
    informer: Informer
    handler: Callable[[Object | None, Object | None], None]


class WatchedMailbox:
    """A mailbox followed by one watch per type."""

    def __init__(self, factory: InformerFactory) -> None:
        self._factory = factory
        # Sent with the old and the new state of an object, as an informer's handler is called.
        self.changed = Signal[[ObjectRef, Object | None, Object | None]]()
        # Sent with a type that was read completely.
        self.completed = Signal[[GroupResource]]()
        self._types: dict[GroupResource, _Followed] = {}

    def follow(self, types: Mapping[GroupResource, GroupVersionResource]) -> None:
        """Watch exactly these types from now on.

        One whose version is another begins anew, and is not ``synced`` until it was read. A type
        that is no longer followed sends nothing for the objects that it had: whoever dropped it
        knows why, and absence here is no evidence.
        """
        for kind in [k for k, known in self._types.items() if types.get(k) != known.gvr]:
            gone = self._types.pop(kind)
            gone.informer.remove_handler(gone.handler)
            self._factory.stop(gone.informer)
        for kind, gvr in types.items():
            if kind not in self._types:
                self._start(kind, gvr)

    def get(self, ref: ObjectRef) -> Object | None:
        """Return an object as last heard; None means absent only where its type is ``synced``."""
        found = self._types.get(ref.group_resource)
        if found is None:
            return None
        return found.informer.index.get(Key("", ref.namespace, ref.name))

    def refs(self) -> Iterator[ObjectRef]:
        for kind, found in list(self._types.items()):
            for key in list(found.informer.index):
                yield ObjectRef("", kind.group, kind.resource, key.namespace, key.name)

    def followed(self, kind: GroupResource) -> GroupVersionResource | None:
        found = self._types.get(kind)
        return None if found is None else found.gvr

    def synced(self, kind: GroupResource) -> bool:
        """Tell whether a type is followed and was read completely in this session."""
        found = self._types.get(kind)
        return found is not None and found.informer.synced.is_set()

    async def wait_synced(self) -> None:
        for found in list(self._types.values()):
            await found.informer.wait_synced()

    def revision(self, kind: GroupResource) -> int:
        """Return the hub's revision up to which a type was heard; 0 for one not followed."""
        found = self._types.get(kind)
        return 0 if found is None else revision_of(found.informer.resource_version)

    async def run(self) -> None:
        await self._factory.run()

    def _start(self, kind: GroupResource, gvr: GroupVersionResource) -> None:
        informer = self._factory.informer(gvr, transform=slim, packed=True, compact=True)

        def handler(old: Object | None, new: Object | None) -> None:
            self.changed.send(ObjectRef.local(kind, new or old or {}), old, new)

        informer.add_handler(handler)
        self._types[kind] = _Followed(gvr, informer, handler)
        informer.completed.connect(lambda: self.completed.send(kind))


def slim(obj: Object) -> Object:
    """Return an object without what servers note for themselves; not a copy below metadata."""
    metadata: dict[str, Any] = {k: v for k, v in obj["metadata"].items() if k != "managedFields"}
    notes = metadata.get("annotations")
    if notes and CLUSTER_ANNOTATION in notes:
        metadata["annotations"] = {k: v for k, v in notes.items() if k != CLUSTER_ANNOTATION}
    return {**obj, "metadata": metadata}
