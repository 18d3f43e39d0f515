"""A claim is looked at when it or its volume changes; a volume has a key without a namespace."""

from __future__ import annotations

from collections.abc import Callable

from skerry.api.objects import Object
from skerry.controllers.workload.events import enqueue_self
from skerry.runtime.index import Key, key_of
from skerry.runtime.informer import Handler, Informer
from skerry.runtime.workqueue import WorkQueue


def connect(queue: WorkQueue[Key], claims: Informer, volumes: Informer, classes: Informer) -> None:
    """Enqueue what depends on events of the three types."""
    claims.add_handler(enqueue_self(queue.add))
    claims.add_handler(_enqueue_volume(queue.add))
    volumes.add_handler(_enqueue_claim(claims, queue.add))
    classes.add_handler(_enqueue_on_class(claims, queue.add))


def _enqueue_volume(add: Callable[[Key], None]) -> Handler:
    def handle(old: Object | None, new: Object | None) -> None:
        obj = new or old
        if obj is not None and obj["spec"].get("volumeName"):
            add(Key(key_of(obj).cluster, "", obj["spec"]["volumeName"]))

    return handle


def _enqueue_claim(claims: Informer, add: Callable[[Key], None]) -> Handler:
    def handle(old: Object | None, new: Object | None) -> None:
        obj = new or old
        if obj is None:
            return
        key = key_of(obj)
        add(key)
        reference = obj["spec"].get("claimRef")
        if reference:
            add(Key(key.cluster, reference.get("namespace", ""), reference["name"]))
        else:
            _enqueue_pending(claims, add)

    return handle


def _enqueue_on_class(claims: Informer, add: Callable[[Key], None]) -> Handler:
    def handle(old: Object | None, new: Object | None) -> None:
        _enqueue_pending(claims, add)

    return handle


def _enqueue_pending(claims: Informer, add: Callable[[Key], None]) -> None:
    for claim in claims.index.objects():
        if (claim.get("status") or {}).get("phase") != "Bound":
            add(key_of(claim))
