"""What the metrics APIs answer, and what is said where they do not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from skerry.controllers.workload.autoscaler.metrics import Metrics
from skerry.logic.workloads.scaling.usage import Sample, Unusable
from skerry.runtime.client import Client
from skerry.runtime.discovery import Mapper
from tests.kit.metrics_apis import MetricsApis
from tests.kit.sim.engine import EngineWorld
from tests.kit.sim.loop import virtual

PODS = "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods"
CUSTOM = "/apis/custom.metrics.k8s.io"
AT = "2026-01-01T00:00:00Z"
WHEN = datetime(2026, 1, 1, tzinfo=UTC)


@asynccontextmanager
async def measuring() -> AsyncIterator[tuple[Metrics, MetricsApis]]:
    world = EngineWorld(1)
    apis = MetricsApis(world.direct.transport)
    client = Client(apis, clock=world.clock)
    async with world.running():
        yield Metrics(client, Mapper(client)), apis


def used(name: str, window: str = "30s", **containers: str | None) -> Any:
    listed = [
        {"name": each, "usage": {} if amount is None else {"cpu": amount}}
        for each, amount in containers.items()
    ]
    metadata = {"name": name, "namespace": "default"}
    return {"metadata": metadata, "timestamp": AT, "window": window, "containers": listed}


@virtual
async def test_a_pod_uses_what_its_containers_use_where_all_of_them_are_measured() -> None:
    async with measuring() as (metrics, apis):
        items = [used("p", a="100m", b="50000000n"), used("q", a="1", b=None)]
        apis.answers[PODS] = {"items": items}
        found = await metrics.of_resource("default", "app=web", "cpu")
        assert found == {"p": Sample(150, WHEN, timedelta(seconds=30))}
        assert apis.asked == [{"labelSelector": ["app=web"]}]
        one = await metrics.of_resource("default", "app=web", "cpu", "a")
        assert {name: each.amount for name, each in one.items()} == {"p": 100, "q": 1000}
        with pytest.raises(Unusable, match="container c not present in metrics for pod default/p"):
            await metrics.of_resource("default", "app=web", "cpu", "c")
        apis.answers[PODS] = {"items": [used("p", "1m30.5s", a="1")]}
        found = await metrics.of_resource("default", "app=web", "cpu")
        assert found["p"].window == timedelta(seconds=90.5)


@virtual
async def test_an_api_that_is_not_there_is_named_as_clients_name_it() -> None:
    async with measuring() as (metrics, apis):
        gone = "the server could not find the requested resource"
        with pytest.raises(Unusable, match=rf"resource metrics API: {gone} \(get pods.metrics"):
            await metrics.of_resource("default", "", "cpu")
        none = r"no custom metrics API \(custom.metrics.k8s.io\) registered"
        with pytest.raises(Unusable, match=none):
            await metrics.of_pods("default", "", {"name": "rps"})
        with pytest.raises(Unusable, match=rf"{gone} \(get q.external.metrics.k8s.io\)"):
            await metrics.external("default", {"name": "q"})
        apis.answers[CUSTOM] = {"versions": [{"version": "v9"}]}
        with pytest.raises(Unusable, match=none):
            await metrics.of_pods("default", "", {"name": "rps"})
        apis.answers[PODS] = {"items": []}
        with pytest.raises(Unusable, match="no metrics returned from resource metrics API"):
            await metrics.of_resource("default", "", "cpu")


@virtual
async def test_custom_and_external_metrics_are_read_at_the_version_there_is() -> None:
    async with measuring() as (metrics, apis):
        apis.answers[CUSTOM] = {"versions": [{"version": "v1beta1"}, {"version": "v1beta2"}]}
        base = f"{CUSTOM}/v1beta2/namespaces/default"
        sample = {"timestamp": AT, "value": "12500m"}
        described = {"kind": "Pod", "name": "p"}
        item = {**sample, "describedObject": described, "windowSeconds": 10}
        apis.answers[f"{base}/pods/*/rps"] = {"items": [item]}
        chosen = {"name": "rps", "selector": {"matchLabels": {"path": "a"}}}
        found = await metrics.of_pods("default", "app=web", chosen)
        assert found == {"p": Sample(12500, WHEN, timedelta(seconds=10))}
        asked = {"labelSelector": ["app=web"], "metricLabelSelector": ["path=a"]}
        assert apis.asked[-1] == asked
        apis.answers[f"{base}/services/s/hits"] = {"items": [sample]}
        service = {"apiVersion": "v1", "kind": "Service", "name": "s"}
        assert await metrics.of_object("default", service, {"name": "hits"}) == 12500
        apis.answers[f"{base}/deployments.apps/d/hits"] = {"items": [sample]}
        deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
        assert await metrics.of_object("default", deployment, {"name": "hits"}) == 12500
        thing = {"apiVersion": "y.example/v1", "kind": "X", "name": "s"}
        with pytest.raises(Unusable, match=r"unable to map kind X\.y\.example to resource"):
            await metrics.of_object("default", thing, {"name": "hits"})
        external = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/queue"
        apis.answers[external] = {"items": [sample, sample]}
        assert await metrics.external("default", {"name": "queue"}) == 25000
