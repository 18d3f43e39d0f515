"""Small sets of objects the server itself consults on every write, kept up by the dispatcher.

Namespaces, quotas, limit ranges and priority classes are few and asked for constantly. An object
absent here may still have been written by another server a moment ago: whoever refuses because
of an absence asks the store first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from skerry.api.keys import ObjectKey, type_prefix
from skerry.api.objects import Object
from skerry.server.change import Change
from skerry.server.codec import decode
from skerry.server.watch.dispatcher import Dispatcher
from skerry.store.base import Store

_NONE: Mapping[str, Object] = {}


class ObservedObjects:
    """All objects of one type, by cluster and namespace. They are not to be changed."""

    def __init__(
        self,
        group: str,
        resource: str,
        inert: Callable[[Object], bool] = lambda _: False,
    ) -> None:
        self.group = group
        self.resource = resource
        # Objects that have no effect here are as good as absent.
        self.inert = inert
        # By cluster and namespace; empty where there is none at all.
        self.by_place: dict[tuple[str, str], dict[str, Object]] = {}

    @property
    def prefix(self) -> str:
        return type_prefix(self.group, self.resource)

    async def follow(self, store: Store, dispatcher: Dispatcher) -> None:
        """Read what is there and keep it up; call before the dispatcher runs."""
        dispatcher.observe(self.prefix, self.observe, self.by_place.clear)
        for entry in (await store.range(self.prefix)).entries:
            obj = decode(entry.value, entry.revision)
            if not self.inert(obj):
                self._put(ObjectKey.parse(entry.key), obj)

    def observe(self, change: Change) -> None:
        """Follow one change."""
        key, event = ObjectKey.parse(change.event.key), change.event
        if event.value is not None:
            obj = decode(event.value, event.revision)
            if not self.inert(obj):
                self._put(key, obj)
                return
        group = self.by_place.get((key.cluster, key.namespace), {})
        group.pop(key.name, None)
        if not group:
            self.by_place.pop((key.cluster, key.namespace), None)

    def _put(self, key: ObjectKey, obj: Object) -> None:
        # Every workspace has a few, and nobody asks here who wrote which field.
        obj["metadata"].pop("managedFields", None)
        self.by_place.setdefault((key.cluster, key.namespace), {})[key.name] = obj

    async def find(
        self, store: Store, cluster: str, name: str, namespace: str = ""
    ) -> Object | None:
        """Return one of the objects, from *store* where another server may just have made it."""
        known = self.within(cluster, namespace).get(name)
        if known is not None:
            return known
        key = ObjectKey(self.group, self.resource, cluster, namespace, name)
        entry = await store.get(key.path())
        return None if entry is None else decode(entry.value, entry.revision)

    def within(self, cluster: str, namespace: str = "") -> Mapping[str, Object]:
        """Return the objects there, by name."""
        return self.by_place.get((cluster, namespace), _NONE)
