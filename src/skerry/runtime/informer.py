"""A cache that follows the server, and tells of every change exactly once.

Handlers are plain functions ``(old, new)``: ``old`` None means added, ``new`` None deleted, in
which case ``old`` is the last state known. They are called on the loop, in order, and must not
wait: they add keys to a queue. A handler added late is notified of everything present, as added.

What handlers see is a history without gaps or repeats, whatever the wire did: a relist is turned
into the differences, an event already seen is dropped, and an object that was deleted and made
anew behind our back is reported as a deletion and an addition, because it is another object.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object, revision_of
from skerry.kit.ids import IdSource
from skerry.kit.invariant import invariant
from skerry.kit.signal import Signal
from skerry.runtime.answers import EventKind
from skerry.runtime.client import EVERYTHING, Client, Selection
from skerry.runtime.index import Index, Key, key_of
from skerry.runtime.metrics import RuntimeMetrics
from skerry.runtime.reflector import Reflector
from skerry.runtime.watching import WatchSource

Handler = Callable[[Object | None, Object | None], None]
Transform = Callable[[Object], Object]
Keeps = Callable[[Object], bool]
"""Whether an object, in the form it is kept in, is kept at all."""

_Form = tuple[GroupVersionResource, Selection, Transform | None, Keeps | None, bool, bool]

# Others get the loop after this many objects of a first list.
_CHUNK = 200


class Informer:
    """One resource type, cached."""

    def __init__(
        self,
        client: Client,
        gvr: GroupVersionResource,
        *,
        ids: IdSource,
        selection: Selection = EVERYTHING,
        transform: Transform | None = None,
        keeps: Keeps | None = None,
        index: Index | None = None,
        metrics: RuntimeMetrics | None = None,
        source: WatchSource | None = None,
        compact: bool = False,
    ) -> None:
        """What *keeps* declines is as if it were not there; handlers never hear of it.

        *compact* lets the source tell differences only, where it can. It is for objects of one
        cluster whose *transform* takes away the cluster's name, and nothing else that ever
        changes, and all of which are kept.
        """
        invariant(not (compact and keeps), "a compact informer keeps all objects")
        self.gvr = gvr
        self._keeps = keeps
        self.index = Index() if index is None else index
        self.synced = asyncio.Event()
        # Sent once: the first state is in the cache, and every handler has been notified of it.
        self.completed = Signal[[]]()
        self._handlers: list[Handler] = []
        counted = metrics or RuntimeMetrics()
        self._cached = counted.cached.labels(str(gvr.group_resource))
        self._reflector = Reflector(
            client,
            gvr,
            self,
            transform or _whole,
            ids=ids,
            selection=selection,
            metrics=counted,
            source=source,
            held=self._held if compact else None,
        )

    @property
    def resource_version(self) -> str:
        """How far the server's history has been read."""
        return self._reflector.resource_version

    @property
    def following_since(self) -> float | None:
        """Since when, in monotonic seconds, changes are seen as they happen; None: they are not.

        Those of before come in right afterwards.
        """
        return self._reflector.following_since

    def add_handler(self, handler: Handler) -> None:
        """Tell *handler* of everything present and of every change from now on."""
        self._handlers.append(handler)
        for obj in list(self.index.objects()):
            handler(None, obj)

    def remove_handler(self, handler: Handler) -> None:
        self._handlers.remove(handler)

    async def wait_synced(self) -> None:
        """Wait until the first state is in the cache and every handler has been notified of it."""
        await self.synced.wait()

    async def run(self) -> None:
        """Follow the server until cancelled."""
        await self._reflector.run()

    # What the reflector calls.

    async def replace(self, items: Sequence[Object]) -> None:
        present: set[Key] = set()
        for count, item in enumerate(items, 1):
            present.add(self._put(item))
            if count % _CHUNK == 0:
                await asyncio.sleep(0)
        for key in [key for key in self.index if key not in present]:
            self._notify(self.index.remove(key), None)
        self._cached.set(len(self.index))
        if not self.synced.is_set():
            self.synced.set()
            self.completed.send()

    def apply(self, kind: EventKind, item: Object) -> None:
        if kind == "DELETED":
            self._remove(item)
        else:
            self._put(item)
        self._cached.set(len(self.index))

    def _held(self, namespace: str, name: str) -> Object | None:
        return self.index.get(Key("", namespace, name))

    def _put(self, obj: Object) -> Key:
        key = key_of(obj)
        old = self.index.get(key)
        if self._keeps is not None and not self._keeps(obj):
            if old is not None and not _older(obj, old):
                self.index.remove(key)
                self._notify(old, None)
        elif old is None:
            self.index.put(key, obj)
            self._notify(None, obj)
        elif _uid(old) != _uid(obj):
            if not _older(obj, old):
                self.index.remove(key)
                self._notify(old, None)
                self.index.put(key, obj)
                self._notify(None, obj)
        elif _version(old) != _version(obj) and not _older(obj, old):
            self.index.put(key, obj)
            self._notify(old, obj)
        return key

    def _remove(self, last: Object) -> None:
        key = key_of(last)
        old = self.index.get(key)
        if old is None or _older(last, old):
            return
        self.index.remove(key)
        # The final state, unless it is a namesake's.
        self._notify(last if _uid(last) == _uid(old) else old, None)

    def _notify(self, old: Object | None, new: Object | None) -> None:
        for handler in self._handlers:
            handler(old, new)


