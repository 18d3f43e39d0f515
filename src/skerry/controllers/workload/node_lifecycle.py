"""Judges whether nodes live, taints them accordingly, and lets pods go from those that do not.

Reads Nodes, their Leases and Pods. Writes nodes' conditions (to Unknown only) and taints, pods'
conditions, and deletes pods: those that do not tolerate a ``NoExecute`` taint, and those of nodes
that are no more. What is decided is in ``logic.workloads.node_lifecycle``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.controllers.workload.kinds import NODES, PODS
from skerry.kit.timestamps import rfc3339
from skerry.logic.machinery.conditions import condition, set_conditions
from skerry.logic.machinery.plan import NOTHING, Action, Announcement, Delete, Patch, Plan, Target
from skerry.logic.workloads.node_lifecycle import (
    QUARANTINE,
    Heard,
    heard,
    is_node_ready,
    lapsed_conditions,
    not_ready_condition,
    seconds_left,
    seconds_to_stay,
    wanted_taints,
)
from skerry.logic.workloads.owners import TargetOf
from skerry.logic.workloads.pods import is_finished, is_terminating
from skerry.runtime.context import ControllerContext
from skerry.runtime.controller import Controller, Reconciler
from skerry.runtime.index import Key, key_of
from skerry.runtime.informer import Informer
from skerry.runtime.workqueue import WorkQueue

NAME = "node-lifecycle-controller"
LEASES = GroupVersionResource("coordination.k8s.io", "v1", "leases")
_LEASE_NAMESPACE = "kube-node-lease"
_BY_NODE = "node"
_POD = TargetOf(PODS)
# Of a taint without a time it is enough to be asked about again this often.
_REQUEUE_AFTER_SECONDS = 30.0

# -- observe and decide ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Observed:
    """A node and the pods on it; ``node`` is None where only the pods are left.

    ``last`` is when the node was heard of, or when it was first found to be gone. ``disrupted``:
    no node is ready at all.
    """

    name: str
    node: Object | None
    pods: tuple[Object, ...]
    last: Heard
    disrupted: bool = False


def decide(observed: Observed, now: datetime) -> Plan:
    """Bring conditions, taints and pods in line with what is known of the node."""
    if observed.node is None:
        return _orphaned(observed, now)
    node = observed.node
    if "deletionTimestamp" in node["metadata"]:
        return NOTHING
    left = seconds_left(node, observed.last, now)
    if left <= 0:
        conditions = lapsed_conditions(node, now)
        if conditions != (node.get("status") or {}).get("conditions"):
            return _lapsed(node, conditions)
    actions: list[Action] = []
    announcements: list[Announcement] = []
    taints = wanted_taints(node, now, disrupted=observed.disrupted)
    if taints != ((node.get("spec") or {}).get("taints") or []):
        spec = {"taints": taints or None}
        patch = {"metadata": _version(node), "spec": spec}
        actions.append(Patch(Target(NODES, observed.name), patch, "TaintsChanged"))
    looks = [left] if left > 0 else []
    for pod in observed.pods:
        made, said, again = _pod_on(node, taints, pod, observed.last.at, now)
        actions += made
        announcements += said
        looks += again
    return Plan(actions, announcements, requeue_after_seconds=min(looks, default=None))


def _lapsed(node: Object, conditions: list[Object]) -> Plan:
    """Say that a node is not heard of; its taints follow from that."""
    name = node["metadata"]["name"]
    patch = {"metadata": _version(node), "status": {"conditions": conditions}}
    update = Patch(Target(NODES, name), patch, "NodeStatusUnknown", subresource="status")
    if not is_node_ready(node):
        return Plan([update])
    text = f"Node {name} status is now: NodeNotReady"
    return Plan([update], [Announcement(node, "Normal", "NodeNotReady", text)])


def _version(obj: Object) -> Object:
    return {"resourceVersion": obj["metadata"]["resourceVersion"]}


def _pod_on(
    node: Object, taints: list[Object], pod: Object, since: datetime, now: datetime
) -> tuple[list[Action], list[Announcement], list[float]]:
    """Return what becomes of a pod on a node, and when to ask again."""
    if is_terminating(pod):
        return [], [], []
    stays = seconds_to_stay(taints, pod, since, now)
    if stays is not None and stays <= 0:
        name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        text = f"Marking for deletion Pod {name}"
        said = [Announcement(pod, "Normal", "TaintManagerEviction", text)]
        why = "Taint manager: deleting due to NoExecute taint"
        return _deleted(pod, "DeletionByTaintManager", why, now), said, []
    again = [min(stays, _REQUEUE_AFTER_SECONDS)] if stays is not None else []
    conditions = None if is_node_ready(node) else not_ready_condition(pod, now)
    if conditions is None or is_finished(pod):
        return [], [], again
    patch = {"metadata": _version(pod), "status": {"conditions": conditions}}
    said = [Announcement(pod, "Warning", "NodeNotReady", "Node is not ready")]
    update = Patch(_POD(pod), patch, "NodeNotReady", subresource="status", absent_is_fine=True)
    return [update], said, again


def _orphaned(observed: Observed, now: datetime) -> Plan:
    """Delete the pods of a node that has been gone for a while: nobody else will."""
    left = (observed.last.at + QUARANTINE - now).total_seconds()
    if left > 0:
        return Plan([], requeue_after_seconds=left)
    actions: list[Action] = []
    for pod in observed.pods:
        why = "PodGC: node no longer exists"
        actions += _deleted(pod, "DeletionByPodGC", why, now, failed=True)
    return Plan(actions)


def _deleted(
    pod: Object, reason: str, why: str, now: datetime, *, failed: bool = False
) -> list[Action]:
    status = pod.get("status") or {}
    target = condition("DisruptionTarget", True, reason, why)
    changed: Object = {
        "conditions": set_conditions(status.get("conditions") or (), [target], rfc3339(now))
    }
    if failed and not is_finished(pod):
        changed["phase"] = "Failed"
    patch = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": changed}
    return [
        Patch(_POD(pod), patch, reason, subresource="status", absent_is_fine=True),
        Delete(_POD(pod), reason, uid=pod["metadata"]["uid"], grace_seconds=0 if failed else None),
    ]


# -- controller ------------------------------------------------------------------------------


class _Nodes:
    """What is remembered of nodes: when each was heard of, and which are ready."""

    def __init__(self, add: Callable[[Key], None], now: Callable[[], datetime]) -> None:
        self._add = add
        self._now = now
        self._heard: dict[Key, Heard] = {}
        self._ready: set[Key] = set()

    def hear(self, key: Key, node: Object | None, lease: Object | None) -> Heard:
        before = self._heard.get(key)
        if node is None:
            # The name is kept until the pods are gone, the time from when the node went.
            last = before if before is not None and before.renewed == "gone" else None
            last = last or Heard(self._now(), "gone")
        else:
            known = None if before is not None and before.renewed == "gone" else before
            last = heard(known, node, lease, self._now())
        self._heard[key] = last
        return last

    def forget(self, key: Key) -> None:
        self._heard.pop(key, None)

    @property
    def disrupted(self) -> bool:
        return not self._ready

    def changed(self, nodes: Informer, key: Key, node: Object | None) -> None:
        """Take a node's readiness; if it was the last or is the first, all are asked again."""
        before = self.disrupted
        if node is not None and is_node_ready(node):
            self._ready.add(key)
        else:
            self._ready.discard(key)
        if self.disrupted == before:
            self._add(key)
            return
        for each in nodes.index.objects():
            self._add(key_of(each))
        self._add(key)


