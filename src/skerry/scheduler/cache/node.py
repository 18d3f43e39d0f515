"""One node with the pods on it, as the per-node forms of plugins see it.

Plain integers and dicts: trial runs copy a ``NodeInfo``, take pods off and put others on, and
never touch the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from skerry.api.objects import Object
from skerry.logic.machinery.taints import Taint, taints_of
from skerry.scheduler.cache.pod import HostPort, PodInfo
from skerry.scheduler.cache.resources import CPU, MEMORY, PODS, amounts

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
HOSTNAME = "kubernetes.io/hostname"


class NodeInfo:
    """A node's description and what its pods take."""

    __slots__ = (
        "affine",
        "allocatable",
        "changes",
        "images",
        "labels",
        "name",
        "node",
        "nonzero_cpu",
        "nonzero_memory",
        "pods",
        "pods_allowed",
        "ports",
        "requested",
        "row",
        "taints",
        "unschedulable",
    )

    def __init__(self, node: Object, row: int = -1) -> None:
        self.row = row
        # Grows whenever an answer about this node may have become another one.
        self.changes = 0
        self.requested: dict[str, int] = {}
        self.nonzero_cpu = 0
        self.nonzero_memory = 0
        self.pods: dict[str, PodInfo] = {}
        # Pods that say something about other pods; usually none, and looked for often.
        self.affine: dict[str, PodInfo] = {}
        self.ports: dict[HostPort, int] = {}
        self.describe(node)

    def describe(self, node: Object) -> None:
        """Take over what the node object says; pods stay."""
        metadata, spec = node["metadata"], node.get("spec") or {}
        status = node.get("status") or {}
        self.changes += 1
        self.node = node
        self.name: str = metadata["name"]
        self.labels: dict[str, str] = metadata.get("labels") or {}
        self.taints: tuple[Taint, ...] = taints_of(spec.get("taints"))
        self.unschedulable: bool = bool(spec.get("unschedulable"))
        self.allocatable: dict[str, int] = amounts(status.get("allocatable"))
        self.pods_allowed: int = self.allocatable.get(PODS, 0)
        self.images: dict[str, int] = {
            name: int(image.get("sizeBytes") or 0)
            for image in status.get("images") or ()
            for name in image.get("names") or ()
        }

    def add(self, pod: PodInfo) -> None:
        """Account for *pod*."""
        spec = pod.spec
        self.changes += 1
        requested = self.requested
        for name, value in spec.requests.items():
            requested[name] = requested.get(name, 0) + value
        self.nonzero_cpu += spec.nonzero_cpu
        self.nonzero_memory += spec.nonzero_memory
        self.pods[pod.uid] = pod
        if spec.affinity or spec.anti_affinity or spec.preferred or spec.preferred_anti:
            self.affine[pod.uid] = pod
        for port in spec.ports:
            self.ports[port] = self.ports.get(port, 0) + 1

    def remove(self, uid: str) -> PodInfo | None:
        """Take the pod off; returns None when it is not here."""
        pod = self.pods.pop(uid, None)
        if pod is None:
            return None
        spec = pod.spec
        self.changes += 1
        for name, value in spec.requests.items():
            self.requested[name] -= value
        self.nonzero_cpu -= spec.nonzero_cpu
        self.nonzero_memory -= spec.nonzero_memory
        self.affine.pop(uid, None)
        for port in spec.ports:
            left = self.ports[port] - 1
            if left:
                self.ports[port] = left
            else:
                del self.ports[port]
        return pod

    def without(self, removed: Sequence[PodInfo]) -> NodeInfo:
        """Return a copy for trials that lacks *removed*; by whichever way is shorter."""
        if len(removed) * 2 <= len(self.pods):
            other = self.copy()
            for pod in removed:
                other.remove(pod.uid)
            return other
        gone = {pod.uid for pod in removed}
        other = self._described()
        other.requested = dict.fromkeys(self.requested, 0)
        other.nonzero_cpu = other.nonzero_memory = 0
        other.pods, other.affine, other.ports = {}, {}, {}
        for uid, pod in self.pods.items():
            if uid not in gone:
                other.add(pod)
        return other

    def copy(self) -> NodeInfo:
        """Return a node for trials: pods may come and go without anybody noticing."""
        other = self._described()
        other.nonzero_cpu, other.nonzero_memory = self.nonzero_cpu, self.nonzero_memory
        other.requested = dict(self.requested)
        other.pods = dict(self.pods)
        other.affine = dict(self.affine)
        other.ports = dict(self.ports)
        return other

    def _described(self) -> NodeInfo:
        """Return a node with this description and nothing accounted for yet."""
        other = NodeInfo.__new__(NodeInfo)
        # Spelt out: preemption copies hundreds of nodes per attempt.
        other.row, other.node, other.name = self.row, self.node, self.name
        other.changes = 0
        other.labels, other.taints = self.labels, self.taints
        other.unschedulable, other.images = self.unschedulable, self.images
        other.allocatable, other.pods_allowed = self.allocatable, self.pods_allowed
        return other

    @property
    def zone(self) -> str:
        """Return region and zone as one word; nodes without either share the empty one."""
        region = self.labels.get(REGION) or self.labels.get(
            "failure-domain.beta.kubernetes.io/region", ""
        )
        zone = self.labels.get(ZONE) or self.labels.get(
            "failure-domain.beta.kubernetes.io/zone", ""
        )
        return f"{region}:\x00:{zone}" if region or zone else ""

    def free(self, resource: str) -> int:
        return self.allocatable.get(resource, 0) - self.requested.get(resource, 0)

    def nonzero(self, resource: str) -> int:
        """Return what is taken for scoring: made-up requests included for cpu and memory."""
        if resource == CPU:
            return self.nonzero_cpu
        if resource == MEMORY:
            return self.nonzero_memory
        return self.requested.get(resource, 0)

    def __repr__(self) -> str:
        return f"NodeInfo({self.name}, {len(self.pods)} pods)"

    def status(self) -> dict[str, Any]:
        """Return the node object's status."""
        found: dict[str, Any] = self.node.get("status") or {}
        return found
