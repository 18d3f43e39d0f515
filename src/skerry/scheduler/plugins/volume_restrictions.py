"""VolumeRestrictions: disks that cannot be shared, and claims only one pod may use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skerry.api.objects import Object
from skerry.scheduler.cache.node import NodeInfo
from skerry.scheduler.cache.pod import PodInfo
from skerry.scheduler.cache.storage import claims_of, uses_claim
from skerry.scheduler.framework.events import (
    NODE,
    POD,
    PVC,
    Action,
    ClusterEvent,
    Hint,
    Registration,
)
from skerry.scheduler.framework.handle import Handle
from skerry.scheduler.framework.plugin import PreFilterResult
from skerry.scheduler.framework.state import CycleState
from skerry.scheduler.framework.status import SKIP, Status, unresolvable, unschedulable

_DISK = unschedulable("node(s) had no available disk")
_ONCE = unschedulable(
    "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"
)
_DISKS = ("gcePersistentDisk", "awsElasticBlockStore", "iscsi", "rbd")


@dataclass(slots=True)
class _State:
    exclusive: frozenset[str]
    conflicts: int

    def clone(self) -> _State:
        return _State(self.exclusive, self.conflicts)


class VolumeRestrictions:
    name = "VolumeRestrictions"

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        self._cluster = handle.cluster

    def pre_filter(
        self, state: CycleState, pod: PodInfo
    ) -> tuple[PreFilterResult | None, Status | None]:
        if not pod.spec.volumes:
            return None, SKIP
        disks = any(disk in volume for volume in pod.spec.volumes for disk in _DISKS)
        exclusive: set[str] = set()
        for name, ephemeral in claims_of(pod):
            if ephemeral:
                continue
            claim = self._cluster.objects.claims.get(name, pod.namespace)
            if claim is None:
                return None, unresolvable(f'persistentvolumeclaim "{name}" not found')
            if "ReadWriteOncePod" in ((claim.get("spec") or {}).get("accessModes") or ()):
                exclusive.add(name)
        conflicts = sum(self._used(name, pod) for name in exclusive)
        if not disks and not conflicts:
            return None, SKIP
        state.write(self.name, _State(frozenset(exclusive), conflicts))
        return None, None

    def _used(self, claim: str, pod: PodInfo) -> bool:
        return any(
            other.namespace == pod.namespace and other.uid != pod.uid and _uses(other, {claim})
            for other in self._cluster.pods()
            if other.spec.volumes
        )

    def add_item(
        self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo
    ) -> Status | None:
        self._shift(state, pod, added, 1)
        return None

    def remove_item(
        self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo
    ) -> Status | None:
        self._shift(state, pod, removed, -1)
        return None

    def _shift(self, state: CycleState, pod: PodInfo, other: PodInfo, sign: int) -> None:
        prepared: _State | None = state.read(self.name)
        if prepared is not None and other.namespace == pod.namespace:
            # Counted by volume, as the claims in conflict were: a pod may use several of them.
            used = sum(name in prepared.exclusive for name, _ in claims_of(other))
            prepared.conflicts += sign * used

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        for other in node.pods.values():
            if other.spec.volumes and _clash(pod.spec.volumes, other.spec.volumes):
                return _DISK
        prepared: _State = state.read(self.name)
        return _ONCE if prepared.conflicts > 0 else None

    def events_to_register(self) -> Sequence[Registration]:
        return [
            Registration(ClusterEvent(POD, Action.DELETE), self._after_pod_deleted),
            Registration(ClusterEvent(NODE, Action.ADD)),
            Registration(ClusterEvent(PVC, Action.ADD), self._after_claim_added),
        ]

    def _after_pod_deleted(self, pod: PodInfo, old: Any, new: Any) -> Hint:
        if not isinstance(old, PodInfo) or old.namespace != pod.namespace:
            return Hint.SKIP
        shared = {name for name, _ in claims_of(pod)}
        clash = _clash(pod.spec.volumes, old.spec.volumes) or _uses(old, shared)
        return Hint.QUEUE if clash else Hint.SKIP

    def _after_claim_added(self, pod: PodInfo, old: Any, new: Any) -> Hint:
        return Hint.QUEUE if uses_claim(pod, new) else Hint.SKIP


def _uses(pod: PodInfo, claims: frozenset[str] | set[str]) -> bool:
    return any(name in claims for name, _ in claims_of(pod))


def _clash(mine: Sequence[Object], theirs: Sequence[Object]) -> bool:
    return any(_same_disk(one, other) for one in mine for other in theirs)


def _same_disk(one: Object, other: Object) -> bool:
    """Tell whether two inline volumes are one disk that cannot be shared this way."""
    for kind in _DISKS:
        first, second = one.get(kind), other.get(kind)
        if first is None or second is None:
            continue
        shared = bool(first.get("readOnly")) and bool(second.get("readOnly"))
        same = {
            "gcePersistentDisk": lambda a, b: a.get("pdName") == b.get("pdName"),
            "awsElasticBlockStore": lambda a, b: a.get("volumeID") == b.get("volumeID"),
            "iscsi": lambda a, b: a.get("iqn") == b.get("iqn"),
            "rbd": _same_image,
        }[kind](first, second)
        if same and (kind == "awsElasticBlockStore" or not shared):
            return True
    return False


def _same_image(one: Object, other: Object) -> bool:
    return (
        bool(set(one.get("monitors") or ()) & set(other.get("monitors") or ()))
        and (one.get("pool") or "rbd") == (other.get("pool") or "rbd")
        and one.get("image") == other.get("image")
    )
