"""Plans of Deployments: applying one reaches the goal, and a second plan is empty."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.controllers.workload.deployment import decide as deployment
from skerry.controllers.workload.deployment.observe import Observed as ObservedDeployment
from skerry.logic.machinery.plan import Create, Plan, Update
from skerry.logic.workloads.revisions import MAX_REPLICAS
from tests.kit.workload_objects import NOW, owner, template
from tests.kit.workloads import Objects


class TestDeployment:
    def settle(self, objects: Objects, available: bool = True) -> list[Plan]:
        """Let decisions follow one another until nothing is left, pods coming up at once."""
        plans: list[Plan] = []
        for _ in range(60):
            (found,) = objects.of("deployments")
            observed = ObservedDeployment(found, objects.of("replicasets"))
            plan = deployment.decide(observed, NOW)
            plans.append(plan)
            objects.apply(plan)
            for item in objects.of("replicasets"):
                size = item["spec"]["replicas"]
                item["status"] = {"replicas": size, "observedGeneration": 99}
                if available:
                    item["status"] |= {"readyReplicas": size, "availableReplicas": size}
            if not plan:
                return plans
        raise AssertionError("the rollout never ends")

    @given(
        st.lists(
            st.tuples(st.sampled_from(["one", "two", "three"]), st.integers(0, 7)),
            min_size=1,
            max_size=5,
        ),
        st.sampled_from(["25%", 0, 1, "100%"]),
        st.sampled_from(["25%", 0, 1, "100%"]),
    )
    @settings(max_examples=80, deadline=None)
    def test_every_history_of_changes_ends_with_the_last_one(
        self, changes: list[tuple[str, int]], surge: object, missing: object
    ) -> None:
        objects = Objects()
        rolling = {"maxSurge": surge, "maxUnavailable": missing}
        strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
        found = objects.put("deployments", owner("web", replicas=1, strategy=strategy))
        for image, replicas in changes:
            (found,) = objects.of("deployments")
            found["spec"] |= {"template": template(image), "replicas": replicas}
            self.settle(objects)
        sizes = {
            item["spec"]["template"]["spec"]["containers"][0]["image"]: item["spec"]["replicas"]
            for item in objects.of("replicasets")
            if item["spec"]["replicas"]
        }
        image, replicas = changes[-1]
        assert sizes == ({image: replicas} if replicas else {})
        (found,) = objects.of("deployments")
        assert found["status"].get("availableReplicas", 0) == replicas

    def test_unavailable_pods_hold_a_rollout_within_its_bounds(self) -> None:
        objects = Objects()
        objects.put("deployments", owner("web", replicas=4))
        self.settle(objects)
        (found,) = objects.of("deployments")
        found["spec"]["template"] = template("two")
        for item in objects.of("replicasets"):
            item["status"] = {"replicas": 4, "readyReplicas": 4, "availableReplicas": 4}
        plan = deployment.decide(ObservedDeployment(found, objects.of("replicasets")), NOW)
        (creation,) = [action for action in plan if isinstance(action, Create)]
        assert creation.object["spec"]["replicas"] == 1, "four wanted, one surplus"

    def test_a_name_taken_by_another_template_is_counted_as_a_collision(self) -> None:
        objects = Objects()
        objects.put("deployments", owner("web", replicas=1))
        self.settle(objects)
        (item,) = objects.of("replicasets")
        item["spec"]["template"]["spec"]["containers"][0]["image"] = "other"
        (found,) = objects.of("deployments")
        plan = deployment.decide(ObservedDeployment(found, objects.of("replicasets")), NOW)
        (update,) = [action for action in plan if isinstance(action, Update)]
        assert update.object["status"]["collisionCount"] == 1

    def test_why_a_set_gets_no_pods_is_said_on_the_deployment_while_it_lasts(self) -> None:
        objects = Objects()
        objects.put("deployments", owner("web", replicas=2))
        self.settle(objects)
        (found,), (made,) = objects.of("deployments"), objects.of("replicasets")
        failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate"}
        failure |= {"message": "no room", "lastTransitionTime": "2026-01-01T11:00:00Z"}
        made["status"]["conditions"] = [failure]

        def said() -> list[object]:
            objects.apply(deployment.decide(ObservedDeployment(found, (made,)), NOW))
            return [each for each in found["status"]["conditions"] if "Failure" in each["type"]]

        assert said() == [{**failure, "lastUpdateTime": "2026-01-01T11:00:00Z"}]
        made["status"].pop("conditions")
        assert said() == []


@pytest.mark.parametrize(
    ("text", "number"), [("7", 7), ("", 0), ("x", 0), ("²", 0), ("9" * 5000, 0)]
)
def test_an_annotation_that_is_no_number_stops_no_rollout(text: str, number: int) -> None:
    annotated = {
        "metadata": {"name": "web-1", "annotations": {MAX_REPLICAS: text}},
        "spec": {},
    }
    assert deployment._numbers(annotated).maximum == number
