"""What the server tells, turned into the scheduler's beliefs and into events for waiting pods.

Handlers are those of kube-scheduler: a pod with a node belongs to the cache, one without to the
queue if some profile is responsible, and a change of a node is split into the kinds of change
plugins register for. They run on the loop, in order, and never wait.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from skerry.api.objects import Object
from skerry.kit.log import Logger
from skerry.scheduler.cache.node import NodeInfo
from skerry.scheduler.cache.objects import ObjectStore
from skerry.scheduler.cache.pod import PodInfo
from skerry.scheduler.framework.events import (
    ASSIGNED_POD,
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    CSI_CAPACITY,
    CSI_DRIVER,
    CSI_NODE,
    NODE,
    NODE_ADD,
    PV,
    PVC,
    STORAGE_CLASS,
    VOLUME_ATTACHMENT,
    Action,
    ClusterEvent,
)
from skerry.scheduler.scheduler import PodScheduler

_log = Logger("scheduler")

Handler = Callable[[Object | None, Object | None], None]

# Kinds beside pods and nodes whose changes may help a waiting pod, by store.
_EVENTFUL = {
    "claims": PVC,
    "volumes": PV,
    "classes": STORAGE_CLASS,
    "csi_nodes": CSI_NODE,
    "csi_drivers": CSI_DRIVER,
    "capacities": CSI_CAPACITY,
    "attachments": VOLUME_ATTACHMENT,
}


class EventHandlers:
    """Handlers for one scheduler; ``measured`` wraps those whose duration is of interest."""

    def __init__(self, scheduler: PodScheduler) -> None:
        self._scheduler = scheduler
        self._cluster = scheduler.cluster
        self._unscheduled = scheduler.unscheduled

    def measured(self, handler: Handler, resource: str) -> Handler:
        """Return *handler* with its duration noted, by resource and kind of change."""
        duration, clock = self._scheduler.metrics.event_duration, self._scheduler.clock

        def handle(old: Object | None, new: Object | None) -> None:
            began = clock.monotonic()
            handler(old, new)
            label = resource + ("Add" if old is None else "Delete" if new is None else "Update")
            duration.observe(clock.monotonic() - began, (label,))

        return handle

    def pod(self, old: Object | None, new: Object | None) -> None:
        """Handle a change of a pod."""
        if new is None:
            self._pod_gone(old)
            return
        try:
            info = self._cluster.reader.read(new)
        except (ValueError, KeyError, TypeError) as problem:
            metadata = new["metadata"]
            key = f"{metadata.get('namespace')}/{metadata['name']}"
            _log.error("pod is invalid", key=key, error=problem)
            return
        if info.node_name:
            self._assigned(info)
        elif info.spec.scheduler_name in self._scheduler.profiles:
            self._waiting(info)

    def _assigned(self, pod: PodInfo) -> None:
        queue = self._scheduler.queue
        if self._unscheduled.pop(pod.uid, None) is not None:
            queue.delete(pod.uid)
        before = self._cluster.pod(pod.uid)
        known = before is not None and not self._cluster.is_assumed(pod.uid)
        self._cluster.set_pod(pod)
        if not known:
            queue.move(ASSIGNED_POD_ADD, None, pod)
        elif before is not None and queue.listening:
            for action in _pod_actions(before, pod):
                queue.move(ClusterEvent(ASSIGNED_POD, action), before, pod)

    def _waiting(self, pod: PodInfo) -> None:
        queue = self._scheduler.queue
        before = self._unscheduled.get(pod.uid)
        self._unscheduled[pod.uid] = pod
        if self._cluster.is_assumed(pod.uid):
            return
        if before is None:
            queue.add(pod)
        else:
            queue.update(before, pod)

    def _pod_gone(self, last: Object | None) -> None:
        if last is None:
            return
        uid = last["metadata"].get("uid") or ""
        pod = self._unscheduled.pop(uid, None)
        if pod is not None:
            self._unscheduled_gone(pod)
        bound = bool((last.get("spec") or {}).get("nodeName"))
        # An assumed pod that was never bound is given back by its failing binding instead.
        if bound or not self._cluster.is_assumed(uid):
            gone = self._cluster.remove_pod(uid)
            if gone is not None:
                self._scheduler.queue.move(ASSIGNED_POD_DELETE, gone, None)

    def _unscheduled_gone(self, pod: PodInfo) -> None:
        queue = self._scheduler.queue
        nominated = bool(self._scheduler.nominations.node_of(pod.uid))
        queue.delete(pod.uid)
        if self._scheduler.waiting.reject(pod.uid):
            queue.move(ASSIGNED_POD_DELETE, pod, None)
        elif nominated:
            # Lesser pods treated it as if it were on its node already.
            queue.move(ASSIGNED_POD_DELETE, pod, None, lambda other: other.priority <= pod.priority)

    def node(self, old: Object | None, new: Object | None) -> None:
        """Handle a change of a node."""
        queue = self._scheduler.queue
        if new is None:
            if old is not None:
                self._cluster.remove_node(old["metadata"]["name"])
                queue.move(ClusterEvent(NODE, Action.DELETE), NodeInfo(old), None)
            return
        self._cluster.set_node(new)
        if not queue.listening:
            return
        if old is None:
            queue.move(NODE_ADD, None, NodeInfo(new))
            return
        before, after = NodeInfo(old), NodeInfo(new)
        for action in _node_actions(before, after):
            queue.move(ClusterEvent(NODE, action), before, after)

    def namespace(self, old: Object | None, new: Object | None) -> None:
        """Handle a change of a namespace: affinity terms may select it by its labels."""
        metadata = (new or old or {"metadata": {"name": ""}})["metadata"]
        labels = None if new is None else metadata.get("labels") or {}
        self._cluster.set_namespace(metadata["name"], labels)

    def other(self, attribute: str) -> Handler:
        """Return the handler of a kind that plugins look up."""
        store: ObjectStore = self._cluster.objects.store(attribute)
        resource = _EVENTFUL.get(attribute)

        def handle(old: Object | None, new: Object | None) -> None:
            if new is not None:
                store.set(new)
            elif old is not None:
                store.remove(old)
            if resource is not None:
                self._scheduler.queue.move(ClusterEvent(resource, _action(old, new)), old, new)

        return handle


def _action(old: Any, new: Any) -> Action:
    if old is None:
        return Action.ADD
    return Action.DELETE if new is None else Action.UPDATE_OTHER


def _pod_actions(old: PodInfo, new: PodInfo) -> list[Action]:
    found = []
    if old.spec.labels != new.spec.labels:
        found.append(Action.UPDATE_POD_LABEL)
    if any(new.spec.requests.get(name, 0) < value for name, value in old.spec.requests.items()):
        found.append(Action.UPDATE_POD_SCALE_DOWN)
    return found


def _node_actions(old: NodeInfo, new: NodeInfo) -> list[Action]:
    """Return the kinds of change; cordoning counts as a change of taints."""
    found = []
    if old.allocatable != new.allocatable:
        found.append(Action.UPDATE_NODE_ALLOCATABLE)
    if old.labels != new.labels:
        found.append(Action.UPDATE_NODE_LABEL)
    if old.taints != new.taints or old.unschedulable != new.unschedulable:
        found.append(Action.UPDATE_NODE_TAINT)
    if _conditions(old) != _conditions(new):
        found.append(Action.UPDATE_NODE_CONDITION)
    before = old.node["metadata"].get("annotations") or {}
    if before != (new.node["metadata"].get("annotations") or {}):
        found.append(Action.UPDATE_NODE_ANNOTATION)
    return found


def _conditions(node: NodeInfo) -> dict[str, str]:
    listed = node.status().get("conditions") or ()
    return {item.get("type", ""): item.get("status", "") for item in listed}
