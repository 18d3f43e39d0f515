"""Autoscalers at work on the real engine, in virtual time, with measurements that are made up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.controllers.workload.autoscaler import controller
from skerry.controllers.workload.autoscaler.decide import AUTOSCALERS
from skerry.kit.timestamps import rfc3339
from skerry.runtime.client import Client
from skerry.runtime.context import ControllerContext
from skerry.runtime.events import EventRecorder
from skerry.runtime.informer import InformerFactory
from tests.kit.metrics_apis import MetricsApis
from tests.kit.sim.engine import EngineWorld
from tests.kit.sim.loop import virtual

DEPLOYMENTS = GroupVersionResource("apps", "v1", "deployments")
PODS = GroupVersionResource("", "v1", "pods")
ACCOUNTS = GroupVersionResource("", "v1", "serviceaccounts")
EVENTS = GroupVersionResource("", "v1", "events")
MEASURED = "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods"


class Cluster:
    def __init__(self, client: Client, apis: MetricsApis) -> None:
        self.client, self.apis = client, apis

    async def deploy(self, name: str, replicas: int) -> None:
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}
        template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
        spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}}
        body = {"metadata": {"name": name}, "spec": {**spec, "template": template}}
        await self.client.create(DEPLOYMENTS, body, "default")
        for number in range(replicas):
            pod = {"metadata": {"name": f"{name}-{number}", "labels": {"app": name}}}
            made = await self.client.create(PODS, {**pod, "spec": template["spec"]}, "default")
            now = rfc3339(self.client.clock.now())
            ready = {"type": "Ready", "status": "True", "lastTransitionTime": now}
            made["status"] = {"phase": "Running", "startTime": now, "conditions": [ready]}
            await self.client.update_status(PODS, made)

    async def scale(self, name: str, deployment: str, **spec: Any) -> None:
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": deployment}
        body = {"metadata": {"name": name}, "spec": {"scaleTargetRef": target, **spec}}
        await self.client.create(AUTOSCALERS, body, "default")

    def use(self, name: str, count: int, amount: str) -> None:
        at = rfc3339(self.client.clock.now())
        self.apis.answers[MEASURED] = {
            "items": [
                {
                    "metadata": {"name": f"{name}-{number}", "namespace": "default"},
                    "timestamp": at,
                    "window": "30s",
                    "containers": [{"name": "c", "usage": {"cpu": amount}}],
                }
                for number in range(count)
            ]
        }

    async def conditions(self, name: str) -> dict[str, tuple[str, str, str]]:
        found = await self.client.get(AUTOSCALERS, name, "default")
        listed: list[Object] = (found.get("status") or {}).get("conditions") or []
        return {each["type"]: (each["status"], each["reason"], each["message"]) for each in listed}

    async def replicas(self, name: str) -> int:
        return int((await self.client.get(DEPLOYMENTS, name, "default"))["spec"]["replicas"])


@asynccontextmanager
async def running() -> AsyncIterator[Cluster]:
    world = EngineWorld(1)
    apis = MetricsApis(world.direct.transport)
    client = Client(apis, clock=world.clock)
    factory = InformerFactory(client, ids=world.ids)
    recorder = EventRecorder(client, controller.NAME)
    context = ControllerContext(client, factory, world.ids, recorder=recorder)
    built = controller.build(context)
    async with world.running(factory.run, recorder.run, built.run):
        await world.direct.create(ACCOUNTS, {"metadata": {"name": "default"}}, "default")
        yield Cluster(world.direct, apis)


@virtual
async def test_a_workload_follows_what_its_pods_use() -> None:
    async with running() as cluster:
        await cluster.deploy("web", 2)
        await asyncio.sleep(400)  # the pods have started
        cluster.use("web", 2, "200m")
        await cluster.scale("web", "web", maxReplicas=6)
        await asyncio.sleep(5)
        assert await cluster.replicas("web") == 4, "at most twice as many"
        events = (await cluster.client.list(EVENTS)).items
        assert "SuccessfulRescale" in {each["reason"] for each in events}
        found = await cluster.client.get(AUTOSCALERS, "web", "default")
        assert found["status"]["currentMetrics"][0]["resource"]["current"] == {
            "averageUtilization": 200,
            "averageValue": "200m",
        }


@virtual
async def test_what_is_missing_is_said_as_kube_controller_manager_says_it() -> None:
    async with running() as cluster:
        await cluster.deploy("web", 2)
        await cluster.scale("web", "web", maxReplicas=6)
        await cluster.scale("gone", "gone", maxReplicas=6)
        await asyncio.sleep(1)
        text = "the HPA was unable to compute the replica count: failed to get cpu utilization: "
        api = "unable to fetch metrics from resource metrics API: "
        why = "the server could not find the requested resource (get pods.metrics.k8s.io)"
        active = (await cluster.conditions("web"))["ScalingActive"]
        whole = f"{text}unable to get metrics for resource cpu: {api}{why}"
        assert active == ("False", "FailedGetResourceMetric", whole)
        able = (await cluster.conditions("gone"))["AbleToScale"]
        text = "the HPA controller was unable to get the target's current scale: "
        assert able == ("False", "FailedGetScale", f'{text}deployments/scale.apps "gone" not found')
        body = {"maxReplicas": 3, "scaleTargetRef": {"kind": "Thing", "name": "x"}}
        body["scaleTargetRef"]["apiVersion"] = "x.example/v1"  # type: ignore[index]
        odd = {"metadata": {"name": "odd"}, "spec": body}
        await cluster.client.create(AUTOSCALERS, odd, "default")
        await asyncio.sleep(1)
        failure = 'no matches for kind "Thing" in group "x.example"'
        assert (await cluster.conditions("odd"))["AbleToScale"][2] == f"{text}{failure}"


@virtual
async def test_two_autoscalers_of_the_same_pods_do_nothing_until_one_goes() -> None:
    async with running() as cluster:
        await cluster.deploy("web", 2)
        await asyncio.sleep(400)
        cluster.use("web", 2, "80m")
        for name in ("a", "b"):
            await cluster.scale(name, "web", maxReplicas=6)
        await asyncio.sleep(20)
        for name in ("a", "b"):
            assert (await cluster.conditions(name))["ScalingActive"][1] == "AmbiguousSelector"
        await cluster.client.delete(AUTOSCALERS, "b", "default")
        await asyncio.sleep(20)
        assert (await cluster.conditions("a"))["ScalingActive"][1] == "ValidMetricFound"
