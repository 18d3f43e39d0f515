"""Every DaemonSet is enqueued when a node becomes another, and none by its heartbeat."""

from __future__ import annotations

from typing import Any

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.controllers.workload.daemonset.events import connect
from tests.kit.caches import cache, drained, owned, queue_of_keys

SETS = GroupVersionResource("apps", "v1", "daemonsets")
PODS = GroupVersionResource("", "v1", "pods")
REVISIONS = GroupVersionResource("apps", "v1", "controllerrevisions")
NODES = GroupVersionResource("", "v1", "nodes")


def node(version: int, labels: dict[str, str] | None = None, **spec: Any) -> Object:
    metadata = {"name": "n", "uid": "n", "resourceVersion": str(version), "labels": labels or {}}
    return {"metadata": metadata, "spec": spec, "status": {"beat": version}}


async def test_labels_taints_and_cordons_count_and_heartbeats_do_not() -> None:
    queue = queue_of_keys()
    sets, pods, revisions, nodes = cache(SETS), cache(PODS), cache(REVISIONS), cache(NODES)
    connect(queue, sets, pods, revisions, nodes)
    sets.apply("ADDED", owned("logs"))
    sets.apply("ADDED", owned("probe"))
    pods.apply("ADDED", owned("logs-x", "DaemonSet", "logs"))
    assert await drained(queue) == ["shop/logs", "shop/probe"]
    everybody = ["shop/logs", "shop/probe"]
    nodes.apply("ADDED", node(1))
    assert await drained(queue) == everybody
    nodes.apply("MODIFIED", node(2))
    assert await drained(queue) == []
    for changed in (
        node(3, {"zone": "a"}),
        node(4, {"zone": "a"}, unschedulable=True),
        node(5, {"zone": "a"}, unschedulable=True, taints=[{"key": "k"}]),
    ):
        nodes.apply("MODIFIED", changed)
        assert await drained(queue) == everybody
    nodes.apply("DELETED", node(6))
    assert await drained(queue) == everybody
