"""VolumeZone: a volume labelled with zones or regions is used only there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from skerry.scheduler.cache.node import REGION, ZONE, NodeInfo
from skerry.scheduler.cache.pod import PodInfo
from skerry.scheduler.cache.storage import WAIT_FOR_CONSUMER, claims_of, class_name, uses_claim
from skerry.scheduler.framework.events import (
    NODE,
    PV,
    PVC,
    STORAGE_CLASS,
    UPDATE,
    Action,
    ClusterEvent,
    Hint,
    Registration,
)
from skerry.scheduler.framework.handle import Handle
from skerry.scheduler.framework.plugin import PreFilterResult
from skerry.scheduler.framework.state import CycleState
from skerry.scheduler.framework.status import SKIP, Status, unresolvable

_REFUSED = unresolvable("node(s) had no available volume zone")
_CURRENT = {
    "failure-domain.beta.kubernetes.io/zone": ZONE,
    "failure-domain.beta.kubernetes.io/region": REGION,
    ZONE: ZONE,
    REGION: REGION,
}


class _Topology(NamedTuple):
    key: str
    values: frozenset[str]


def _zones(label: str) -> frozenset[str]:
    """Return the zones a label lists; none, so that it says nothing, when one has no name."""
    zones = frozenset(part.strip() for part in label.split("__"))
    return frozenset() if "" in zones else zones


class VolumeZone:
    name = "VolumeZone"

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        self._objects = handle.cluster.objects

    def pre_filter(
        self, state: CycleState, pod: PodInfo
    ) -> tuple[PreFilterResult | None, Status | None]:
        if not pod.spec.volumes:
            return None, SKIP
        found: list[_Topology] = []
        for name, ephemeral in claims_of(pod):
            if ephemeral:
                continue
            topologies = self._topologies(name, pod.namespace)
            if isinstance(topologies, Status):
                return None, topologies
            found += topologies
        if not found:
            return None, SKIP
        state.write(self.name, tuple(found))
        return None, None

    def _topologies(self, name: str, namespace: str) -> list[_Topology] | Status:
        if not name:
            return unresolvable("PersistentVolumeClaim had no name")
        claim = self._objects.claims.get(name, namespace)
        if claim is None:
            return unresolvable(f'persistentvolumeclaim "{name}" not found')
        volume_name = (claim.get("spec") or {}).get("volumeName")
        if not volume_name:
            return self._unbound(class_name(claim)) or []
        volume = self._objects.volumes.get(volume_name)
        if volume is None:
            return unresolvable(f'persistentvolume "{volume_name}" not found')
        labels = volume["metadata"].get("labels") or {}
        found = ((key, _zones(labels[key])) for key in _CURRENT if key in labels)
        return [_Topology(key, zones) for key, zones in found if zones]

    def _unbound(self, storage_class: str) -> Status | None:
        """Return what is wrong with a claim that has no volume yet."""
        if not storage_class:
            return unresolvable("PersistentVolumeClaim had no pv name and storageClass name")
        found = self._objects.classes.get(storage_class)
        if found is None:
            return unresolvable(f'storageclass.storage.k8s.io "{storage_class}" not found')
        mode = found.get("volumeBindingMode")
        if not mode:
            return unresolvable(f'VolumeBindingMode not set for StorageClass "{storage_class}"')
        return None if mode == WAIT_FOR_CONSUMER else unresolvable("PersistentVolume had no name")

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        # A node that says nothing of zones is taken for one of a cluster that has none.
        if not any(key in node.labels for key in _CURRENT):
            return None
        for topology in state.read(self.name):
            value = node.labels.get(topology.key, node.labels.get(_CURRENT[topology.key]))
            if value is None or value not in topology.values:
                return _REFUSED
        return None

    def events_to_register(self) -> Sequence[Registration]:
        return [
            Registration(ClusterEvent(STORAGE_CLASS, Action.ADD), self._after_class_added),
            Registration(ClusterEvent(NODE, Action.ADD | Action.UPDATE_NODE_LABEL)),
            Registration(ClusterEvent(PVC, Action.ADD | UPDATE), self._after_claim_change),
            Registration(ClusterEvent(PV, Action.ADD | UPDATE), self._after_volume_change),
        ]

    def _after_class_added(self, pod: PodInfo, old: Any, new: Any) -> Hint:
        waits = new is not None and new.get("volumeBindingMode") == WAIT_FOR_CONSUMER
        return Hint.QUEUE if waits else Hint.SKIP

    def _after_claim_change(self, pod: PodInfo, old: Any, new: Any) -> Hint:
        return Hint.QUEUE if uses_claim(pod, new) else Hint.SKIP

    def _after_volume_change(self, pod: PodInfo, old: Any, new: Any) -> Hint:
        if old is None or new is None:
            return Hint.QUEUE
        before = old["metadata"].get("labels") or {}
        after = new["metadata"].get("labels") or {}
        changed = any(before.get(key) != after.get(key) for key in _CURRENT)
        return Hint.QUEUE if changed else Hint.SKIP
