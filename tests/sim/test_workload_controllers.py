"""The workload controllers on the real engine, in virtual time, with and without faults."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.app.workload_controllers import build_workload_controllers
from skerry.controllers.core.garbage import controller as garbage
from skerry.controllers.workload.kinds import (
    CLAIMS,
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    ENDPOINTS,
    JOBS,
    NODES,
    PODS,
    REPLICA_SETS,
    REVISIONS,
    SERVICES,
    SLICES,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    VOLUMES,
)
from skerry.controllers.workload.volume.decide import standard_class
from skerry.logic.machinery.conditions import find_condition
from skerry.runtime.client import DeleteOptions
from skerry.runtime.context import ControllerContext
from tests.kit.sim.engine import EngineWorld
from tests.kit.sim.faults import Rates
from tests.kit.sim.kubelet import SimulatedKubelet
from tests.kit.sim.loop import virtual

NONE = Rates(0.0, 0.0, 0.0, 0.0, 0.0)
FAULTS = Rates(max_delay_seconds=0.05)


class Cluster(EngineWorld):
    """An engine with every workload controller and simulated nodes."""

    def __init__(self, seed: int = 1, rates: Rates = NONE, nodes: int = 1) -> None:
        super().__init__(seed, rates)
        self.nodes = [f"node-{n}" for n in range(nodes)]
        self.kubelet = SimulatedKubelet(self.direct, self.factory, self.nodes)

    @asynccontextmanager
    async def up(self) -> AsyncIterator[None]:
        controllers, recorders = build_workload_controllers(self.client, self.factory, "/volumes")
        collector = garbage.build(ControllerContext(self.client, self.factory, self.ids))
        parts = [controller.run for controller in controllers]
        parts += [recorder.run for recorder in recorders]
        async with self.running(*parts, collector.run, self.kubelet.run):
            for name in self.nodes:
                await self.direct.create(NODES, {"metadata": {"name": name}, "spec": {}})
            accounts = GroupVersionResource("", "v1", "serviceaccounts")
            await self.direct.create(accounts, {"metadata": {"name": "default"}}, "default")
            yield

    async def make(self, gvr: GroupVersionResource, name: str, spec: Object) -> Object:
        return await self.direct.create(gvr, {"metadata": {"name": name}, "spec": spec}, "default")

    async def get(self, gvr: GroupVersionResource, name: str) -> Object:
        return await self.direct.get(gvr, name, "default")

    async def patch(self, gvr: GroupVersionResource, name: str, spec: Object) -> None:
        await self.direct.patch(gvr, name, {"spec": spec}, "default", kind="strategic")

    async def delete(self, gvr: GroupVersionResource, name: str) -> None:
        options = DeleteOptions(propagation="Background")
        await self.direct.delete(gvr, name, "default", options)

    async def pods(self) -> dict[str, Object]:
        return await self.found(PODS, "default")


def template(labels: Object, image: str = "one", **annotations: str) -> Object:
    marks = {key.replace("_", "/", 1).replace("_", "-"): v for key, v in annotations.items()}
    return {
        "metadata": {"labels": labels, "annotations": marks},
        "spec": {"containers": [{"name": "c", "image": image}]},
    }


def deployment(replicas: int, image: str = "one", **more: Any) -> Object:
    labels = {"app": "web"}
    found = {"replicas": replicas, "selector": {"matchLabels": labels}, **more}
    return {**found, "template": template(labels, image)}


def images(pods: dict[str, Object]) -> set[str]:
    return {pod["spec"]["containers"][0]["image"] for pod in pods.values()}


def status(obj: Object, *names: str) -> tuple[Any, ...]:
    return tuple((obj.get("status") or {}).get(name, 0) for name in names)


class TestDeployment:
    @virtual
    async def test_is_rolled_out_and_says_so(self) -> None:
        cluster = Cluster()
        async with cluster.up():
            await cluster.make(DEPLOYMENTS, "web", deployment(3))
            await asyncio.sleep(10)
            found = await cluster.get(DEPLOYMENTS, "web")
            counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
            assert status(found, *counts) == (3, 3, 3, 3)
            progress = find_condition(found, "Progressing")
            assert progress is not None
            assert progress["reason"] == "NewReplicaSetAvailable"
            assert find_condition(found, "Available") is not None
            assert found["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "1"

    @virtual
    async def test_an_update_keeps_its_bounds_at_every_moment(self) -> None:
        cluster = Cluster()
        async with cluster.up():
            await cluster.make(DEPLOYMENTS, "web", deployment(4))
            await asyncio.sleep(10)
            await cluster.patch(
                DEPLOYMENTS,
                "web",
                {"template": {"spec": {"containers": [{"name": "c", "image": "two"}]}}},
            )
            for _ in range(200):
                await asyncio.sleep(0.1)
                live = [
                    p
                    for p in (await cluster.pods()).values()
                    if "deletionTimestamp" not in p["metadata"]
                ]
                ready = [
                    p for p in live if (find_condition(p, "Ready") or {}).get("status") == "True"
                ]
                assert len(live) <= 5
                assert len(ready) >= 3
            assert images(await cluster.pods()) == {"two"}

    @virtual
    async def test_going_back_reuses_the_old_replica_set_under_a_new_revision(self) -> None:
        cluster = Cluster()
        async with cluster.up():
            await cluster.make(DEPLOYMENTS, "web", deployment(1))
            for image in ("two", "one"):
                await asyncio.sleep(10)
                containers = [{"name": "c", "image": image}]
                await cluster.patch(
                    DEPLOYMENTS, "web", {"template": {"spec": {"containers": containers}}}
                )
            await asyncio.sleep(10)
            sets = await cluster.found(REPLICA_SETS, "default")
            assert len(sets) == 2
            found = await cluster.get(DEPLOYMENTS, "web")
            assert found["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3"
            assert images(await cluster.pods()) == {"one"}

    @virtual
    async def test_old_replica_sets_beyond_the_limit_are_forgotten(self) -> None:
        cluster = Cluster()
        async with cluster.up():
            await cluster.make(DEPLOYMENTS, "web", deployment(1, revisionHistoryLimit=1))
            for image in ("two", "three", "four"):
                await asyncio.sleep(10)
                containers = [{"name": "c", "image": image}]
                await cluster.patch(
                    DEPLOYMENTS, "web", {"template": {"spec": {"containers": containers}}}
                )
            await asyncio.sleep(10)
            assert len(await cluster.found(REPLICA_SETS, "default")) == 2

    @virtual
    async def test_recreate_never_lets_two_templates_run_together(self) -> None:
        cluster = Cluster()
        async with cluster.up():
            spec = deployment(2, strategy={"type": "Recreate"})
            await cluster.make(DEPLOYMENTS, "web", spec)
            await asyncio.sleep(10)
            containers = [{"name": "c", "image": "two"}]
            await cluster.patch(
                DEPLOYMENTS, "web", {"template": {"spec": {"containers": containers}}}
            )
            for _ in range(100):
                await asyncio.sleep(0.1)
                assert len(images(await cluster.pods())) <= 1
            assert images(await cluster.pods()) == {"two"}

    @virtual
    async def test_a_pause_stops_a_rollout_but_not_scaling(self) -> None:
        cluster = Cluster()
        async with cluster.up():
            await cluster.make(DEPLOYMENTS, "web", deployment(2))
            await asyncio.sleep(10)
            containers = [{"name": "c", "image": "two"}]
            await cluster.patch(
                DEPLOYMENTS,
                "web",
                {"paused": True, "template": {"spec": {"containers": containers}}},
            )
            await cluster.patch(DEPLOYMENTS, "web", {"replicas": 3})
            await asyncio.sleep(10)
            assert images(await cluster.pods()) == {"one"}
            assert len(await cluster.pods()) == 3
            progress = find_condition(await cluster.get(DEPLOYMENTS, "web"), "Progressing")
            assert progress is not None
            assert progress["reason"] == "DeploymentPaused"
            await cluster.patch(DEPLOYMENTS, "web", {"paused": False})
            await asyncio.sleep(20)
            assert images(await cluster.pods()) == {"two"}

    @virtual
    async def test_a_rollout_that_does_not_move_exceeds_its_deadline(self) -> None:
        cluster = Cluster()
        async with cluster.up():
            spec = deployment(1, progressDeadlineSeconds=60)
            spec["template"] = template({"app": "web"}, test_never_ready="yes")
            await cluster.make(DEPLOYMENTS, "web", spec)
            await asyncio.sleep(120)
            progress = find_condition(await cluster.get(DEPLOYMENTS, "web"), "Progressing")
            assert progress is not None
            assert (progress["status"], progress["reason"]) == ("False", "ProgressDeadlineExceeded")

    @pytest.mark.parametrize("seed", range(3))
    @virtual
    async def test_converges_under_faults_to_exactly_the_pods_wanted(self, seed: int) -> None:
        cluster = Cluster(seed, FAULTS)
        async with cluster.up():
            await cluster.make(DEPLOYMENTS, "web", deployment(3))
            for number in range(4):
                await asyncio.sleep(cluster.ids.fraction() * 20)
                containers = [{"name": "c", "image": f"image-{number}"}]
                replicas = 1 + cluster.chosen(4)
                await cluster.patch(
                    DEPLOYMENTS,
                    "web",
                    {"replicas": replicas, "template": {"spec": {"containers": containers}}},
                )
            await cluster.settle(300)
            pods = await cluster.pods()
            assert len(pods) == replicas
            assert images(pods) == {"image-3"}


class TestReplicaSet:
    @virtual
    async def test_replaces_pods_that_go_and_adopts_pods_that_fit(self) -> None:
        cluster = Cluster()
        async with cluster.up():
            orphan = {
                **template({"app": "web"}),
                "metadata": {"name": "orphan", "labels": {"app": "web"}},
            }
            await cluster.direct.create(PODS, orphan, "default")
            spec = {
                "replicas": 2,
                "selector": {"matchLabels": {"app": "web"}},
                "template": template({"app": "web"}),
            }
            await cluster.make(REPLICA_SETS, "rs", spec)
            await asyncio.sleep(5)
            pods = await cluster.pods()
            assert len(pods) == 2
            assert "orphan" in pods
            gone = next(name for name in pods if name != "orphan")
            await cluster.delete(PODS, gone)
            await asyncio.sleep(5)
            pods = await cluster.pods()
            assert len(pods) == 2
            assert gone not in pods

    @virtual
    async def test_a_refused_pod_is_reported_on_its_owner_and_made_once_it_may_be(self) -> None:
        cluster = Cluster()
        quotas = GroupVersionResource("", "v1", "resourcequotas")
        events = GroupVersionResource("", "v1", "events")
        async with cluster.up():
            await cluster.make(quotas, "none", {"hard": {"pods": "0"}})
            await asyncio.sleep(1)
            spec = {
                "replicas": 1,
                "selector": {"matchLabels": {"app": "web"}},
                "template": template({"app": "web"}),
            }
            await cluster.make(REPLICA_SETS, "rs", spec)
            await asyncio.sleep(30)
            assert not await cluster.pods()
            result = (await cluster.found(events, "default")).values()
            messages = [e["message"] for e in result if e["reason"] == "FailedCreate"]
            assert messages
            assert "is forbidden" in messages[0]
            assert "quota: none" in messages[0]
            await cluster.delete(quotas, "none")
            await asyncio.sleep(1200)
            assert len(await cluster.pods()) == 1

    @virtual
    async def test_a_relabelled_pod_is_let_go_and_replaced(self) -> None:
        cluster = Cluster()
        async with cluster.up():
            spec = {
                "replicas": 1,
                "selector": {"matchLabels": {"app": "web"}},
                "template": template({"app": "web"}),
            }
            await cluster.make(REPLICA_SETS, "rs", spec)
            await asyncio.sleep(5)
            (name,) = await cluster.pods()
            await cluster.direct.patch(
                PODS, name, {"metadata": {"labels": {"app": "other"}}}, "default"
            )
            await asyncio.sleep(5)
            pods = await cluster.pods()
            assert len(pods) == 2
            assert "ownerReferences" not in pods[name]["metadata"]

    @pytest.mark.parametrize("seed", range(3))
    @virtual
    async def test_never_makes_one_pod_too_many_though_its_cache_lags(self, seed: int) -> None:
        cluster = Cluster(seed, Rates(0.0, 0.0, 0.0, 0.0, max_delay_seconds=0.5))
        async with cluster.up():
            spec = {
                "replicas": 5,
                "selector": {"matchLabels": {"app": "web"}},
                "template": template({"app": "web"}),
            }
            await cluster.make(REPLICA_SETS, "rs", spec)
            for _ in range(100):
                await asyncio.sleep(0.1)
                assert len(await cluster.pods()) <= 5
            assert len(await cluster.pods()) == 5


class TestStatefulSet:
    def spec(self, replicas: int, **more: Any) -> Object:
        labels = {"app": "db"}
        return {
            "replicas": replicas,
            "serviceName": "db",
            "selector": {"matchLabels": labels},
            "template": template(labels),
            **more,
        }

    @virtual
    async def test_starts_pods_one_after_the_other_and_stops_them_backwards(self) -> None:
        cluster = Cluster()
        async with cluster.up():
            await cluster.make(STATEFUL_SETS, "db", self.spec(3))
            for _ in range(50):
                await asyncio.sleep(0.1)
                pods = await cluster.pods()
                ready = {
                    n
                    for n, p in pods.items()
                    if (find_condition(p, "Ready") or {}).get("status") == "True"
                }
                assert all(f"db-{n}" in ready for n in range(len(pods) - 1))
            assert cluster.kubelet.started == ["db-0", "db-1", "db-2"]
            await cluster.patch(STATEFUL_SETS, "db", {"replicas": 1})
            await asyncio.sleep(10)
            assert set(await cluster.pods()) == {"db-0"}
            found = await cluster.get(STATEFUL_SETS, "db")
            assert status(found, "replicas", "readyReplicas") == (1, 1)

    @virtual
    async def test_updates_from_the_highest_number_down_to_the_partition(self) -> None:
        cluster = Cluster()
        async with cluster.up():
            strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
            await cluster.make(STATEFUL_SETS, "db", self.spec(3, updateStrategy=strategy))
            await asyncio.sleep(10)
            containers = [{"name": "c", "image": "two"}]
            await cluster.patch(
                STATEFUL_SETS, "db", {"template": {"spec": {"containers": containers}}}
            )
            await asyncio.sleep(20)
            pods = await cluster.pods()
            found = {n: p["spec"]["containers"][0]["image"] for n, p in pods.items()}
            assert found == {"db-0": "one", "db-1": "two", "db-2": "two"}
            assert cluster.kubelet.started[-2:] == ["db-2", "db-1"]
            assert len(await cluster.found(REVISIONS, "default")) == 2

    @virtual
    async def test_each_number_has_claims_of_its_own_that_outlive_it(self) -> None:
        cluster = Cluster()
        async with cluster.up():
            await cluster.direct.create(STORAGE_CLASSES, standard_class())
            claim = {
                "metadata": {"name": "data"},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1Mi"}},
                },
            }
            await cluster.make(STATEFUL_SETS, "db", self.spec(2, volumeClaimTemplates=[claim]))
            await asyncio.sleep(10)
            claims = await cluster.found(CLAIMS, "default")
            assert set(claims) == {"data-db-0", "data-db-1"}
            assert {c["status"]["phase"] for c in claims.values()} == {"Bound"}
            await cluster.patch(STATEFUL_SETS, "db", {"replicas": 0})
            await asyncio.sleep(10)
            assert not await cluster.pods()
            assert len(await cluster.found(CLAIMS, "default")) == 2

    @virtual
    async def test_parallel_pods_do_not_wait_for_each_other(self) -> None:
        cluster = Cluster()
        async with cluster.up():
            spec = self.spec(3, podManagementPolicy="Parallel")
            spec["template"] = template({"app": "db"}, test_never_ready="yes")
            await cluster.make(STATEFUL_SETS, "db", spec)
            await asyncio.sleep(3)
            assert len(await cluster.pods()) == 3


class TestDaemonSet:
    def spec(self, **more: Any) -> Object:
        labels = {"app": "ds"}
        return {"selector": {"matchLabels": labels}, "template": template(labels), **more}

    @virtual
    async def test_runs_on_every_node_that_fits_and_on_new_ones(self) -> None:
        cluster = Cluster(nodes=3)
        async with cluster.up():
            taint = {"key": "gpu", "effect": "NoSchedule"}
            await cluster.direct.patch(NODES, "node-2", {"spec": {"taints": [taint]}})
            await cluster.make(DAEMON_SETS, "ds", self.spec())
            await asyncio.sleep(5)
            placed = [pod["spec"]["nodeName"] for pod in (await cluster.pods()).values()]
            assert sorted(placed) == ["node-0", "node-1"]
            await cluster.direct.create(NODES, {"metadata": {"name": "node-3"}, "spec": {}})
            await cluster.direct.patch(NODES, "node-2", {"spec": {"taints": None}})
            await asyncio.sleep(5)
            assert len(await cluster.pods()) == 4
            found = await cluster.get(DAEMON_SETS, "ds")
            counts = ("desiredNumberScheduled", "numberReady", "numberAvailable")
            assert status(found, *counts) == (4, 4, 4)

    @virtual
    async def test_updates_one_node_at_a_time(self) -> None:
        cluster = Cluster(nodes=3)
        async with cluster.up():
            await cluster.make(DAEMON_SETS, "ds", self.spec())
            await asyncio.sleep(5)
            containers = [{"name": "c", "image": "two"}]
            await cluster.patch(
                DAEMON_SETS, "ds", {"template": {"spec": {"containers": containers}}}
            )
            for _ in range(100):
                await asyncio.sleep(0.1)
                pods = (await cluster.pods()).values()
                ready = [
                    p
                    for p in pods
                    if (find_condition(p, "Ready") or {}).get("status") == "True"
                    and "deletionTimestamp" not in p["metadata"]
                ]
                assert len(ready) >= 2
            assert images(await cluster.pods()) == {"two"}
            found = await cluster.get(DAEMON_SETS, "ds")
            assert status(found, "updatedNumberScheduled") == (3,)


class TestJob:
    def spec(self, code: int = 0, **more: Any) -> Object:
        inner = template({}, test_exit=str(code))
        inner["spec"]["restartPolicy"] = "Never"
        return {"template": inner, **more}

    @virtual
    async def test_completes_after_as_many_successes_as_wanted_few_at_a_time(self) -> None:
        cluster = Cluster()
        async with cluster.up():
            await cluster.make(JOBS, "pi", self.spec(completions=5, parallelism=2))
            for _ in range(100):
                await asyncio.sleep(0.1)
                found = await cluster.get(JOBS, "pi")
                assert status(found, "active")[0] <= 2
            assert find_condition(found, "Complete") is not None
            assert status(found, "succeeded") == (5,)
            assert found["status"]["completionTime"]
            pods = await cluster.pods()
            assert len(pods) == 5
            assert all("finalizers" not in pod["metadata"] for pod in pods.values())

    @virtual
    async def test_fails_once_the_limit_of_failures_is_passed(self) -> None:
        cluster = Cluster()
        async with cluster.up():
            await cluster.make(JOBS, "bad", self.spec(1, backoffLimit=2))
            await asyncio.sleep(300)
            found = await cluster.get(JOBS, "bad")
            failed = find_condition(found, "Failed")
            assert failed is not None
            assert failed["reason"] == "BackoffLimitExceeded"
            assert status(found, "failed") == (3,)

    @virtual
    async def test_works_through_every_index_once(self) -> None:
        cluster = Cluster()
        async with cluster.up():
            spec = self.spec(completions=4, parallelism=2, completionMode="Indexed")
            await cluster.make(JOBS, "many", spec)
            await asyncio.sleep(30)
            found = await cluster.get(JOBS, "many")
            assert found["status"]["completedIndexes"] == "0-3"
            marks = "batch.kubernetes.io/job-completion-index"
            pods = (await cluster.pods()).values()
            assert sorted(p["metadata"]["annotations"][marks] for p in pods) == list("0123")

    @virtual
    async def test_is_deleted_with_its_pods_when_its_time_to_live_is_over(self) -> None:
        cluster = Cluster()
        async with cluster.up():
            await cluster.make(JOBS, "brief", self.spec(ttlSecondsAfterFinished=30))
            await asyncio.sleep(20)
            assert await cluster.exists(JOBS, "brief", "default")
            await asyncio.sleep(60)
            assert not await cluster.exists(JOBS, "brief", "default")
            assert not await cluster.pods()

    @virtual
    async def test_a_deadline_ends_what_is_active(self) -> None:
        cluster = Cluster()
        async with cluster.up():
            inner = template({})
            inner["spec"]["restartPolicy"] = "Never"
            await cluster.make(JOBS, "long", {"template": inner, "activeDeadlineSeconds": 10})
            await asyncio.sleep(60)
            failed = find_condition(await cluster.get(JOBS, "long"), "Failed")
            assert failed is not None
            assert failed["reason"] == "DeadlineExceeded"
            assert not await cluster.pods()

    @virtual
    async def test_suspended_it_holds_no_pods_and_resumed_it_completes(self) -> None:
        cluster = Cluster()
        async with cluster.up():
            await cluster.make(JOBS, "later", self.spec(suspend=True))
            await asyncio.sleep(10)
            assert not await cluster.pods()
            await cluster.patch(JOBS, "later", {"suspend": False})
            await asyncio.sleep(10)
            assert find_condition(await cluster.get(JOBS, "later"), "Complete") is not None

    @virtual
    async def test_deleted_it_leaves_no_pod_behind(self) -> None:
        cluster = Cluster()
        async with cluster.up():
            inner = template({})
            inner["spec"]["restartPolicy"] = "Never"
            await cluster.make(JOBS, "long", {"template": inner, "parallelism": 2})
            await asyncio.sleep(5)
            assert len(await cluster.pods()) == 2
            await cluster.delete(JOBS, "long")
            await asyncio.sleep(30)
            assert not await cluster.pods()

    @pytest.mark.parametrize("seed", range(2))
    @virtual
    async def test_counts_every_end_exactly_once_under_faults(self, seed: int) -> None:
        cluster = Cluster(seed, FAULTS)
        async with cluster.up():
            await cluster.make(JOBS, "pi", self.spec(completions=6, parallelism=3))
            await asyncio.sleep(120)
            await cluster.settle(300)
            found = await cluster.get(JOBS, "pi")
            assert status(found, "succeeded") == (6,)
            assert len(await cluster.pods()) == 6


class TestCronJob:
    def spec(self, **more: Any) -> Object:
        inner = template({}, test_exit="0")
        inner["spec"]["restartPolicy"] = "Never"
        return {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": inner}}, **more}

    @virtual
    async def test_starts_one_job_a_minute_and_keeps_the_last_three(self) -> None:
        cluster = Cluster()
        async with cluster.up():
            await cluster.make(CRON_JOBS, "tick", self.spec())
            await asyncio.sleep(60 * 6 + 30)
            jobs = await cluster.found(JOBS, "default")
            assert len(jobs) == 3
            found = await cluster.get(CRON_JOBS, "tick")
            assert found["status"]["lastScheduleTime"]
            assert found["status"]["lastSuccessfulTime"]

    @virtual
    async def test_forbid_lets_a_running_job_finish_first(self) -> None:
        cluster = Cluster()
        async with cluster.up():
            inner = template({})
            inner["spec"]["restartPolicy"] = "Never"
            template_spec = {"spec": {"template": inner}}
            spec = self.spec(concurrencyPolicy="Forbid", jobTemplate=template_spec)
            await cluster.make(CRON_JOBS, "tick", spec)
            await asyncio.sleep(300)
            assert len(await cluster.found(JOBS, "default")) == 1

    @virtual
    async def test_replace_ends_the_running_job(self) -> None:
        cluster = Cluster()
        async with cluster.up():
            inner = template({})
            inner["spec"]["restartPolicy"] = "Never"
            template_spec = {"spec": {"template": inner}}
            spec = self.spec(concurrencyPolicy="Replace", jobTemplate=template_spec)
            await cluster.make(CRON_JOBS, "tick", spec)
            await asyncio.sleep(200)
            assert len(await cluster.found(JOBS, "default")) == 1
            assert len(cluster.kubelet.started) >= 2

    @virtual
    async def test_suspended_it_starts_nothing(self) -> None:
        cluster = Cluster()
        async with cluster.up():
            await cluster.make(CRON_JOBS, "tick", self.spec(suspend=True))
            await asyncio.sleep(300)
            assert not await cluster.found(JOBS, "default")


class TestEndpoints:
    @virtual
    async def test_ready_pods_stand_behind_a_service_by_port_name(self) -> None:
        cluster = Cluster()
        async with cluster.up():
            spec = deployment(2)
            spec["template"]["spec"]["containers"][0]["ports"] = [
                {"name": "http", "containerPort": 8080}
            ]
            await cluster.make(DEPLOYMENTS, "web", spec)
            service = {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "http"}]}
            await cluster.make(SERVICES, "web", service)
            await asyncio.sleep(5)
            (found,) = (await cluster.found(SLICES, "default")).values()
            assert found["ports"][0]["port"] == 8080
            assert [e["conditions"]["ready"] for e in found["endpoints"]] == [True, True]
            endpoints = await cluster.get(ENDPOINTS, "web")
            assert len(endpoints["subsets"][0]["addresses"]) == 2
            await cluster.patch(DEPLOYMENTS, "web", {"replicas": 0})
            await asyncio.sleep(5)
            (found,) = (await cluster.found(SLICES, "default")).values()
            assert not found["endpoints"]
            assert not (await cluster.get(ENDPOINTS, "web")).get("subsets")

    @virtual
    async def test_a_service_without_selector_is_left_to_others(self) -> None:
        cluster = Cluster()
        async with cluster.up():
            await cluster.make(SERVICES, "outside", {"ports": [{"port": 80}]})
            await asyncio.sleep(5)
            assert not await cluster.found(SLICES, "default")
            assert not await cluster.found(ENDPOINTS, "default")


class TestVolumes:
    claim: Object = {  # noqa: RUF012 - read only
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "5Mi"}},
    }

    @virtual
    async def test_a_claim_without_class_gets_a_local_volume_that_goes_with_it(self) -> None:
        cluster = Cluster()
        async with cluster.up():
            await cluster.direct.create(STORAGE_CLASSES, standard_class())
            await cluster.make(CLAIMS, "data", dict(self.claim))
            await asyncio.sleep(5)
            found = await cluster.get(CLAIMS, "data")
            assert found["spec"]["storageClassName"] == "standard"
            assert found["status"]["phase"] == "Bound"
            (volume,) = (await cluster.found(VOLUMES)).values()
            assert volume["status"]["phase"] == "Bound"
            assert volume["spec"]["hostPath"]["path"].startswith("/volumes/pvc-")
            await cluster.delete(CLAIMS, "data")
            await asyncio.sleep(5)
            assert not await cluster.found(VOLUMES)

    @virtual
    async def test_the_smallest_existing_volume_that_fits_is_taken_and_kept(self) -> None:
        cluster = Cluster()
        async with cluster.up():
            for name, size in (("small", "1Mi"), ("fits", "6Mi"), ("large", "1Gi")):
                spec = {
                    "capacity": {"storage": size},
                    "accessModes": ["ReadWriteOnce"],
                    "hostPath": {"path": f"/{name}"},
                    "persistentVolumeReclaimPolicy": "Retain",
                }
                await cluster.direct.create(VOLUMES, {"metadata": {"name": name}, "spec": spec})
            await cluster.make(CLAIMS, "data", {**self.claim, "storageClassName": ""})
            await asyncio.sleep(5)
            found = await cluster.get(CLAIMS, "data")
            assert found["spec"]["volumeName"] == "fits"
            await cluster.delete(CLAIMS, "data")
            await asyncio.sleep(5)
            volumes = await cluster.found(VOLUMES)
            phases = {name: v["status"]["phase"] for name, v in volumes.items()}
            assert phases == {"small": "Available", "fits": "Released", "large": "Available"}
