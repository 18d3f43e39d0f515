"""Plans of DaemonSets: applying one reaches the goal, and a second plan is empty."""

from __future__ import annotations

from skerry.api.objects import Object
from skerry.controllers.workload.daemonset import decide as daemonset
from skerry.controllers.workload.daemonset.observe import Observed as ObservedDaemonSet
from skerry.logic.machinery.plan import Create, Plan
from tests.kit.workload_objects import NOW, owner, suffixes
from tests.kit.workloads import Objects, run


class TestDaemonSet:
    def test_a_node_without_room_for_the_pod_by_taint_is_left_out(self) -> None:
        taints = [{"key": "gpu", "effect": "NoSchedule"}]
        plain: Object = {"metadata": {"name": "a"}, "spec": {}}
        tainted: Object = {"metadata": {"name": "b"}, "spec": {"taints": taints}}
        assert daemonset.should_run(owner("ds"), plain)
        assert not daemonset.should_run(owner("ds"), tainted)
        pressed = [{"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}]
        assert daemonset.should_run(owner("ds"), {**plain, "spec": {"taints": pressed}})

    def test_a_pod_on_its_way_out_is_waited_for(self) -> None:
        objects = Objects()
        objects.put("daemonsets", owner("ds"))
        node: Object = {"metadata": {"name": "a"}, "spec": {}}

        def step() -> Plan:
            (found,) = objects.of("daemonsets")
            observed = ObservedDaemonSet(
                found, objects.of("pods"), objects.of("controllerrevisions"), (node,), suffixes()
            )
            plan = daemonset.decide(observed, NOW)
            objects.apply(plan)
            return plan

        step()
        (pod,) = objects.of("pods")
        run(pod)
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        assert not any(isinstance(action, Create) for action in step())
