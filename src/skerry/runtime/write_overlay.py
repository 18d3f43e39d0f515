"""Read your writes: a cache, corrected by what was written and has not come back yet.

A cache is behind by the time an event takes. A controller that looks again before its own write
has come back sees a state that it has changed already: it loses a Conflict for it, or makes
under a fresh name what it has made before. An overlay keeps the answers to writes, and shows
them in place of what the cache has, for exactly as long as the cache is behind them:

* An **answer** says at which resourceVersion the server has the object. It counts while the
  cache has read the server's history less far than that, and never again.
* A **deletion** that is final is answered without a version. It counts while the cache still
  shows the object of that uid: a namesake that somebody made since is another object.
* A write **without an answer** (no connection, a server's own failure) may have happened or not.
  What the cache has goes on to count, and ``unresolved`` names the key for those who cannot live
  with that: they read the object itself and say what they found. So a write that failed is
  forgotten by itself, and no timeout is needed as with counted expectations.

So what ``get`` returns is the state at the later of two moments: the one that the cache has read
up to, and that of the last answer. Reading changes nothing; ``sweep``, which every write calls,
drops entries that no longer count, so an overlay is as large as the writes that are under way.

An event may come before the answer to the write that caused it. ``take_echo`` knows both orders,
for controllers that need not look again at what they just did.

Versions that are no numbers cannot be compared: of such servers nothing is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

from skerry.api.errors import ApiError, Forbidden, NotFound
from skerry.api.objects import Object, revision_of
from skerry.logic.machinery.plan import (
    Action,
    Apply,
    Create,
    Delete,
    DeleteCollection,
    Patch,
    Record,
    Update,
)
from skerry.runtime.client import Client
from skerry.runtime.execute import Outcome
from skerry.runtime.index import Key, key_of
from skerry.runtime.informer import Informer

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class _Answer(NamedTuple, Generic[V]):
    """The state of an object at a revision that the cache may not have read up to."""

    revision: int
    value: V


class _Deletion(NamedTuple):
    """The end of the object with this uid, which was known at *revision* at the latest."""

    revision: int
    uid: str


class WriteOverlay(Generic[K, V]):
    """What was written, by key, until a cache has it. Values have the form of the cache's."""

    def __init__(
        self,
        cached: Callable[[K], V | None],
        read_to: Callable[[], object],
        *,
        uid_of: Callable[[V], str],
        groups_of: Callable[[V], Iterable[Hashable]] = lambda _: (),
        fingerprint_of: Callable[[V], Hashable] | None = None,
    ) -> None:
        """*read_to* returns the resourceVersion up to which the cache has read.

        *groups_of* says under what values are asked for; equal fingerprints make an event that
        overtakes an answer ours.
        """
        self._cached = cached
        self._read_to = read_to
        self._uid_of = uid_of
        self._groups_of = groups_of
        self._fingerprint_of = fingerprint_of
        # In the order of writing, so that those which no longer count are in front.
        self._entries: dict[K, _Answer[V] | _Deletion] = {}
        self._groups: dict[Hashable, dict[K, None]] = {}
        self._in_flight: dict[K, V | None] = {}
        self._unresolved: dict[K, None] = {}

    def __len__(self) -> int:
        """How many writes are kept, answered or not."""
        return len(self._entries) + len(self._in_flight) + len(self._unresolved)

    # -- around a write ----------------------------------------------------------------------

    def begin(self, key: K, sent: V | None = None) -> None:
        """Say that a write is about to be sent; *sent* is the state that it asks for, if known."""
        self._in_flight[key] = sent

    def written(self, key: K, resource_version: object, value: V) -> None:
        """Take the server's answer: at this version the object is *value*."""
        self._ended(key)
        revision = revision_of(resource_version)
        entry = self._entries.get(key)
        if revision > revision_of(self._read_to()) and (entry is None or revision > entry.revision):
            self._enter(key, _Answer(revision, value))
        self.sweep()

    def deleted(self, key: K, uid: str) -> None:
        """Take the server's word that the object with this uid is no more."""
        self._ended(key)
        entry = self._entries.get(key)
        known = entry.revision if entry is not None else 0
        self._enter(key, _Deletion(known, uid))
        self.sweep()

    def failed(self, key: K) -> None:
        """Take the server's word that nothing was written."""
        self._ended(key)

    def lost(self, key: K, *, unconditional: bool = False) -> None:
        """Say that no answer came: the write may have happened or not.

        Of an object that is known the next write will tell, by a Conflict; one that nobody has
        seen yet has to be asked for, and so has one whose writes are *unconditional*.
        """
        self._in_flight.pop(key, None)
        if unconditional or self.get(key) is None:
            self._unresolved[key] = None

    # -- reading -----------------------------------------------------------------------------

    def get(self, key: K) -> V | None:
        """Return the newest state known: the answer to our write, or what the cache has."""
        entry = self._entries.get(key)
        cached = self._cached(key)
        if entry is None or self._is_over(entry, cached):
            return cached
        return entry.value if isinstance(entry, _Answer) else None

    def keys(self, group: Hashable) -> list[K]:
        """Return the keys of answers that still count and belong to *group*, oldest first.

        The cache may have them as well, under this group or another.
        """
        members = self._groups.get(group, ())
        return [key for key in members if not self._is_over(self._entries[key], None)]

    def touched(self) -> bool:
        """Tell whether the cache may need correction at all."""
        return bool(self._entries)

    def unresolved(self) -> list[K]:
        """Return the keys of objects that may have been written, though no answer says so."""
        return list(self._unresolved)

    # -- events ------------------------------------------------------------------------------

    def take_echo(self, key: K, resource_version: object, value: V) -> bool:
        """Tell whether an event of the cache is of our own write, or from before it.

        One that overtakes its answer is known by its fingerprint, once: should the next look the
        same, it is somebody else's.
        """
        sent, fingerprint_of = self._in_flight.get(key), self._fingerprint_of
        if (
            sent is not None
            and fingerprint_of is not None
            and fingerprint_of(sent) == fingerprint_of(value)
        ):
            self._in_flight[key] = None
            return True
        entry = self._entries.get(key)
        return isinstance(entry, _Answer) and revision_of(resource_version) <= entry.revision

    # -- keeping entries ---------------------------------------------------------------------

    def _is_over(self, entry: _Answer[V] | _Deletion, cached: V | None) -> bool:
        """Tell whether the cache has what *entry* says."""
        if revision_of(self._read_to()) < entry.revision:
            return False
        return isinstance(entry, _Answer) or cached is None or self._uid_of(cached) != entry.uid

    def _ended(self, key: K) -> None:
        self._in_flight.pop(key, None)
        self._unresolved.pop(key, None)

    def _enter(self, key: K, entry: _Answer[V] | _Deletion) -> None:
        self._drop(key)
        self._entries[key] = entry
        if isinstance(entry, _Answer):
            for group in self._groups_of(entry.value):
                self._groups.setdefault(group, {})[key] = None

    def _drop(self, key: K) -> None:
        entry = self._entries.pop(key, None)
        if isinstance(entry, _Answer):
            for group in self._groups_of(entry.value):
                members = self._groups[group]
                members.pop(key, None)
                if not members:
                    del self._groups[group]

    def sweep(self) -> None:
        """Drop entries that are over; those behind one that is not wait for it."""
        while self._entries:
            key, entry = next(iter(self._entries.items()))
            if not self._is_over(entry, self._cached(key)):
                return
            self._drop(key)


