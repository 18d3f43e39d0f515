"""Which events enqueue which owner; shared by every controller of sets of pods."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Protocol

from skerry.api.objects import Object
from skerry.logic.machinery.selectors import Selector
from skerry.logic.workloads.owners import controller_of
from skerry.runtime.index import Key, key_of
from skerry.runtime.informer import Handler, Informer

OWNER_UID = "owner-uid"
ORPHANS = "orphans-by-namespace"


def by_owner(obj: Object) -> Iterable[Hashable]:
    """Index under the uid of the controlling owner."""
    reference = controller_of(obj)
    return () if reference is None else (reference["uid"],)


def orphans(obj: Object) -> Iterable[Hashable]:
    """Index objects without a controlling owner under their namespace."""
    key = key_of(obj)
    return ((key.cluster, key.namespace),) if controller_of(obj) is None else ()


def index_owned(informer: Informer) -> None:
    """Let *informer* be asked for the objects of one owner, and for those of none."""
    informer.index.add_index(OWNER_UID, by_owner)
    informer.index.add_index(ORPHANS, orphans)


class Lister(Protocol):
    """An index, or one with what was just written on top."""

    def by(self, name: str, value: Hashable) -> list[Object]:
        """Return the objects an index holds for *value*."""
        ...


def candidates(lister: Lister, owner: Object) -> list[Object]:
    """Return what *owner* owns, and what nobody owns in its namespace."""
    key = key_of(owner)
    return [
        *lister.by(OWNER_UID, owner["metadata"]["uid"]),
        *lister.by(ORPHANS, (key.cluster, key.namespace)),
    ]


def enqueue_self(add: Callable[[Key], None]) -> Handler:
    """Enqueue an object on its own changes."""

    def handle(old: Object | None, new: Object | None) -> None:
        add(key_of(new or old or {}))

    return handle


def selector_of(owner: Object) -> Selector:
    """Return what a set selects its pods by, where it has a label selector."""
    return Selector.from_label_selector(owner["spec"].get("selector"))


def enqueue_owner(
    kind: str,
    owners: Informer,
    add: Callable[[Key], None],
    select: Callable[[Object], Selector] = selector_of,
) -> Handler:
    """Enqueue owners of *kind* on changes of what they own; *select* is what they select by.

    An orphan enqueues every owner of its namespace whose selector it matches: one may take
    it up.
    """

    def handle(old: Object | None, new: Object | None) -> None:
        for obj in (old, new):
            if obj is None:
                continue
            reference = controller_of(obj)
            key = key_of(obj)
            if reference is not None:
                if reference.get("kind") == kind:
                    add(Key(key.cluster, key.namespace, reference["name"]))
            elif obj is new and (obj["metadata"].get("labels") or {}):
                _enqueue_matching(owners, obj, add, select)

    return handle


def _enqueue_matching(
    owners: Informer,
    obj: Object,
    add: Callable[[Key], None],
    select: Callable[[Object], Selector],
) -> None:
    place = key_of(obj)
    for owner in owners.index.objects():
        key = key_of(owner)
        if (key.cluster, key.namespace) != (place.cluster, place.namespace):
            continue
        selector = select(owner)
        if not selector.empty and selector.matches(obj["metadata"].get("labels")):
            add(key)