class InformerFactory:
    """Shares informers: one per type and selection, whoever asks."""

    def __init__(
        self,
        client: Client,
        *,
        ids: IdSource,
        metrics: RuntimeMetrics | None = None,
        mutation_check: bool = False,
        source: WatchSource | None = None,
    ) -> None:
        """*source* is where all watches come from; ordinary requests unless given."""
        self.source = source
        self.client = client
        self.ids = ids
        self.metrics = metrics or RuntimeMetrics()
        self._mutation_check = mutation_check
        self._informers: dict[_Form, Informer] = {}
        self._running: dict[_Form, asyncio.Task[None]] = {}
        self._tasks: asyncio.TaskGroup | None = None

    def informer(
        self,
        gvr: GroupVersionResource,
        selection: Selection = EVERYTHING,
        *,
        transform: Transform | None = None,
        keeps: Keeps | None = None,
        packed: bool = False,
        compact: bool = False,
    ) -> Informer:
        """Return the informer of a type, shared by all who ask for the same in the same form.

        One asked for while the factory runs starts at once.
        """
        key = (gvr, selection, transform, keeps, packed, compact)
        informer = self._informers.get(key)
        if informer is None:
            informer = self._informers[key] = Informer(
                self.client,
                gvr,
                ids=self.ids,
                selection=selection,
                transform=transform,
                keeps=keeps,
                index=Index(packed=packed, mutation_check=self._mutation_check),
                metrics=self.metrics,
                source=self.source,
                compact=compact,
            )
            self._start(key)
        return informer

    def stop(self, informer: Informer) -> None:
        """Follow a type no longer; what its informer holds stays readable to those who have it."""
        for form in [form for form, known in self._informers.items() if known is informer]:
            del self._informers[form]
            task = self._running.pop(form, None)
            if task is not None:
                task.cancel()

    async def wait_synced(self) -> None:
        """Wait until every informer known now has its first state."""
        for informer in list(self._informers.values()):
            await informer.wait_synced()

    def check_unchanged(self) -> None:
        """Raise when a cached object was changed; needs the mutation check."""
        for informer in self._informers.values():
            informer.index.check_unchanged()

    async def run(self) -> None:
        """Run every informer, present and future, until cancelled."""
        invariant(self._tasks is None, "an informer factory runs once")
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                for key in self._informers:
                    self._start(key)
                await asyncio.Event().wait()
        finally:
            self._tasks = None

    def _start(self, key: _Form) -> None:
        if self._tasks is not None:
            self._running[key] = self._tasks.create_task(self._informers[key].run())


def without_managed_fields(obj: Object) -> Object:
    """Transform for whoever does not ask who wrote which field: that is often half of an object.

    It may be written back: a write that says nothing of managedFields leaves them to the server.
    """
    obj["metadata"].pop("managedFields", None)
    return obj


def enqueue_present(add: Callable[[Key], None]) -> Handler:
    """Return the handler that adds the key of every object that is new or has changed."""

    def handle(_: Object | None, new: Object | None) -> None:
        if new is not None:
            add(key_of(new))

    return handle


def _whole(obj: Object) -> Object:
    return obj


def _uid(obj: Object) -> Any:
    return obj["metadata"].get("uid")


def _version(obj: Object) -> str:
    return str(obj["metadata"].get("resourceVersion", ""))


def _older(obj: Object, than: Object) -> bool:
    """Tell whether *obj* is surely from an earlier time.

    Revisions are opaque by the letter but numbers at every server there is; where they are not,
    nothing is surely older and order of arrival decides.
    """
    one, other = revision_of(_version(obj)), revision_of(_version(than))
    return 0 < one < other