# Subresources whose answer is the object itself.
_WHOLE = ("", "status")

# From the content of an object and its state as the server has it, which may be metadata only.
Projection = Callable[[Object, Object], Object]


def _answer_as_it_is(_: Object, answer: Object) -> Object:
    return answer


class InformerOverlay:
    """An informer's cache with the writes of an ``Executor`` on top; reads like its index.

    Handed to the executor, it learns of every write to its type. A key's plans must not run side
    by side with observing it, which a work queue promises.
    """

    def __init__(
        self,
        informer: Informer,
        *,
        project: Projection = _answer_as_it_is,
        fingerprint_of: Callable[[Object], Hashable] | None = None,
    ) -> None:
        """*project* brings what was sent and answered into the form that the informer keeps."""
        self.gvr = informer.gvr
        self._index = informer.index
        self._project = project
        self._writes: WriteOverlay[Key, Object] = WriteOverlay(
            informer.index.get,
            lambda: informer.resource_version,
            uid_of=_uid,
            groups_of=informer.index.entries,
            fingerprint_of=fingerprint_of,
        )

    # -- what the executor calls -------------------------------------------------------------

    def begin(self, action: Action) -> None:
        """Learn that *action* is about to be sent."""
        key = self._key(action)
        if key is None:
            return
        sent = _content(action)
        self._writes.begin(key, None if sent is None else self._project(sent, sent))

    def done(self, outcome: Outcome) -> None:
        """Learn what came of an action."""
        action, answer = outcome.action, outcome.object
        key = self._key(action)
        if key is None:
            return
        removed = outcome.result != "kept" and not _is_being_deleted(answer)
        if isinstance(action, Delete) and removed:
            self._deleted(key, action)
        elif answer is None:
            self._writes.failed(key)
        else:
            self._written(key, _content(action) or answer, answer)

    def failed(self, action: Action, error: BaseException) -> None:
        """Learn that an action failed; whether it had an effect, not every error says."""
        key = self._key(action)
        if key is None:
            return
        if isinstance(error, ApiError) and error.code < 500:
            self._writes.failed(key)
        else:
            # A patch names no version: the next one would overwrite what this one did, unseen.
            self._writes.lost(key, unconditional=isinstance(action, Apply | Patch))

    # -- what observers call -----------------------------------------------------------------

    def get(self, key: Key) -> Object | None:
        """Return the newest state known of the object at *key*; shared, read-only."""
        return self._writes.get(key)

    def by(self, name: str, value: Hashable) -> list[Object]:
        """Return the objects that the index *name* would hold for *value*, had it come back."""
        cached = self._index.by(name, value)
        if not self._writes.touched():
            return cached
        return list(self._corrected(name, value, cached))

    def _corrected(self, name: str, value: Hashable, cached: list[Object]) -> Iterator[Object]:
        keys = [key_of(obj) for obj in cached]
        written = self._writes.keys((name, value))
        for key in dict.fromkeys((*keys, *written)):
            obj = self._writes.get(key)
            if obj is not None and (name, value) in self._index.entries(obj):
                yield obj

    async def resolve(self, client: Client) -> None:
        """Read what may have been written though no answer said so. Call it before reading."""
        for key in self._writes.unresolved():
            await self.read(client, key)
        self._writes.sweep()

    async def read(self, client: Client, key: Key) -> None:
        """Read the object at *key* itself, for those who know that the cache is behind.

        What may not be read any more, as in a workspace that has gone, is left to the cache: asked
        for again and again, it would keep everybody else from reading.
        """
        try:
            live = await client.for_cluster(key.cluster).get(self.gvr, key.name, key.namespace)
        except (Forbidden, NotFound):
            self._writes.failed(key)
        else:
            self._written(key, live, live)

    def take_echo(self, new: Object) -> bool:
        """Tell whether an event that brings *new* is of our own write, or from before it."""
        version = new["metadata"].get("resourceVersion")
        return self._writes.take_echo(key_of(new), version, new)

    def _key(self, action: Action) -> Key | None:
        if isinstance(action, DeleteCollection | Record) or action.target.gvr != self.gvr:
            return None
        if not isinstance(action, Delete) and action.subresource not in _WHOLE:
            return None
        return Key(action.target.cluster, action.target.namespace, action.target.name)

    def _written(self, key: Key, content: Object, answer: Object) -> None:
        version = answer["metadata"].get("resourceVersion")
        self._writes.written(key, version, self._project(content, answer))

    def _deleted(self, key: Key, action: Delete) -> None:
        known = self._writes.get(key)
        uid = action.uid or (_uid(known) if known is not None else "")
        if uid:
            self._writes.deleted(key, uid)
        else:
            self._writes.failed(key)


