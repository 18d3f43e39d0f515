"""How the garbage collector tells a present owner from an absent one: by live reads and uids."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.controllers.core.garbage.graph import Graph, NodeKey, node_of, unpacked
from skerry.controllers.core.garbage.monitors import Monitors
from skerry.controllers.core.garbage.observe import Observer, Owner
from skerry.runtime.client import DeleteOptions
from skerry.runtime.discovery import ServedTypes
from tests.kit.sim.faults import Rates
from tests.kit.sim.loop import virtual
from tests.kit.sim.twin import TYPES
from tests.kit.sim.world import World

NAMESPACES = GroupVersionResource("", "v1", "namespaces")
PODS = GroupVersionResource("", "v1", "pods")
NODES = GroupVersionResource("", "v1", "nodes")
DEPLOYMENTS = GroupVersionResource("apps", "v1", "deployments")
INFO = {info.gvr: info for info in TYPES}


class Court:
    """A server, a graph that may lag behind it, and the one who judges owners."""

    def __init__(self) -> None:
        self.world = World(1, Rates(0, 0, 0, 0, 0))
        self.graph = Graph()
        monitors = Monitors(self.world.client, self.world.factory, self.graph, lambda _: None)
        monitors.types = ServedTypes(TYPES)
        self.monitors = monitors
        self.observer = Observer(self.world.client, self.graph, monitors)

    async def open(self) -> None:
        for name in ("ns", "other"):
            await self.world.direct.create(NAMESPACES, {"metadata": {"name": name}})

    async def make(
        self, gvr: GroupVersionResource, name: str, namespace: str = "ns", **metadata: Any
    ) -> Object:
        return await self.world.direct.create(
            gvr, {"metadata": {"name": name, **metadata}}, namespace
        )

    async def verdict(self, gvr: GroupVersionResource, dependent: Object) -> Owner:
        """Return what is found of the dependent's one owner."""
        node = node_of(INFO[gvr], dependent)
        self.graph.put(node)
        observed = await self.observer.observe(node.key)
        assert observed is not None
        (owner,) = observed.owners
        return owner


def owned_by(owner: Object, **changes: str) -> Object:
    metadata = owner["metadata"]
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        **changes,
    }
    return {"ownerReferences": [reference]}


@virtual
async def test_an_owner_the_graph_has_not_seen_yet_is_found_live() -> None:
    court = Court()
    await court.open()
    owner = await court.make(DEPLOYMENTS, "web")
    dependent = await court.make(PODS, "a", **owned_by(owner))
    assert (await court.verdict(PODS, dependent)).state == "solid"


@virtual
async def test_a_namesake_is_not_the_owner() -> None:
    court = Court()
    await court.open()
    owner = await court.make(DEPLOYMENTS, "web")
    dependent = await court.make(PODS, "a", **owned_by(owner))
    await court.world.direct.delete(DEPLOYMENTS, "web", "ns")
    await court.make(DEPLOYMENTS, "web")
    assert (await court.verdict(PODS, dependent)).state == "absent"


@virtual
async def test_an_owner_that_is_gone_is_absent() -> None:
    court = Court()
    await court.open()
    owner = await court.make(DEPLOYMENTS, "web")
    dependent = await court.make(PODS, "a", **owned_by(owner))
    await court.world.direct.delete(DEPLOYMENTS, "web", "ns")
    assert (await court.verdict(PODS, dependent)).state == "absent"


@virtual
async def test_an_owner_in_foreground_deletion_is_waiting_also_when_only_read_live() -> None:
    court = Court()
    await court.open()
    owner = await court.make(DEPLOYMENTS, "web")
    dependent = await court.make(PODS, "a", **owned_by(owner))
    await court.world.direct.delete(
        DEPLOYMENTS, "web", "ns", DeleteOptions(propagation="Foreground")
    )
    assert (await court.verdict(PODS, dependent)).state == "waiting"


@virtual
async def test_an_owner_in_another_namespace_does_not_count() -> None:
    court = Court()
    await court.open()
    owner = await court.make(DEPLOYMENTS, "web", "other")
    court.graph.put(node_of(INFO[DEPLOYMENTS], owner))
    dependent = await court.make(PODS, "a", **owned_by(owner))
    verdict = await court.verdict(PODS, dependent)
    assert (verdict.state, verdict.elsewhere) == ("absent", "other")


@virtual
async def test_a_namespaced_owner_of_something_that_is_not_is_misplaced() -> None:
    court = Court()
    await court.open()
    owner = await court.make(DEPLOYMENTS, "web")
    dependent = await court.make(NODES, "n", "", **owned_by(owner))
    assert (await court.verdict(NODES, dependent)).state == "misplaced"


@virtual
async def test_an_owner_of_a_kind_nobody_serves_is_unknown() -> None:
    court = Court()
    await court.open()
    owner = await court.make(DEPLOYMENTS, "web")
    dependent = await court.make(PODS, "a", **owned_by(owner, kind="Widget"))
    assert (await court.verdict(PODS, dependent)).state == "unknown"


@virtual
async def test_a_type_that_has_just_gone_proves_no_absence() -> None:
    court = Court()
    await court.open()
    owner = await court.make(DEPLOYMENTS, "web")
    dependent = await court.make(PODS, "a", **owned_by(owner))
    court.world.server.types = [info for info in TYPES if info.gvr != DEPLOYMENTS]
    assert (await court.verdict(PODS, dependent)).state == "unknown"


@virtual
async def test_an_object_that_is_another_by_now_is_left_alone() -> None:
    court = Court()
    await court.open()
    owner = await court.make(DEPLOYMENTS, "web")
    node = node_of(INFO[PODS], await court.make(PODS, "a", **owned_by(owner)))
    court.graph.put(node)
    await court.world.direct.delete(PODS, "a", "ns")
    await court.make(PODS, "a")
    assert await court.observer.observe(node.key) is None


@pytest.mark.parametrize(
    "uid",
    ["0b7c9a1e-8a57-4d1c-9a55-2f7be1d4a901", "0B7C9A1E-8A57-4D1C-9A55-2F7BE1D4A901", "plain", ""],
)
@pytest.mark.parametrize("cluster", ["", "root:org"])
def test_presence_is_kept_for_uids_of_every_form(cluster: str, uid: str) -> None:
    graph = Graph()
    obj = {
        "metadata": {
            "name": "a",
            "namespace": "ns",
            "uid": uid,
            "annotations": {"kcp.io/cluster": cluster},
        }
    }
    key = node_of(INFO[PODS], obj).key
    graph.put(node_of(INFO[PODS], obj))
    assert key == NodeKey(cluster, uid)
    assert {unpacked(packed) for packed in graph.of_type(PODS)} == {key}
    found = graph.presence(key)
    assert found is not None
    assert found.namespace == "ns"
    graph.remove(key)
    assert graph.presence(key) is None
