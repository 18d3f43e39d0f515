"""NodeVolumeLimits: a CSI driver attaches only so many volumes to a node.

A volume counts once however many pods use it. Volumes attached without a pod here, known from
VolumeAttachments, count too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from skerry.api.objects import Object
from skerry.scheduler.cache.node import NodeInfo
from skerry.scheduler.cache.pod import PodInfo
from skerry.scheduler.cache.storage import claims_of, class_name, uses_claim
from skerry.scheduler.framework.events import (
    CSI_NODE,
    POD,
    PVC,
    UPDATE,
    VOLUME_ATTACHMENT,
    Action,
    ClusterEvent,
    Hint,
    Registration,
)
from skerry.scheduler.framework.handle import Handle
from skerry.scheduler.framework.plugin import PreFilterResult
from skerry.scheduler.framework.state import CycleState
from skerry.scheduler.framework.status import SKIP, Status, unresolvable, unschedulable

_REFUSED = unschedulable("node(s) exceed max volume count")


class NodeVolumeLimits:
    name = "NodeVolumeLimits"

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        self._objects = handle.cluster.objects
        self._attached: dict[str, dict[str, str]] = {}
        self._attached_at = -1

    def pre_filter(
        self, state: CycleState, pod: PodInfo
    ) -> tuple[PreFilterResult | None, Status | None]:
        if not pod.spec.volumes:
            return None, SKIP
        return None, None if any(True for _ in claims_of(pod)) else SKIP

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        limits = _limits(self._objects.csi_nodes.get(node.name))
        if not limits:
            return None
        wanted: dict[str, str] = {}
        missing = self._collect(pod, wanted)
        if missing:
            text = f'persistentvolumeclaim "{missing}" not found'
            return unresolvable(f"looking up PVC {pod.namespace}/{missing}: {text}")
        present: dict[str, str] = {}
        for other in node.pods.values():
            if other.spec.volumes:
                self._collect(other, present)
        present.update(self._attachments(node.name))
        fresh = {volume: driver for volume, driver in wanted.items() if volume not in present}
        for driver in set(fresh.values()):
            count = _of(present, driver) + _of(fresh, driver)
            if driver in limits and count > limits[driver]:
                return _REFUSED
        return None

    def _collect(self, pod: PodInfo, into: dict[str, str]) -> str:
        """Add a pod's volumes; returns the first claim that is missing, if any is."""
        missing = ""
        for name, _ in claims_of(pod):
            claim = self._objects.claims.get(name, pod.namespace)
            if claim is None:
                missing = missing or name
                continue
            driver, handle = self._driver(claim)
            if driver:
                into[f"{driver}/{handle}"] = driver
        return missing

    def _driver(self, claim: Object) -> tuple[str, str]:
        """Return the CSI driver behind a claim and what it calls the volume."""
        volume = self._objects.volumes.get((claim.get("spec") or {}).get("volumeName") or "")
        if volume is not None:
            source = (volume.get("spec") or {}).get("csi") or {}
            return source.get("driver", ""), source.get("volumeHandle", "")
        found = self._objects.classes.get(class_name(claim)) if class_name(claim) else None
        if found is None:
            return "", ""
        metadata = claim["metadata"]
        # No volume yet: the claim stands for it, under a name no driver uses.
        return found.get("provisioner", ""), f"\0{metadata.get('namespace')}/{metadata['name']}"

    def _attachments(self, node: str) -> dict[str, str]:
        store = self._objects.attachments
        if store.generation != self._attached_at:
            self._attached, self._attached_at = {}, store.generation
            for item in store:
                self._note_attachment(item.get("spec") or {})
        return self._attached.get(node, {})

    def _note_attachment(self, spec: Mapping[str, Any]) -> None:
        name = (spec.get("source") or {}).get("persistentVolumeName")
        volume = self._objects.volumes.get(name) if name else None
        source = ((volume or {}).get("spec") or {}).get("csi")
        if spec.get("attacher") and source:
            key = f"{source.get('driver')}/{source.get('volumeHandle')}"
            self._attached.setdefault(spec.get("nodeName", ""), {})[key] = source["driver"]

    def events_to_register(self) -> Sequence[Registration]:
        return [
            Registration(ClusterEvent(CSI_NODE, Action.ADD | UPDATE), self._after_csi_node),
            Registration(ClusterEvent(POD, Action.DELETE), self._after_pod_deleted),
            Registration(ClusterEvent(PVC, Action.ADD), self._after_claim_added),
            Registration(ClusterEvent(VOLUME_ATTACHMENT, Action.DELETE)),
        ]

    def _after_csi_node(self, pod: PodInfo, old: Any, new: Any) -> Hint:
        if old is None:
            return Hint.QUEUE
        before, after = _limits(old), _limits(new)
        higher = any(after.get(driver, 2**31) > limit for driver, limit in before.items())
        return Hint.QUEUE if higher else Hint.SKIP

    def _after_pod_deleted(self, pod: PodInfo, old: Any, new: Any) -> Hint:
        frees = isinstance(old, PodInfo) and old.node_name and any(True for _ in claims_of(old))
        return Hint.QUEUE if frees else Hint.SKIP

    def _after_claim_added(self, pod: PodInfo, old: Any, new: Any) -> Hint:
        return Hint.QUEUE if uses_claim(pod, new) else Hint.SKIP


def _limits(csi_node: Object | None) -> dict[str, int]:
    drivers = ((csi_node or {}).get("spec") or {}).get("drivers") or ()
    return {
        item["name"]: int(item["allocatable"]["count"])
        for item in drivers
        if (item.get("allocatable") or {}).get("count") is not None
    }


def _of(volumes: Mapping[str, str], driver: str) -> int:
    return sum(found == driver for found in volumes.values())
