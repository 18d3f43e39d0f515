"""A decision explained from outside: read once, decided, nothing written."""

from __future__ import annotations

from typing import Any

from skerry.kit.clock import LoopClock
from skerry.runtime.client import Client
from skerry.scheduler.config.load import default_configuration
from skerry.scheduler.event_handlers import EventHandlers
from skerry.scheduler.explain import Explanation
from skerry.scheduler.registry import in_tree_registry
from skerry.scheduler.scheduler import PodScheduler
from skerry.scheduler.service import sources
from skerry.scheduler.survey import explain_pod
from tests.kit.scheduler.fixtures import node, pod
from tests.kit.sim.twin import Place, Twin, served


class Cluster(Twin):
    """A server that has every type the scheduler reads."""

    def __init__(self, *objects: dict[str, Any]) -> None:
        super().__init__(clock=LoopClock())
        scheduler = PodScheduler(default_configuration(), in_tree_registry())
        known = {(info.group, info.resource) for info in self.types}
        for source in sources(EventHandlers(scheduler)):
            gvr = source.resource
            if (gvr.group, gvr.resource) not in known:
                info = served(gvr.group, gvr.version, gvr.resource, "Any", namespaced=False)
                self.types.append(info)
        for obj in objects:
            metadata = obj["metadata"]
            resource = "pods" if "containers" in obj["spec"] else "nodes"
            namespace = metadata.get("namespace", "")
            self.objects[Place("", resource, "", namespace, metadata["name"])] = obj

    async def explain(self, asked: dict[str, Any]) -> Explanation:
        return await explain_pod(Client(self), default_configuration(), in_tree_registry(), asked)


async def test_the_answer_is_what_the_server_says_now_and_nothing_is_written() -> None:
    cluster = Cluster(node("small", allocatable={"cpu": "1m"}), node("big"))
    found = await cluster.explain(pod("p"))
    assert found.chosen == "big"
    assert {verdict.node: verdict.plugin for verdict in found.nodes} == {
        "big": "",
        "small": "NodeResourcesFit",
    }
    assert {method for method, _, _ in cluster.requests} == {"GET"}


async def test_a_pod_that_has_a_node_is_not_in_its_own_way() -> None:
    one_cpu = {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "10"}}
    requests = [{"name": "c", "resources": {"requests": {"cpu": "800m"}}}]
    placed = pod("p", containers=requests, nodeName="only")
    placed["metadata"]["uid"] = "u-p"
    cluster = Cluster(node("only", **one_cpu), placed)
    found = await cluster.explain(placed)
    assert found.chosen == "only"
    assert placed["spec"]["nodeName"] == "only"  # what was asked about is not changed
    # Another one of its size does not fit beside it.
    other = pod("q", containers=requests)
    other["metadata"]["uid"] = "u-q"
    assert (await cluster.explain(other)).chosen == ""
