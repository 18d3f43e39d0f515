"""Objects live in namespaces that are there and not being deleted."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from skerry.api.errors import Forbidden, NotFound
from skerry.server.admission.namespaces import IMMORTAL, NamespaceLifecycle
from skerry.server.admission.operation import Operation
from skerry.server.observed import ObservedObjects
from skerry.store.memory import MemoryStore
from tests.kit.machinery.objects import named, resource
from tests.kit.server.calls import call_of


async def admit(
    kind: str,
    verb: Literal["CREATE", "UPDATE", "DELETE"] = "CREATE",
    *,
    namespace: str = "n",
    name: str = "x",
    group: str = "",
) -> None:
    known = ObservedObjects("", "namespaces")
    known.by_place["root", ""] = {
        "n": {"metadata": {"name": "n"}},
        "ending": {"metadata": {"name": "ending", "deletionTimestamp": "now"}},
    }
    store, found = MemoryStore("test"), resource(kind, group)
    obj: Any = named(found)
    obj["metadata"]["name"] = name
    call = call_of(found, cluster="root", namespace=namespace)
    try:
        await NamespaceLifecycle(store, known).admit(Operation(call, verb, obj))
    finally:
        await store.close()


async def test_what_is_created_in_a_live_namespace_passes() -> None:
    await admit("configmaps")
    await admit("nodes", namespace="")


async def test_a_namespace_that_is_not_there_is_missed() -> None:
    with pytest.raises(NotFound, match='namespaces "gone" not found'):
        await admit("configmaps", namespace="gone")


async def test_nothing_new_comes_into_one_that_is_being_deleted() -> None:
    with pytest.raises(Forbidden, match="because it is being terminated") as refused:
        await admit("configmaps", namespace="ending")
    (cause,) = refused.value.details["causes"]
    assert cause["reason"] == "NamespaceTerminating"
    await admit("configmaps", "UPDATE", namespace="ending")
    await admit("configmaps", "DELETE", namespace="ending")


async def test_reviews_are_asked_where_nothing_is_stored() -> None:
    await admit("localsubjectaccessreviews", namespace="gone", group="authorization.k8s.io")


@pytest.mark.parametrize("name", sorted(IMMORTAL))
async def test_some_namespaces_stay_whoever_asks(name: str) -> None:
    with pytest.raises(Forbidden, match="this namespace may not be deleted"):
        await admit("namespaces", "DELETE", name=name)
    await admit("namespaces", "UPDATE", name=name)
    await admit("namespaces", "DELETE", name="mine")
