"""Plans of StatefulSets: applying one reaches the goal, and a second plan is empty."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.controllers.workload.statefulset import decide as statefulset
from skerry.controllers.workload.statefulset.observe import Observed as ObservedStatefulSet
from tests.kit.workload_objects import NOW, owner, template
from tests.kit.workloads import Objects, run


class TestStatefulSet:
    def settle(self, objects: Objects) -> None:
        for _ in range(40):
            (found,) = objects.of("statefulsets")
            observed = ObservedStatefulSet(
                found, objects.of("pods"), objects.of("controllerrevisions")
            )
            plan = statefulset.decide(observed, NOW)
            objects.apply(plan)
            for pod in objects.of("pods"):
                run(pod)
            if not plan:
                return
        raise AssertionError("it never settles")

    @given(st.integers(0, 5), st.integers(0, 5), st.sampled_from(["OrderedReady", "Parallel"]))
    @settings(max_examples=30, deadline=None)
    def test_the_numbers_are_always_the_lowest_ones(
        self, first: int, second: int, policy: str
    ) -> None:
        objects = Objects()
        objects.put("statefulsets", owner("db", replicas=first, podManagementPolicy=policy))
        self.settle(objects)
        (found,) = objects.of("statefulsets")
        found["spec"] |= {"replicas": second, "template": template("two")}
        self.settle(objects)
        pods = {pod["metadata"]["name"]: pod for pod in objects.of("pods")}
        assert set(pods) == {f"db-{n}" for n in range(second)}
        images = {pod["spec"]["containers"][0]["image"] for pod in pods.values()}
        assert images <= {"two"}
        (found,) = objects.of("statefulsets")
        if second:
            assert found["status"]["currentRevision"] == found["status"]["updateRevision"]
