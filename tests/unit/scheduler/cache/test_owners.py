"""Who belongs with a pod: by its services, and by its controller."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.scheduler.cache.cluster import Cluster
from skerry.scheduler.cache.owners import controller_of, default_selector
from tests.kit.scheduler.fixtures import pod


def thing(name: str, selector: Any, namespace: str = "default") -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"selector": selector}}


def owned(kind: str, version: str = "apps/v1") -> dict[str, Any]:
    item = pod("p", {"app": "web", "tier": "front"})
    owner = {"apiVersion": version, "kind": kind, "name": "w", "controller": True}
    item["metadata"]["ownerReferences"] = [{"kind": "Other", "name": "x"}, owner]
    return item


def selected(cluster: Cluster, item: dict[str, Any]) -> str:
    found = default_selector(cluster.reader.read(item), cluster.objects)
    return ",".join(str(each) for each in found.requirements)


def test_a_pod_that_nobody_means_has_no_siblings() -> None:
    cluster = Cluster()
    info = cluster.reader.read(pod("p", {"app": "web"}))
    assert controller_of(info) is None
    assert default_selector(info, cluster.objects).empty


def test_every_service_that_means_the_pod_counts_and_no_other() -> None:
    cluster = Cluster()
    for each in (
        thing("a", {"app": "web"}),
        thing("b", {"app": "db"}),
        thing("c", {"app": "web"}, "elsewhere"),
        thing("d", None),
    ):
        cluster.objects.services.set(each)
    assert selected(cluster, pod("p", {"app": "web", "tier": "x"})) == "app=web"


@pytest.mark.parametrize(
    ("kind", "version", "store", "selector"),
    [
        ("ReplicaSet", "apps/v1", "replica_sets", {"matchLabels": {"tier": "front"}}),
        ("StatefulSet", "apps/v1", "stateful_sets", {"matchLabels": {"tier": "front"}}),
        ("ReplicationController", "v1", "replication_controllers", {"tier": "front"}),
    ],
)
def test_the_controllers_selector_counts_too_and_nothing_twice(
    kind: str, version: str, store: str, selector: Any
) -> None:
    cluster = Cluster()
    getattr(cluster.objects, store).set(thing("w", selector))
    cluster.objects.services.set(thing("a", {"tier": "front"}))
    assert selected(cluster, owned(kind, version)) == "tier=front"


def test_an_owner_that_is_gone_or_of_another_kind_says_nothing() -> None:
    cluster = Cluster()
    assert selected(cluster, owned("ReplicaSet")) == ""
    assert selected(cluster, owned("ReplicationController", "v1")) == ""
    assert selected(cluster, owned("Job", "batch/v1")) == ""
