"""The scheduler's belief: which pod is on which node, including what it decided itself.

A pod the scheduler chose a node for is *assumed*: it counts there at once, long before the API
server tells of the binding. The assumption never expires; it ends when the server confirms it, or
when it is forgotten because binding failed. Pods on nodes that are gone, or not known yet, wait as
ghosts: they take no part in decisions and return with their node.
"""

from __future__ import annotations

from collections.abc import Mapping

from skerry.api.objects import Object
from skerry.scheduler.cache.objects import ClusterObjects
from skerry.scheduler.cache.pod import PodInfo, PodReader
from skerry.scheduler.cache.table import NodeTable


class AssumeError(Exception):
    """A pod cannot be assumed or forgotten in its present state."""


class Cluster:
    """Nodes, pods on them, and everything else plugins look up."""

    def __init__(self) -> None:
        self.table = NodeTable()
        self.objects = ClusterObjects()
        self.reader = PodReader()
        self._pods: dict[str, PodInfo] = {}
        self._assumed: set[str] = set()
        self._ghosts: dict[str, dict[str, PodInfo]] = {}

    @property
    def counts(self) -> Mapping[str, int]:
        """Return the sizes metrics show."""
        return {
            "nodes": len(self.table),
            "pods": len(self._pods),
            "assumed_pods": len(self._assumed),
        }

    def pods(self) -> list[PodInfo]:
        """Return every pod on a node, assumed ones included."""
        return list(self._pods.values())

    def pod(self, uid: str) -> PodInfo | None:
        return self._pods.get(uid)

    def is_assumed(self, uid: str) -> bool:
        return uid in self._assumed

    def set_node(self, node: Object) -> None:
        """Add or update a node; pods waiting for it come back."""
        info = self.table.set_node(node)
        for pod in self._ghosts.pop(info.name, {}).values():
            self.table.place(pod, info)

    def remove_node(self, name: str) -> None:
        """Remove a node; its pods become ghosts until somebody deletes them."""
        if name in self.table:
            pods = self.table.remove_node(name)
            if pods:
                self._ghosts[name] = {pod.uid: pod for pod in pods}

    def assume(self, pod: PodInfo, node: str) -> PodInfo:
        """Count *pod* on *node* from now on and return it as it is there."""
        if pod.uid in self._pods:
            raise AssumeError(f"pod {pod.uid}({pod.key}) is in the cache, so can't be assumed")
        placed = pod.on(node)
        self._place(placed)
        self._assumed.add(pod.uid)
        return placed

    def forget(self, uid: str) -> PodInfo:
        """Take back an assumption."""
        if uid not in self._assumed:
            raise AssumeError(f"pod {uid} wasn't assumed so cannot be forgotten")
        self._assumed.discard(uid)
        return self._displace(uid)

    def set_pod(self, pod: PodInfo) -> PodInfo | None:
        """Take over an assigned pod as the server tells it; returns what was known before.

        Confirms an assumption. Where the server disagrees about the node, the server is right.
        """
        old = self._pods.get(pod.uid)
        self._assumed.discard(pod.uid)
        if old is not None:
            if old.node_name == pod.node_name and _same_weight(old, pod):
                self._replace(old, pod)
                return old
            self._displace(pod.uid)
        self._place(pod)
        return old

    def remove_pod(self, uid: str) -> PodInfo | None:
        """Forget a deleted pod."""
        self._assumed.discard(uid)
        return self._displace(uid) if uid in self._pods else None

    def _place(self, pod: PodInfo) -> None:
        self._pods[pod.uid] = pod
        node = self.table.get(pod.node_name)
        if node is None:
            self._ghosts.setdefault(pod.node_name, {})[pod.uid] = pod
        else:
            self.table.place(pod, node)

    def _displace(self, uid: str) -> PodInfo:
        pod = self._pods.pop(uid)
        node = self.table.get(pod.node_name)
        if node is not None:
            self.table.displace(uid, node)
            return pod
        ghosts = self._ghosts.get(pod.node_name)
        if ghosts is not None:
            ghosts.pop(uid, None)
            if not ghosts:
                del self._ghosts[pod.node_name]
        return pod

    def _replace(self, old: PodInfo, pod: PodInfo) -> None:
        """Swap the object without touching any sum: nothing that counts has changed."""
        self._pods[pod.uid] = pod
        node = self.table.get(pod.node_name)
        holder = node.pods if node is not None else self._ghosts[pod.node_name]
        holder[pod.uid] = pod
        if node is None:
            return
        # Preemption asks when a pod started, which is no weight but kept here all the same.
        node.changes += 1
        if old.uid in node.affine:
            node.affine[pod.uid] = pod

    def set_namespace(self, name: str, labels: Mapping[str, str] | None) -> None:
        """Take over a namespace's labels; None when it is gone."""
        self.table.counts.set_namespace(name, labels)


def _same_weight(old: PodInfo, new: PodInfo) -> bool:
    return old.spec is new.spec and old.terminating == new.terminating
