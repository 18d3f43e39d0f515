"""Pods, read once.

Most pods are copies of one another, so everything that follows from the template (requests,
compiled terms, signatures) is kept once per distinct template and shared. A ``PodInfo`` adds what
is the pod's own.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from skerry.api.objects import Object
from skerry.logic.machinery.taints import Toleration, tolerations_of
from skerry.scheduler.cache.resources import (
    CPU,
    MEMORY,
    pod_nonzero_requests,
    pod_requests,
)
from skerry.scheduler.cache.terms import (
    AffinityTerm,
    NodeRequirement,
    WeightedAffinity,
    WeightedTerm,
    node_requirement,
    preferred_affinity,
    preferred_node_terms,
    required_affinity,
)

DEFAULT_SCHEDULER = "default-scheduler"
ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - compared with, never bound to


class HostPort(NamedTuple):
    """A port a pod takes on its node."""

    address: str
    protocol: str
    port: int

    def conflicts(self, other: HostPort) -> bool:
        """Tell whether both cannot be on one node; the any-address meets every address."""
        return (
            self.port == other.port
            and self.protocol == other.protocol
            and (self.address == other.address or ANY_ADDRESS in (self.address, other.address))
        )


@dataclass(slots=True, eq=False)
class PodTemplate:
    """What pods of one kind have in common. Compared by identity: templates are interned."""

    namespace: str
    labels: Mapping[str, str]
    scheduler_name: str
    priority: int
    preemption_policy: str
    requests: dict[str, int]
    # Requests that are not zero, in the order failures are reported.
    checked: tuple[tuple[str, int], ...]
    nonzero_cpu: int
    nonzero_memory: int
    tolerations: tuple[Toleration, ...]
    ports: tuple[HostPort, ...]
    requirement: NodeRequirement
    preferred_nodes: tuple[WeightedTerm, ...]
    affinity: tuple[AffinityTerm, ...]
    anti_affinity: tuple[AffinityTerm, ...]
    preferred: tuple[WeightedAffinity, ...]
    preferred_anti: tuple[WeightedAffinity, ...]
    spread: tuple[Object, ...]
    images: tuple[str, ...]
    containers: int
    volumes: tuple[Object, ...]
    # Per evaluator, what cacheable plugins see of such pods; filled in by the scheduling cycle.
    signatures: dict[object, Any] = field(default_factory=dict)
    # Plugins may keep what they derive from the template here, under their own name.
    derived: dict[Any, Any] = field(default_factory=dict)

    @property
    def affine(self) -> bool:
        """Tell whether pods of this kind say anything about other pods."""
        return bool(self.affinity or self.anti_affinity or self.preferred or self.preferred_anti)


class PodInfo:
    """One pod."""

    __slots__ = (
        "gates",
        "name",
        "namespace",
        "node_name",
        "nominated_node",
        "pod",
        "spec",
        "started",
        "terminating",
        "uid",
    )

    def __init__(self, pod: Object, spec: PodTemplate) -> None:
        metadata = pod["metadata"]
        raw = pod.get("spec") or {}
        status = pod.get("status") or {}
        self.pod = pod
        self.spec = spec
        self.name: str = metadata["name"]
        self.namespace: str = spec.namespace
        self.uid: str = metadata.get("uid") or f"{self.namespace}/{self.name}"
        self.node_name: str = raw.get("nodeName") or ""
        self.nominated_node: str = status.get("nominatedNodeName") or ""
        self.terminating: bool = metadata.get("deletionTimestamp") is not None
        self.gates: tuple[str, ...] = tuple(
            gate.get("name", "") for gate in raw.get("schedulingGates") or ()
        )
        # RFC 3339 in UTC sorts as text; a pod that has not started counts as youngest.
        self.started: str = status.get("startTime") or ""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def priority(self) -> int:
        return self.spec.priority

    def on(self, node: str) -> PodInfo:
        """Return the pod as it will be once bound to *node*."""
        copy = PodInfo.__new__(PodInfo)
        for slot in PodInfo.__slots__:
            setattr(copy, slot, getattr(self, slot))
        copy.node_name = node
        return copy

    def __repr__(self) -> str:
        return f"PodInfo({self.key})"


class PodReader:
    """Reads pods, sharing templates."""

    def __init__(self, kept: int = 4096) -> None:
        self._templates: OrderedDict[bytes, PodTemplate] = OrderedDict()
        self._kept = kept

    def read(self, pod: Object) -> PodInfo:
        """Return the pod; raises ValueError when its terms or quantities make no sense."""
        key = _template_key(pod)
        template = self._templates.get(key)
        if template is None:
            template = self._templates[key] = _template(pod)
            if len(self._templates) > self._kept:
                self._templates.popitem(last=False)
        return PodInfo(pod, template)


def _container_key(container: Mapping[str, Any]) -> tuple[Any, ...]:
    return (
        container.get("resources"),
        container.get("ports"),
        container.get("image"),
        container.get("restartPolicy"),
    )


def _template_key(pod: Object) -> bytes:
    metadata, spec = pod["metadata"], pod.get("spec") or {}
    return orjson.dumps(
        (
            metadata.get("namespace"),
            metadata.get("labels"),
            [_container_key(item) for item in spec.get("containers") or ()],
            [_container_key(item) for item in spec.get("initContainers") or ()],
            spec.get("overhead"),
            spec.get("nodeSelector"),
            spec.get("affinity"),
            spec.get("tolerations"),
            spec.get("topologySpreadConstraints"),
            _named_volumes(metadata.get("name", ""), spec),
            spec.get("priority"),
            spec.get("preemptionPolicy"),
            spec.get("schedulerName"),
            spec.get("hostNetwork"),
        ),
        option=orjson.OPT_SORT_KEYS,
    )


# Volume sources any plugin looks at. The rest (projected tokens above all, whose names differ
# from pod to pod) would only keep equal pods from sharing a template.
_VOLUME_SOURCES = (
    "persistentVolumeClaim",
    "ephemeral",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "azureDisk",
    "iscsi",
    "rbd",
    "csi",
)


def scheduled_volumes(volumes: Iterable[Object]) -> list[Object]:
    """Return the volumes that decisions depend on."""
    return [item for item in volumes if any(source in item for source in _VOLUME_SOURCES)]


def _named_volumes(pod_name: str, spec: Mapping[str, Any]) -> list[Object]:
    found = []
    for volume in scheduled_volumes(spec.get("volumes") or ()):
        if "ephemeral" in volume:
            claim = {"claimName": f"{pod_name}-{volume['name']}"}
            found.append({**volume, "persistentVolumeClaim": claim})
        else:
            found.append(volume)
    return found


def _template(pod: Object) -> PodTemplate:
    metadata, spec = pod["metadata"], pod.get("spec") or {}
    namespace = metadata.get("namespace") or "default"
    affinity = spec.get("affinity") or {}
    requests, nonzero = pod_requests(spec), pod_nonzero_requests(spec)
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    return PodTemplate(
        namespace=namespace,
        labels=metadata.get("labels") or {},
        scheduler_name=spec.get("schedulerName") or DEFAULT_SCHEDULER,
        priority=spec.get("priority") or 0,
        preemption_policy=spec.get("preemptionPolicy") or "PreemptLowerPriority",
        requests=requests,
        checked=_checked(requests),
        nonzero_cpu=nonzero.get(CPU, 0),
        nonzero_memory=nonzero.get(MEMORY, 0),
        tolerations=tolerations_of(spec.get("tolerations")),
        ports=_host_ports(spec),
        requirement=node_requirement(spec),
        preferred_nodes=preferred_node_terms(spec),
        affinity=required_affinity(affinity, "podAffinity", namespace),
        anti_affinity=required_affinity(affinity, "podAntiAffinity", namespace),
        preferred=preferred_affinity(affinity, "podAffinity", namespace),
        preferred_anti=preferred_affinity(affinity, "podAntiAffinity", namespace),
        spread=tuple(spec.get("topologySpreadConstraints") or ()),
        images=tuple(_tagged(item.get("image", "")) for item in containers),
        containers=len(containers),
        volumes=tuple(_named_volumes(metadata.get("name", ""), spec)),
    )


_FIRST = {"cpu": 0, "memory": 1, "ephemeral-storage": 2}


def _checked(requests: dict[str, int]) -> tuple[tuple[str, int], ...]:
    wanted = [(name, value) for name, value in requests.items() if value > 0]
    return tuple(sorted(wanted, key=lambda item: (_FIRST.get(item[0], 3), item[0])))


def _host_ports(spec: Mapping[str, Any]) -> tuple[HostPort, ...]:
    """Return the ports of ordinary containers; init containers are not looked at."""
    return tuple(
        HostPort(
            port.get("hostIP") or ANY_ADDRESS, port.get("protocol") or "TCP", int(port["hostPort"])
        )
        for container in spec.get("containers") or ()
        for port in container.get("ports") or ()
        if port.get("hostPort")
    )


def _tagged(image: str) -> str:
    """Return the image name as nodes report it: without a tag it means ``latest``."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"
