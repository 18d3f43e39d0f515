"""A quota is charged in the write that uses it, on condition that nobody else charged it."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.errors import Forbidden
from skerry.api.keys import ObjectKey
from skerry.api.objects import Object
from skerry.logic.machinery.quota import CLUSTER_QUOTAS
from skerry.server.admission.operation import Operation, Verb
from skerry.server.admission.quota import QuotaAdmission
from skerry.server.codec import decode, encode
from skerry.server.observed import ObservedObjects
from skerry.server.watch.dispatcher import Dispatcher
from skerry.store.base import Conflict, Write
from skerry.store.memory import MemoryStore
from tests.kit.machinery.objects import resource
from tests.kit.server.calls import call_of
from tests.kit.server.clock import HandClock


def quota(name: str, used: str = "0", hard: str = "2", **metadata: Any) -> Object:
    count = "count/configmaps"
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": name, **metadata},
        "spec": {"hard": {count: hard}},
        "status": {"hard": {count: hard}, "used": {count: used}},
    }


def key(name: str, cluster: str = "root", namespace: str = "default") -> str:
    return ObjectKey("", "resourcequotas", cluster, namespace, name).path()


class Place:
    """A store with quotas, and the rule over it."""

    def __init__(self, store: MemoryStore, quotas: ObservedObjects, *, wide: bool) -> None:
        self.store = store
        self._rule = QuotaAdmission(store, quotas, HandClock(), cluster_quotas=wide)

    async def admit(
        self,
        verb: Verb = "CREATE",
        kind: str = "configmaps",
        *,
        old: Object | None = None,
        namespace: str = "default",
        **more: Any,
    ) -> list[Write]:
        call = call_of(resource(kind), cluster="root", namespace=namespace)
        operation = Operation(call, verb, {"metadata": {"name": "x"}}, old, **more)
        await self._rule.admit(operation)
        return operation.writes


async def place(*writes: tuple[str, Object], wide: bool = False) -> Place:
    store, quotas = MemoryStore("test"), ObservedObjects("", "resourcequotas")
    for path, obj in writes:
        await store.commit([Write(path, encode(obj))])
    dispatcher = Dispatcher(store)
    await dispatcher.start()
    await quotas.follow(store, dispatcher)
    return Place(store, quotas, wide=wide)


def used(write: Write) -> str:
    assert write.value is not None
    return str(decode(write.value, 1)["status"]["used"]["count/configmaps"])


async def test_a_create_charges_every_quota_of_its_namespace_and_no_other() -> None:
    found = await place(
        (key("a"), quota("a")),
        (key("b"), quota("b", used="1")),
        (key("c", namespace="other"), quota("c")),
        (key("d", cluster="away"), quota("d")),
    )
    writes = await found.admit()
    assert [(write.key, used(write)) for write in writes] == [(key("a"), "1"), (key("b"), "2")]
    stored = [await found.store.get(write.key) for write in writes]
    assert [write.expected for write in writes] == [entry.revision for entry in stored if entry]


async def test_of_two_that_race_for_the_last_place_one_finds_the_quota_changed() -> None:
    found = await place((key("a"), quota("a", used="1")))
    first, second = await found.admit(), await found.admit()
    await found.store.commit(first)
    with pytest.raises(Conflict):
        await found.store.commit(second)
    with pytest.raises(Forbidden, match="exceeded quota: a"):
        await found.admit()


async def test_a_full_quota_refuses_with_403() -> None:
    found = await place((key("a"), quota("a", used="2")))
    with pytest.raises(Forbidden, match='"x" is forbidden: exceeded quota: a'):
        await found.admit()


@pytest.mark.parametrize(
    "options",
    [
        {"verb": "DELETE"},
        {"subresource": "status"},
        {"kind": "events"},
        {"kind": "resourcequotas"},
        {"kind": "secrets"},
        {"verb": "UPDATE", "old": {"metadata": {"name": "x"}}},
    ],
)
async def test_what_uses_nothing_passes_a_full_quota_and_charges_nothing(options: Any) -> None:
    found = await place((key("a"), quota("a", used="2")))
    assert await found.admit(**options) == []


async def test_a_trial_is_judged_and_not_charged() -> None:
    found = await place((key("a"), quota("a", used="1")), (key("b"), quota("b")))
    assert await found.admit(dry_run=True) == []
    full = await place((key("a"), quota("a", used="2")))
    with pytest.raises(Forbidden):
        await full.admit(dry_run=True)


async def test_a_quota_of_the_whole_cluster_counts_whatever_the_namespace() -> None:
    notes = {"experimental.quota.kcp.io/cluster-scoped": "true"}
    everywhere = quota("all", namespace=CLUSTER_QUOTAS, annotations=notes)
    stored = (key("all", namespace=CLUSTER_QUOTAS), everywhere)
    found = await place(stored, wide=True)
    for namespace in ("default", "other"):
        assert [write.key for write in await found.admit(namespace=namespace)] == [stored[0]]
    plain = await place(stored)
    assert await plain.admit(namespace="other") == []


async def test_a_quota_that_has_just_gone_is_not_charged() -> None:
    found = await place((key("a"), quota("a", used="2")))
    await found.store.commit([Write(key("a"), None)])
    assert await found.admit() == []