class InformerOverlays:
    """Several overlays for one ``Executor``: each takes the writes to its own type."""

    def __init__(self, *overlays: InformerOverlay) -> None:
        self._overlays = overlays

    def begin(self, action: Action) -> None:
        for each in self._overlays:
            each.begin(action)

    def done(self, outcome: Outcome) -> None:
        for each in self._overlays:
            each.done(outcome)

    def failed(self, action: Action, error: BaseException) -> None:
        for each in self._overlays:
            each.failed(action, error)


def _content(action: Action) -> Object | None:
    """Return the object that *action* wants to have."""
    if isinstance(action, Create | Update) and not action.subresource:
        return action.object
    return None


def _uid(obj: Object) -> str:
    return str(obj["metadata"].get("uid", ""))


def _is_being_deleted(answer: Object | None) -> bool:
    """Tell whether an answer to a deletion is an object that still waits for somebody.

    Some servers answer a deletion that is final with a Status, some with the object as it was at
    its end, which nothing keeps: no finalizer (a Namespace has them in its spec), no grace.
    """
    metadata = (answer or {}).get("metadata") or {}
    if answer is None or "deletionTimestamp" not in metadata:
        return False
    finalizers = metadata.get("finalizers") or (answer.get("spec") or {}).get("finalizers")
    return bool(finalizers or metadata.get("deletionGracePeriodSeconds"))
