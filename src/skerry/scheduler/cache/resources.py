"""What a pod asks for.

The request of a pod is what its containers and sidecars hold together, or what start-up needs at
its worst moment if that is more, plus overhead. Beside the true request there is a *non-zero* one
for scoring, where a container that does not say counts as a small one. An explicit zero is a
statement and stays zero; only a missing request is replaced.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from skerry.logic.machinery.quantity import Quantity

CPU = "cpu"
MEMORY = "memory"
PODS = "pods"

# What a container that names no request counts for when nodes are scored.
DEFAULT_MILLI_CPU = 100
DEFAULT_MEMORY = 200 * 1024 * 1024

Requests = dict[str, int]


@lru_cache(maxsize=8192)
def amount(resource: str, quantity: str | int | float) -> int:
    """Return a quantity as the scheduler counts it: thousandths for cpu, else whole units."""
    parsed = Quantity.parse(quantity)
    return parsed.milli_value() if resource == CPU else parsed.value()


def amounts(quantities: Mapping[str, Any] | None) -> Requests:
    """Return every quantity of a resource list as a number."""
    return {name: amount(name, quantity) for name, quantity in (quantities or {}).items()}


def is_scalar(resource: str) -> bool:
    """Tell whether a resource counts in units of its own: extended, huge pages, attachable."""
    return (
        is_extended(resource)
        or resource.startswith(("hugepages-", "attachable-volumes-"))
        or "kubernetes.io/" in resource
    )


def is_extended(resource: str) -> bool:
    """Tell whether a resource is somebody's own: qualified, and not Kubernetes' or a request."""
    if "/" not in resource or "kubernetes.io/" in resource or resource.startswith("requests."):
        return False
    return len(resource) <= 253 + 1 + 63


def pod_requests(spec: Mapping[str, Any]) -> Requests:
    """Return what the pod needs of each resource."""
    return _total(spec, {})


def pod_nonzero_requests(spec: Mapping[str, Any]) -> Requests:
    """Return the same with missing cpu and memory requests of containers made up."""
    return _total(spec, {CPU: DEFAULT_MILLI_CPU, MEMORY: DEFAULT_MEMORY})


def _total(spec: Mapping[str, Any], missing: Requests) -> Requests:
    running: Requests = {}
    for container in spec.get("containers") or ():
        _add(running, _container(container, missing))
    sidecars: Requests = {}
    starting: Requests = {}
    for container in spec.get("initContainers") or ():
        wanted = _container(container, missing)
        if container.get("restartPolicy") == "Always":
            _add(running, wanted)
            _add(sidecars, wanted)
            wanted = dict(sidecars)
        else:
            _add(wanted, sidecars)
        _raise_to(starting, wanted)
    _raise_to(running, starting)
    _add(running, amounts(spec.get("overhead")))
    return running


def _container(container: Mapping[str, Any], missing: Requests) -> Requests:
    found = amounts((container.get("resources") or {}).get("requests"))
    return {**missing, **found} if missing else found


def _add(total: Requests, more: Requests) -> None:
    for name, value in more.items():
        total[name] = total.get(name, 0) + value


def _raise_to(total: Requests, floor: Requests) -> None:
    for name, value in floor.items():
        if value > total.get(name, 0):
            total[name] = value
