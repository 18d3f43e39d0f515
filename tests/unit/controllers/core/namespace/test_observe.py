"""What a terminating namespace still holds is read live, and what cannot be read is named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import orjson

from skerry.api.errors import Forbidden, NotFound, ServiceUnavailable
from skerry.api.kinds import GroupVersionResource
from skerry.controllers.core.namespace.observe import Observed, Observer
from skerry.runtime.client import Client
from skerry.runtime.index import Key
from skerry.runtime.transport import NO_HEADERS, Answer
from tests.kit.caches import cache
from tests.kit.sim.twin import Place, Twin

NAMESPACES = GroupVersionResource("", "v1", "namespaces")
KEY = Key("", "", "shop")


def terminating(uid: str = "u", finalizers: tuple[str, ...] = ("kubernetes",)) -> dict[str, Any]:
    metadata = {"name": "shop", "uid": uid, "deletionTimestamp": "2030-01-01T00:00:00Z"}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {**metadata, "resourceVersion": "1"},
        "spec": {"finalizers": list(finalizers)},
    }


class Hub(Twin):
    """A server with one namespace, whose lists can be made to fail by resource."""

    def __init__(self, namespace: dict[str, Any] | None) -> None:
        super().__init__()
        self.broken: dict[str, Any] = {}
        if namespace is not None:
            self.objects[Place("", "namespaces", "", "", "shop")] = namespace

    def add(self, resource: str, name: str, group: str = "", **metadata: Any) -> None:
        place = Place(group, resource, "", "shop", name)
        base = {"name": name, "namespace": "shop", "uid": f"u-{name}", "resourceVersion": "1"}
        self.objects[place] = {"metadata": {**base, **metadata}}

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        error = self.broken.get(path.rsplit("/", 1)[-1])
        if error is not None:
            return Answer(error.code, {}, orjson.dumps(error.status()))
        return await super().request(method, path, query, headers, body)

    async def observe(self, cached: dict[str, Any] | None = None) -> Observed | None:
        namespaces = cache(NAMESPACES, *([cached] if cached is not None else []))
        return await Observer(Client(self), namespaces).observe(KEY)


async def test_a_namespace_that_stays_is_not_looked_into() -> None:
    staying = terminating()
    del staying["metadata"]["deletionTimestamp"]
    hub = Hub(staying)
    assert await hub.observe(staying) is None
    assert await hub.observe(None) is None
    assert hub.requests == []


async def test_a_namespace_that_is_gone_or_another_by_now_is_left_alone() -> None:
    """The cache lags; to delete the content of a namespace made anew would be wrong."""
    assert await Hub(None).observe(terminating()) is None
    assert await Hub(terminating("another")).observe(terminating()) is None


async def test_a_namespace_we_have_let_go_of_is_no_longer_ours() -> None:
    let_go = terminating(finalizers=("example.com/other",))
    assert await Hub(let_go).observe(terminating()) is None


async def test_content_is_counted_by_type_with_what_holds_it() -> None:
    hub = Hub(terminating())
    hub.add("pods", "a", finalizers=["x/one", "x/two"])
    gone = {"deletionTimestamp": "2030-01-01T00:00:00Z"}
    hub.add("pods", "b", finalizers=["x/one"], deletionGracePeriodSeconds=30, **gone)
    hub.add("configmaps", "c")
    observed = await hub.observe(terminating())
    assert observed is not None
    maps, pods = observed.content
    assert (maps.gvr.resource, maps.total, maps.live) == ("configmaps", 1, (("c", "u-c"),))
    assert (pods.total, pods.live, pods.grace_seconds) == (2, (("a", "u-a"),), 30)
    assert pods.finalizers == (("x/one", 2), ("x/two", 1))
    assert (observed.unread, observed.undiscovered) == ((), ())
    assert maps.deletes_collections


async def test_what_cannot_be_read_is_named_and_the_rest_is_counted() -> None:
    hub = Hub(terminating())
    hub.add("pods", "a")
    hub.broken["secrets"] = Forbidden("not for you")
    hub.broken["leases"] = ServiceUnavailable("away")
    observed = await hub.observe(terminating())
    assert observed is not None
    assert [content.gvr.resource for content in observed.content] == ["pods"]
    first, second = observed.unread
    assert first.startswith("leases.coordination.k8s.io: ")
    assert second.startswith("secrets: ")


async def test_a_type_that_has_gone_since_discovery_holds_nothing() -> None:
    hub = Hub(terminating())
    hub.broken["secrets"] = NotFound("the server could not find the requested resource")
    observed = await hub.observe(terminating())
    assert observed is not None
    assert observed.unread == ()


async def test_a_group_that_was_not_discovered_is_named() -> None:
    hub = Hub(terminating())
    hub.stale_groups.add("apps")
    observed = await hub.observe(terminating())
    assert observed is not None
    assert observed.undiscovered == ("apps/v1",)


async def test_only_what_is_in_namespaces_and_can_be_deleted_is_listed() -> None:
    hub = Hub(terminating())
    hub.types = [
        replace(info, verbs=("get", "list")) if info.resource == "events" else info
        for info in hub.types
    ]
    await hub.observe(terminating())
    listed = [path for _, path, _ in hub.requests if "/namespaces/shop/" in path]
    assert "/api/v1/namespaces/shop/pods" in listed
    assert not any(path.endswith(("/events", "/nodes")) for path in listed)