def _by_node(pod: Object) -> Iterable[tuple[str, str]]:
    name = (pod.get("spec") or {}).get("nodeName")
    return ((key_of(pod).cluster, name),) if name else ()


def build(context: ControllerContext) -> Controller[Key, Observed]:
    """Return the controller; keys are those of nodes."""
    nodes, pods, leases = (context.factory.informer(each) for each in (NODES, PODS, LEASES))
    queue: WorkQueue[Key] = context.queue(NAME)
    pods.index.add_index(_BY_NODE, _by_node)
    known = _Nodes(queue.add, context.client.clock.now)

    def node_changed(old: Object | None, new: Object | None) -> None:
        known.changed(nodes, key_of(new or old or {}), new)

    def pod_changed(old: Object | None, new: Object | None) -> None:
        for cluster, name in _by_node(new or old or {}):
            if new is None or old is None or _matters(old, new):
                queue.add(Key(cluster, "", name))

    def lease_changed(old: Object | None, new: Object | None) -> None:
        if new is None or new["metadata"]["namespace"] != _LEASE_NAMESPACE:
            return
        key = Key(key_of(new).cluster, "", new["metadata"]["name"])
        node = nodes.index.get(key)
        if node is not None:
            known.hear(key, node, new)

    async def observe(key: Key) -> Observed | None:
        node = nodes.index.get(key)
        found = pods.index.by(_BY_NODE, (key.cluster, key.name))
        if node is None and not found:
            known.forget(key)
            return None
        lease = leases.index.get(Key(key.cluster, _LEASE_NAMESPACE, key.name))
        last = known.hear(key, node, lease)
        return Observed(key.name, node, tuple(found), last, known.disrupted)

    nodes.add_handler(node_changed)
    pods.add_handler(pod_changed)
    leases.add_handler(lease_changed)
    reconciler = Reconciler(
        observe,
        lambda observed: decide(observed, context.client.clock.now()),
        context.executor(NAME),
    )
    return context.controller(NAME, reconciler, queue, [nodes, pods, leases])


def _matters(old: Object, new: Object) -> bool:
    """Whether a pod's change may change what becomes of it."""
    return (
        old["spec"].get("tolerations") != new["spec"].get("tolerations")
        or old["spec"].get("nodeName") != new["spec"].get("nodeName")
        or is_terminating(old) != is_terminating(new)
    )
