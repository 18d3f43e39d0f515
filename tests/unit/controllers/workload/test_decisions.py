"""Decisions alone: applying a plan reaches the goal, and a second plan is empty."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.api.objects import Object
from skerry.controllers.workload import replicaset
from skerry.controllers.workload.cronjob import decide as cronjob
from skerry.controllers.workload.cronjob.observe import Observed as ObservedCronJob
from skerry.controllers.workload.daemonset import decide as daemonset
from skerry.controllers.workload.daemonset.observe import Observed as ObservedDaemonSet
from skerry.controllers.workload.deployment import decide as deployment
from skerry.controllers.workload.deployment.observe import Observed as ObservedDeployment
from skerry.controllers.workload.endpointslice import decide as endpointslice
from skerry.controllers.workload.endpointslice.observe import Observed as ObservedService
from skerry.controllers.workload.job import decide as job
from skerry.controllers.workload.job.observe import Observed as ObservedJob
from skerry.controllers.workload.replicaset import Observed as ObservedReplicaSet
from skerry.controllers.workload.statefulset import decide as statefulset
from skerry.controllers.workload.statefulset.observe import Observed as ObservedStatefulSet
from skerry.controllers.workload.volume import decide as volume
from skerry.controllers.workload.volume.observe import ObservedClaim, ObservedVolume
from skerry.logic.machinery.plan import Create, Delete, Plan, Update
from skerry.runtime.index import Key
from tests.kit.workloads import Objects, run

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
LABELS = {"app": "web"}


def template(image: str = "one") -> Object:
    return {
        "metadata": {"labels": dict(LABELS)},
        "spec": {"containers": [{"name": "c", "image": image}]},
    }


def owner(name: str, **spec: Any) -> Object:
    wanted = {"selector": {"matchLabels": LABELS}, "template": template(), **spec}
    return {"metadata": {"name": name, "namespace": "ns"}, "spec": wanted}


def suffixes() -> tuple[str, ...]:
    return tuple(f"x{n:03d}" for n in range(40))


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


class TestJob:
    def observed(self, found: Object, *pods: Object) -> ObservedJob:
        return ObservedJob(Key("", "ns", "j"), found, pods, suffixes())

    def job(self, **spec: Any) -> Object:
        found = owner("j", **spec)
        found["metadata"] |= {"uid": "u", "resourceVersion": "1"}
        return found

    def pod(self, name: str, phase: str, *, tracked: bool = True) -> Object:
        metadata: Object = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "labels": LABELS}
        metadata["ownerReferences"] = [{"uid": "u", "controller": True, "kind": "Job", "name": "j"}]
        if tracked:
            metadata["finalizers"] = [job.FINALIZER]
        return {"metadata": metadata, "spec": {"nodeName": "n"}, "status": {"phase": phase}}

    def test_an_end_stands_in_the_status_before_its_pod_is_let_go(self) -> None:
        plan = job.decide(self.observed(self.job(completions=2), self.pod("a", "Succeeded")), NOW)
        kinds = [type(action).__name__ for action in plan]
        assert kinds[0] == "Update"
        assert kinds.index("Patch") > 0
        (update,) = [action for action in plan if isinstance(action, Update)]
        status = update.object["status"]
        assert status["uncountedTerminatedPods"] == {"succeeded": ["uid-a"]}
        assert "succeeded" not in status

    def test_an_end_is_counted_once_its_pod_was_let_go(self) -> None:
        found = self.job(completions=2)
        found["status"] = {"uncountedTerminatedPods": {"succeeded": ["uid-a"]}}
        plan = job.decide(self.observed(found, self.pod("a", "Succeeded", tracked=False)), NOW)
        (update,) = [action for action in plan if isinstance(action, Update)]
        assert update.object["status"]["succeeded"] == 1
        assert update.object["status"]["uncountedTerminatedPods"] == {}

    def test_pods_of_a_job_that_is_gone_are_let_go(self) -> None:
        plan = job.decide(ObservedJob(Key("", "ns", "j"), None, (self.pod("a", "Running"),)), NOW)
        assert [action.reason for action in plan] == ["EndCounted"]

    def test_a_job_somebody_else_runs_is_left_alone(self) -> None:
        assert not job.decide(self.observed(self.job(managedBy="example.com/other")), NOW)


class TestCronJob:
    def cron(self, **spec: Any) -> Object:
        return {
            "metadata": {
                "name": "c",
                "namespace": "ns",
                "uid": "u",
                "resourceVersion": "1",
                "creationTimestamp": "2026-01-01T11:00:00Z",
            },
            "spec": {
                "schedule": "*/10 * * * *",
                "jobTemplate": {"spec": {"template": template()}},
                **spec,
            },
        }

    def names(self, plan: Plan) -> list[str]:
        return [action.target.name for action in plan if isinstance(action, Create)]

    def test_of_many_missed_times_the_latest_is_made_up_for(self) -> None:
        plan = cronjob.decide(ObservedCronJob(self.cron(), ()), NOW)
        minutes = int(NOW.timestamp()) // 60
        assert self.names(plan) == [f"c-{minutes}"]
        assert plan.look_again_seconds == pytest.approx(600.1)

    def test_what_was_missed_by_more_than_the_deadline_is_not_started(self) -> None:
        late = NOW + timedelta(minutes=5)
        plan = cronjob.decide(ObservedCronJob(self.cron(startingDeadlineSeconds=60), ()), late)
        assert self.names(plan) == []

    def test_a_clock_that_jumped_by_years_still_starts_one_job(self) -> None:
        plan = cronjob.decide(ObservedCronJob(self.cron(), ()), NOW + timedelta(days=700))
        assert len(self.names(plan)) == 1
        assert "TooManyMissedTimes" in [announcement.reason for announcement in plan.announcements]

    def test_a_schedule_that_makes_no_sense_is_reported(self) -> None:
        plan = cronjob.decide(ObservedCronJob(self.cron(timeZone="No/Where"), ()), NOW)
        assert [announcement.reason for announcement in plan.announcements] == [
            "UnparseableSchedule"
        ]


class TestEndpoints:
    service: Object = {  # noqa: RUF012 - read only
        "metadata": {"name": "web", "namespace": "ns", "uid": "s"},
        "spec": {"selector": LABELS, "ports": [{"port": 80, "targetPort": "http"}]},
    }

    def pod(self, number: int, *, ready: bool = True, port: int = 8080) -> Object:
        found: Object = {
            "metadata": {"name": f"p{number}", "namespace": "ns", "uid": f"u{number}"},
            "spec": {"containers": [{"ports": [{"name": "http", "containerPort": port}]}]},
        }
        run(found)
        found["status"]["podIP"] = f"10.0.{number // 250}.{number % 250 + 1}"
        if not ready:
            found["status"]["conditions"][0]["status"] = "False"
        return found

    def test_a_hundred_endpoints_fill_a_slice(self) -> None:
        pods = tuple(self.pod(n) for n in range(250))
        plan = endpointslice.decide(ObservedService(self.service, pods, ()))
        sizes = [
            len(action.object["endpoints"])
            for action in plan
            if isinstance(action, Create) and action.target.gvr.resource == "endpointslices"
        ]
        assert sorted(sizes) == [50, 100, 100]

    def test_pods_whose_port_has_another_number_get_slices_of_their_own(self) -> None:
        pods = (self.pod(1), self.pod(2, port=9090, ready=False))
        objects = Objects()
        plan = endpointslice.decide(ObservedService(self.service, pods, ()))
        objects.apply(plan)
        slices = objects.of("endpointslices")
        assert sorted(item["ports"][0]["port"] for item in slices) == [8080, 9090]
        (endpoints,) = objects.of("endpoints")
        kinds = [set(subset) - {"ports"} for subset in endpoints["subsets"]]
        assert kinds == [{"addresses"}, {"notReadyAddresses"}]
        again = ObservedService(self.service, pods, slices, endpoints)
        assert not endpointslice.decide(again), "nothing is left to do"

    def test_slices_of_others_are_left_alone(self) -> None:
        foreign = {"metadata": {"name": "theirs", "namespace": "ns", "uid": "t", "labels": {}}}
        plan = endpointslice.decide(ObservedService(self.service, (), (foreign,)))
        assert not any(isinstance(action, Delete) for action in plan)


class TestVolumes:
    claim: Object = {  # noqa: RUF012 - read only
        "metadata": {"name": "data", "namespace": "ns", "uid": "c1"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "",
            "resources": {"requests": {"storage": "5Mi"}},
        },
    }

    def volume(self, name: str, size: str, **spec: Any) -> Object:
        offered = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], **spec}
        return {"metadata": {"name": name, "uid": name}, "spec": offered}

    def test_a_volume_reserved_for_the_claim_comes_before_any_other(self) -> None:
        mine = self.volume("mine", "1Gi", claimRef={"name": "data", "namespace": "ns"})
        free = self.volume("free", "5Mi")
        assert volume.best_volume(self.claim, (free, mine)) == mine

    def test_a_volume_of_another_claim_of_the_same_name_is_not_taken(self) -> None:
        other = {"name": "data", "namespace": "ns", "uid": "former"}
        assert volume.best_volume(self.claim, (self.volume("v", "1Gi", claimRef=other),)) is None

    def test_a_released_volume_is_deleted_only_when_its_policy_and_maker_say_so(self) -> None:
        gone = {"name": "data", "namespace": "ns", "uid": "former"}
        found = self.volume("v", "1Gi", claimRef=gone, persistentVolumeReclaimPolicy="Delete")
        (action,) = volume.decide(ObservedVolume(found, None, "/r"))
        assert isinstance(action, Update), "somebody else made it; it is only released"
        found["metadata"]["annotations"] = {volume.PROVISIONED_BY: volume.PROVISIONER}
        (action,) = volume.decide(ObservedVolume(found, None, "/r"))
        assert isinstance(action, Delete)
        assert action.uid == "v"

    def test_a_claim_of_an_unknown_class_waits(self) -> None:
        claim = {**self.claim, "spec": {**self.claim["spec"], "storageClassName": "fast"}}
        assert not volume.decide(ObservedClaim(claim, (), (volume.standard_class(),), "/r"))
