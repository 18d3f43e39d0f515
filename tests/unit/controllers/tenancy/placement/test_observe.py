"""What a Placement may choose from, and which namespaces it selects."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from skerry.api.kcp.resources import LOCATIONS
from skerry.api.kinds import GroupVersionResource
from skerry.controllers.tenancy.placement.keys import (
    IN,
    LOOKED_AT,
    NAMESPACES,
    PLACED,
    Workspace,
    own_cluster,
    workspaces_of,
)
from skerry.controllers.tenancy.placement.observe import Choice, Namespaces, Observed, Observer
from skerry.logic.machinery.workspaces.names import label_hash
from skerry.runtime.informer import Informer
from tests.kit.caches import cache

PLACEMENTS = GroupVersionResource("scheduling.kcp.io", "v1alpha1", "placements")
SYNC_TARGETS = GroupVersionResource("workload.kcp.io", "v1alpha1", "synctargets")
RESOURCE = {"group": "workload.kcp.io", "version": "v1alpha1", "resource": "synctargets"}
EVERYTHING: dict[str, Any] = {}


def obj(
    cluster: str,
    name: str,
    labels: dict[str, str] | None = None,
    *,
    deleted: bool = False,
    annotations: dict[str, str] | None = None,
    **more: Any,
) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "name": name,
        "uid": f"{cluster}-{name}",
        "resourceVersion": "1",
        "labels": labels or {},
        "annotations": {"kcp.io/cluster": cluster, **(annotations or {})},
    }
    if deleted:
        metadata["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    return {"metadata": metadata, "spec": {}, **more}


def placement(cluster: str = "w", name: str = "p", **spec: Any) -> dict[str, Any]:
    base = {"locationResource": RESOURCE, "locationSelectors": [{}], "namespaceSelector": {}}
    return obj(cluster, name, spec={**base, **spec})


def location(name: str, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return obj("w", name, labels, spec={"resource": RESOURCE, "instanceSelector": {}, **spec})


class Factory:
    """Hands out one informer of namespaces, and counts how often it was asked for one."""

    def __init__(self, informer: Informer) -> None:
        self.made = 0
        self._informer = informer

    def informer(self, *_: Any, **__: Any) -> Informer:
        self.made += 1
        return self._informer


class Hub:
    def __init__(self, *placements: dict[str, Any]) -> None:
        self.placements = cache(PLACEMENTS, *placements, indexes={IN: own_cluster})
        self.locations = cache(LOCATIONS, indexes={LOOKED_AT: workspaces_of})
        self.sync_targets = cache(SYNC_TARGETS, indexes={IN: own_cluster})
        self.namespaces = cache(NAMESPACES)
        self.factory = Factory(self.namespaces)
        self.changed: list[Any] = []
        followed = Namespaces(self.factory, lambda *event: self.changed.append(event))  # type: ignore[arg-type]
        self.observer = Observer(self.placements, self.locations, self.sync_targets, followed)

    async def observe(self, cluster: str = "w") -> Observed:
        observed = await self.observer.observe(Workspace(cluster))
        assert observed is not None
        return observed

    async def choices(self) -> tuple[Choice, ...]:
        (seen,) = (await self.observe()).placements
        return seen.choices


@pytest.fixture
async def hub() -> Hub:
    return Hub(placement())


async def test_a_workspace_has_its_own_placements_and_those_being_deleted_do_not_count() -> None:
    hub = Hub(placement(), placement("other"), obj("w", "gone", deleted=True))
    observed = await hub.observe()
    assert [seen.placement["metadata"]["name"] for seen in observed.placements] == ["p"]
    assert observed.placements[0].placement["metadata"]["uid"] == "w-p"


async def test_locations_fit_by_resource_and_any_selector() -> None:
    selectors = [{"matchLabels": {"env": "prod"}}, {"matchLabels": {"env": "stage"}}]
    hub = Hub(placement(locationSelectors=selectors))
    for each in (
        location("prod", {"env": "prod"}),
        location("stage", {"env": "stage"}),
        location("test", {"env": "test"}),
        location("other", {"env": "prod"}, resource={**RESOURCE, "resource": "others"}),
    ):
        hub.locations.apply("ADDED", each)
    assert sorted(choice.name for choice in await hub.choices()) == ["prod", "stage"]


async def test_a_selector_that_makes_no_sense_selects_nothing() -> None:
    broken = {"matchExpressions": [{"key": "a", "operator": "Like", "values": ["b"]}]}
    hub = Hub(placement(locationSelectors=[broken], namespaceSelector=broken))
    hub.locations.apply("ADDED", location("l"))
    hub.namespaces.apply("ADDED", obj("w", "n"))
    (seen,) = (await hub.observe()).placements
    assert (seen.choices, seen.namespaces) == ((), frozenset())


async def test_instances_are_the_sync_targets_a_location_selects_in_its_workspace(
    hub: Hub,
) -> None:
    hub.locations.apply("ADDED", location("l", instanceSelector={"matchLabels": {"kind": "big"}}))
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    for each in (
        obj("w", "a", {"kind": "big"}, status=ready),
        obj("w", "b", {"kind": "big"}, spec={"evictAfter": "2030-01-01T00:00:00Z"}),
        obj("w", "small", {"kind": "small"}),
        obj("w", "gone", {"kind": "big"}, deleted=True),
        obj("elsewhere", "c", {"kind": "big"}),
    ):
        hub.sync_targets.apply("ADDED", each)
    (choice,) = await hub.choices()
    first, second = choice.instances
    assert (first.key, first.ready, first.evicted) == (label_hash("w:a"), True, None)
    assert second.key == label_hash("w:b")
    assert (second.ready, second.evicted) == (False, datetime(2030, 1, 1, tzinfo=UTC))


async def test_namespaces_are_followed_from_the_first_question_on(hub: Hub) -> None:
    assert hub.factory.made == 0
    hub.namespaces.apply("ADDED", obj("w", "n", annotations={PLACED: ""}))
    hub.namespaces.apply("ADDED", obj("w", "going", deleted=True))
    hub.namespaces.apply("ADDED", obj("other", "m"))
    observed = await hub.observe()
    assert observed.namespaces == (("n", True),)
    assert observed.placements[0].namespaces == {"n"}
    await hub.observe("other")
    assert hub.factory.made == 1
    hub.changed.clear()
    hub.namespaces.apply("ADDED", obj("w", "late"))
    assert len(hub.changed) == 1
    assert dict((await hub.observe()).namespaces) == {"n": True, "late": False}


async def test_nothing_is_observed_before_the_namespaces_are_known(hub: Hub) -> None:
    hub.namespaces.synced.clear()
    observing = asyncio.create_task(hub.observe())
    for _ in range(5):
        await asyncio.sleep(0)
    assert not observing.done()
    hub.namespaces.synced.set()
    await observing
