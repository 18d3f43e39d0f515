"""Plans of ReplicaSets: applying one reaches the goal, and a second plan is empty."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.controllers.workload import replicaset
from skerry.controllers.workload.replicaset import Observed as ObservedReplicaSet
from skerry.logic.machinery.plan import Create, Delete, Patch, Plan, Update
from tests.kit.workload_objects import LABELS, NOW, owner, suffixes
from tests.kit.workloads import Objects, run


class TestReplicaSet:
    def step(self, objects: Objects, fresh: str) -> Plan:
        (found,) = objects.of("replicasets")
        names = tuple(f"{fresh}{suffix}" for suffix in suffixes())
        observed = ObservedReplicaSet(found, objects.of("pods"), names)
        plan = replicaset.decide(observed, NOW)
        objects.apply(plan)
        return plan

    @given(st.integers(0, 8), st.integers(0, 8))
    @settings(max_examples=50, deadline=None)
    def test_any_number_of_pods_becomes_the_wanted_one_and_stays(
        self, present: int, wanted: int
    ) -> None:
        objects = Objects()
        objects.put("replicasets", owner("rs", replicas=present))
        self.step(objects, "a")
        (found,) = objects.of("replicasets")
        found["spec"]["replicas"] = wanted
        for pod in objects.of("pods"):
            run(pod)
        self.step(objects, "b")
        assert len(objects.of("pods")) == wanted
        for pod in objects.of("pods"):
            run(pod)
        self.step(objects, "c")
        assert not self.step(objects, "d"), "nothing is left to do"
        (found,) = objects.of("replicasets")
        assert found["status"].get("readyReplicas", 0) == wanted

    def test_an_ended_pod_is_replaced_and_a_terminating_one_not_counted(self) -> None:
        objects = Objects()
        objects.put("replicasets", owner("rs", replicas=2))
        self.step(objects, "a")
        one, two = objects.of("pods")
        one["status"] = {"phase": "Failed"}
        two["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        plan = self.step(objects, "b")
        assert sum(isinstance(action, Create) for action in plan) == 2
        assert not any(isinstance(action, Delete) for action in plan)

    def test_a_replica_set_on_its_way_out_creates_nothing(self) -> None:
        objects = Objects()
        found = objects.put("replicasets", owner("rs", replicas=2))
        found["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        assert not any(isinstance(action, Create) for action in self.step(objects, "a"))

    def test_a_replication_controller_keeps_its_pods_by_a_plain_map_of_labels(self) -> None:
        kind = replicaset.REPLICATION_CONTROLLER
        objects = Objects()
        found = objects.put("replicationcontrollers", owner("rc", replicas=2, selector=LABELS))
        for fresh in ("a", "b"):
            observed = ObservedReplicaSet(
                found, objects.of("pods"), tuple(f"{fresh}{x}" for x in suffixes()), kind
            )
            plan = replicaset.decide(observed, NOW)
            objects.apply(plan)
        assert [each["metadata"]["ownerReferences"][0]["kind"] for each in objects.of("pods")] == [
            "ReplicationController"
        ] * 2
        assert not any(isinstance(action, Create) for action in plan)

    def test_a_set_whose_pods_are_refused_says_why_until_it_has_them_all(self) -> None:
        objects = Objects()
        objects.put("replicasets", owner("rs", replicas=3))
        self.step(objects, "a")
        for pod in objects.of("pods"):
            run(pod)
        (found,) = objects.of("replicasets")
        found["spec"]["replicas"] = 4
        (said,) = replicaset.refused(replicaset.REPLICA_SET, found, "exceeded quota", NOW)
        assert isinstance(said, Patch)
        found["status"] |= said.patch["status"]
        (condition,) = found["status"]["conditions"]
        assert (condition["type"], condition["status"]) == ("ReplicaFailure", "True")
        assert (condition["reason"], condition["message"]) == ("FailedCreate", "exceeded quota")
        assert not replicaset.refused(replicaset.REPLICA_SET, found, "another", NOW)
        observed = ObservedReplicaSet(found, objects.of("pods"), ("x",))
        status = next(a for a in replicaset.decide(observed, NOW) if isinstance(a, Update))
        assert status.object["status"]["conditions"] == [condition], "a pod is still missing"
        found["spec"]["replicas"] = 3
        self.step(objects, "b")
        (found,) = objects.of("replicasets")
        assert "conditions" not in found["status"]
