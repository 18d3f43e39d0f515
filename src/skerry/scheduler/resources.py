"""``/metrics/resources``: what pods ask for, one sample per pod, resource and kind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import CollectorRegistry

from skerry.scheduler.cache.pod import PodInfo
from skerry.scheduler.cache.resources import CPU, amounts

_LABELS = ("namespace", "pod", "node", "scheduler", "priority", "resource", "unit")
_UNITS = {"cpu": "cores", "memory": "bytes", "ephemeral-storage": "bytes", "storage": "bytes"}


class _Resources:
    def __init__(self, pods: Iterable[PodInfo]) -> None:
        self._pods = list(pods)

    def collect(self) -> Iterable[GaugeMetricFamily]:
        requests = GaugeMetricFamily(
            "kube_pod_resource_request",
            "Resources requested by workloads on the cluster, broken down by pod.",
            labels=_LABELS,
        )
        limits = GaugeMetricFamily(
            "kube_pod_resource_limit",
            "Resources limit for workloads on the cluster, broken down by pod.",
            labels=_LABELS,
        )
        for pod in self._pods:
            _add(requests, pod, pod.spec.requests)
            _add(limits, pod, _limits(pod.pod))
        return [requests, limits]


def _limits(pod: dict[str, Any]) -> dict[str, int]:
    total: dict[str, int] = {}
    for container in pod["spec"].get("containers") or ():
        for name, value in amounts((container.get("resources") or {}).get("limits")).items():
            total[name] = total.get(name, 0) + value
    return total


def _add(family: GaugeMetricFamily, pod: PodInfo, values: dict[str, int]) -> None:
    for name, value in sorted(values.items()):
        if not value:
            continue
        unit = _UNITS.get(name, "bytes" if name.startswith("hugepages-") else "integer")
        labels = (
            pod.namespace,
            pod.name,
            pod.node_name,
            pod.spec.scheduler_name,
            str(pod.priority),
            name,
            unit,
        )
        family.add_metric(labels, value / 1000 if name == CPU else value)


def resource_metrics(pods: Iterable[PodInfo]) -> bytes:
    """Return the page for *pods*."""
    registry = CollectorRegistry()
    registry.register(_Resources(pods))
    return generate_latest(registry)
