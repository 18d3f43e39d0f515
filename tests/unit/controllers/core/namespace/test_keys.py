"""A terminating namespace is enqueued when it reaches another stage, not by its own status."""

from __future__ import annotations

from typing import Any

from skerry.api.objects import Object
from skerry.controllers.core.namespace.keys import enqueue_on_changes
from skerry.runtime.index import Key


def namespace(deleted: str = "t", *finalizers: str, **fields: Any) -> Object:
    metadata: Object = {"name": "shop"}
    if deleted:
        metadata["deletionTimestamp"] = deleted
    return {"metadata": metadata, "spec": {"finalizers": list(finalizers)}, **fields}


def added(old: Object | None, new: Object | None) -> list[Key]:
    found: list[Key] = []
    enqueue_on_changes(found.append)(old, new)
    return found


def test_only_terminating_namespaces_are_enqueued() -> None:
    assert added(None, namespace("")) == []
    assert added(namespace(), None) == []
    assert added(None, namespace()) == [Key("", "", "shop")]
    assert added(namespace(""), namespace()) == [Key("", "", "shop")]


def test_finalizers_count_and_our_own_status_does_not() -> None:
    before = namespace("t", "kubernetes")
    assert added(before, namespace("t")) == [Key("", "", "shop")]
    assert added(before, {**before, "status": {"phase": "Terminating"}}) == []
