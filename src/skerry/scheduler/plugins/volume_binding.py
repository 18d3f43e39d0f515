"""VolumeBinding: volumes and pods meet on one node.

Bound claims restrict the pod to nodes their volumes can be reached from. Claims that wait for
their first consumer are matched with free volumes, or promised to a provisioner with capacity, on
each node looked at. Reserve keeps other pods off what was chosen; PreBind writes it down and waits
until the volume controller and the provisioner have done their part.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skerry.api.errors import ApiError
from skerry.api.objects import Object
from skerry.logic.machinery.quantity import Quantity
from skerry.logic.machinery.selectors import Selector
from skerry.runtime.transport import TransportError
from skerry.scheduler.cache.node import NodeInfo
from skerry.scheduler.cache.objects import key_of
from skerry.scheduler.cache.pod import PodInfo
from skerry.scheduler.cache.storage import (
    BOUND_BY_CONTROLLER,
    NO_PROVISIONER,
    SELECTED_NODE,
    best_volume,
    claims_of,
    class_name,
    is_bound,
    reachable,
    storage_request,
    topology_allows,
    uses_claim,
    volume_terms,
    waits_for_consumer,
)
from skerry.scheduler.cache.terms import NodeRequirement
from skerry.scheduler.framework.events import (
    CSI_CAPACITY,
    CSI_DRIVER,
    CSI_NODE,
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
from skerry.scheduler.framework.plugin import PreFilterResult, Verdicts
from skerry.scheduler.framework.state import CycleState
from skerry.scheduler.framework.status import SKIP, Status, error, unresolvable
from skerry.scheduler.table import Rows

_UNBOUND = unresolvable("pod has unbound immediate PersistentVolumeClaims")
_UNREACHABLE = "node(s) had volume node affinity conflict"
_NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
_NO_SPACE = "node(s) did not have enough free storage"
_LOST = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"


@dataclass(slots=True)
class _Choice:
    """What one node would use: volumes for claims, and claims to provision."""

    bindings: list[tuple[Object, Object]] = field(default_factory=list)
    provisions: list[Object] = field(default_factory=list)


@dataclass(slots=True)
class _State:
    bound: list[Object]
    waiting: list[Object]
    by_node: dict[str, _Choice] = field(default_factory=dict)


class VolumeBinding:
    name = "VolumeBinding"

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        self._handle = handle
        self._table = handle.cluster.table
        self._objects = handle.cluster.objects
        seconds = args.get("bindTimeoutSeconds")
        self._timeout_seconds = 600.0 if seconds is None else float(seconds)
        # Reserved but not yet written: volume name → claim key, claim key → node.
        self._volumes: dict[str, str] = {}
        self._claims: dict[str, str] = {}

    def pre_filter(
        self, state: CycleState, pod: PodInfo
    ) -> tuple[PreFilterResult | None, Status | None]:
        if not pod.spec.volumes:
            return None, SKIP
        claims: list[Object] = []
        for name, ephemeral in claims_of(pod):
            claim = self._objects.claims.get(name, pod.namespace)
            problem = _claim_problem(claim, name, pod, ephemeral)
            if claim is None or problem:
                return None, unresolvable(problem)
            claims.append(claim)
        if not claims:
            return None, SKIP
        bound = [claim for claim in claims if is_bound(claim)]
        waiting = [claim for claim in claims if self._waits(claim)]
        if len(bound) + len(waiting) < len(claims):
            return None, _UNBOUND
        state.write(self.name, _State(bound, waiting))
        return None, None

    def _waits(self, claim: Object) -> bool:
        """Tell whether a claim is bound where its pod goes; one that names a volume is not."""
        named = (claim.get("spec") or {}).get("volumeName")
        return not named and waits_for_consumer(claim, self._objects)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        prepared: _State = state.read(self.name)
        reasons = self._bound_reasons(prepared.bound, node)
        choice = _Choice()
        if prepared.waiting:
            reasons += self._choose(prepared.waiting, node, choice)
        if reasons:
            return unresolvable(*sorted(reasons, key=_REASON_ORDER.index))
        prepared.by_node[node.name] = choice
        return None

    def filter_all(self, state: CycleState, pod: PodInfo, rows: Rows) -> Verdicts | None:
        """Answer for bound claims by arrays; claims that wait are matched node by node."""
        prepared: _State = state.read(self.name)
        if prepared.waiting:
            return self._one_by_one(state, pod, rows)
        codes = np.zeros(len(rows), np.int16)
        for claim in prepared.bound:
            volume = self._objects.volumes.get(claim["spec"]["volumeName"])
            if volume is None:
                codes[codes == 0] = 2
                continue
            terms = volume_terms(volume)
            if terms is not None:
                allowed = self._table.matching(NodeRequirement((), terms), rows)
                codes[(codes == 0) & ~allowed] = 1
        return Verdicts(codes, (unresolvable(_UNREACHABLE), unresolvable(_LOST)))

    def _one_by_one(self, state: CycleState, pod: PodInfo, rows: Rows) -> Verdicts:
        statuses: list[Status] = []
        codes = np.zeros(len(rows), np.int16)
        for index, row in enumerate(rows.tolist()):
            status = self.filter(state, pod, self._table.target(row))
            if status is not None:
                if status not in statuses:
                    statuses.append(status)
                codes[index] = statuses.index(status) + 1
        return Verdicts(codes, statuses)

    def _bound_reasons(self, claims: Sequence[Object], node: NodeInfo) -> list[str]:
        for claim in claims:
            volume = self._objects.volumes.get(claim["spec"]["volumeName"])
            if volume is None:
                return [_LOST]
            if not reachable(volume, node.name, node.labels):
                return [_UNREACHABLE]
        return []

    def _choose(self, claims: Sequence[Object], node: NodeInfo, choice: _Choice) -> list[str]:
        """Match waiting claims on one node; returns why that cannot be."""
        provision: list[Object] = []
        taken = set(self._volumes)
        for claim in sorted(claims, key=lambda item: storage_request(item) or 0):
            annotations = claim["metadata"].get("annotations") or {}
            selected = self._claims.get(key_of(claim)) or annotations.get(SELECTED_NODE)
            if selected is not None:
                if selected != node.name:
                    return [_NO_VOLUME]
                provision.append(claim)
                continue
            volume = best_volume(claim, iter(self._objects.volumes), node.name, node.labels, taken)
            if volume is None:
                provision.append(claim)
            else:
                taken.add(volume["metadata"]["name"])
                choice.bindings.append((volume, claim))
        return self._provisionable(provision, node, choice)

    def _provisionable(
        self, claims: Sequence[Object], node: NodeInfo, choice: _Choice
    ) -> list[str]:
        for claim in claims:
            found = self._objects.classes.get(class_name(claim))
            provisioner = (found or {}).get("provisioner", "")
            if found is None or provisioner in ("", NO_PROVISIONER):
                return [_NO_VOLUME]
            if not topology_allows(found.get("allowedTopologies"), node.labels):
                return [_NO_VOLUME]
            if not self._has_space(provisioner, claim, found, node):
                return [_NO_SPACE]
            choice.provisions.append(claim)
        return []

    def _has_space(
        self, provisioner: str, claim: Object, storage_class: Object, node: NodeInfo
    ) -> bool:
        wanted = storage_request(claim)
        driver = self._objects.csi_drivers.get(provisioner)
        if wanted is None or not ((driver or {}).get("spec") or {}).get("storageCapacity"):
            return True
        return any(
            item.get("storageClassName") == storage_class["metadata"]["name"]
            and _space(item) >= wanted
            and Selector.from_label_selector(item.get("nodeTopology")).matches(node.labels)
            for item in self._objects.capacities
        )

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status | None:
        choice = self._choice(state, node)
        for volume, claim in choice.bindings:
            self._volumes[volume["metadata"]["name"]] = key_of(claim)
        for claim in choice.provisions:
            self._claims[key_of(claim)] = node
        return None

    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        choice = self._choice(state, node)
        for volume, _ in choice.bindings:
            self._volumes.pop(volume["metadata"]["name"], None)
        for claim in choice.provisions:
            self._claims.pop(key_of(claim), None)

    def _choice(self, state: CycleState, node: str) -> _Choice:
        prepared: _State | None = state.read(self.name)
        return _Choice() if prepared is None else prepared.by_node.get(node, _Choice())

    async def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> Status | None:
        choice = self._choice(state, node)
        if not choice.bindings and not choice.provisions:
            return None
        claims = [claim for _, claim in choice.bindings] + choice.provisions
        try:
            for volume, claim in choice.bindings:
                await self._handle.writer.update("volumes", _bound_to(volume, claim))
            for claim in choice.provisions:
                await self._handle.writer.update("claims", _selected(claim, node))
            async with asyncio.timeout(self._timeout_seconds):
                await self._all_bound(claims, node)
        except TimeoutError:
            return error(f"binding volumes: timed out after {self._timeout_seconds:g}s")
        except (ApiError, TransportError, _ProvisioningFailed) as problem:
            return error(f"binding volumes: {problem}", problem)
        self.unreserve(state, pod, node)
        return None

    async def _all_bound(self, claims: Sequence[Object], node: str) -> None:
        """Wait, looking again whenever some claim changes."""
        changed = asyncio.Event()
        stop = self._objects.claims.subscribe(lambda _: changed.set())
        try:
            while not all(self._has_bound(claim, node) for claim in claims):
                await changed.wait()
                changed.clear()
        finally:
            stop()

    def _has_bound(self, claim: Object, node: str) -> bool:
        metadata = claim["metadata"]
        current = self._objects.claims.get(metadata["name"], metadata.get("namespace") or "")
        if current is None:
            raise _ProvisioningFailed(f'persistentvolumeclaim "{metadata["name"]}" not found')
        seen = current["metadata"].get("annotations") or {}
        selected = key_of(claim) in self._claims
        # A provisioner that gives up takes the annotation away again.
        stale = current["metadata"].get("resourceVersion") == metadata.get("resourceVersion")
        if selected and not stale and seen.get(SELECTED_NODE) != node:
            raise _ProvisioningFailed(f'provisioning failed for PVC "{metadata["name"]}"')
        return is_bound(current)

    def events_to_register(self) -> Sequence[Registration]:
        any_change = Action.ADD | UPDATE
        return [
            Registration(ClusterEvent(STORAGE_CLASS, any_change)),
            Registration(ClusterEvent(PVC, any_change), self._after_claim_change),
            Registration(ClusterEvent(PV, any_change)),
            Registration(ClusterEvent(NODE, Action.ADD | Action.UPDATE_NODE_LABEL)),
            Registration(ClusterEvent(CSI_NODE, any_change)),
            Registration(ClusterEvent(CSI_DRIVER, UPDATE), self._after_driver_change),
            Registration(ClusterEvent(CSI_CAPACITY, any_change), self._after_capacity_change),
        ]

    def _after_claim_change(self, pod: PodInfo, old: Any, new: Any) -> Hint:
        return Hint.QUEUE if uses_claim(pod, new) else Hint.SKIP

    def _after_driver_change(self, pod: PodInfo, old: Any, new: Any) -> Hint:
        before = ((old or {}).get("spec") or {}).get("storageCapacity")
        after = ((new or {}).get("spec") or {}).get("storageCapacity")
        return Hint.QUEUE if before and not after else Hint.SKIP

    def _after_capacity_change(self, pod: PodInfo, old: Any, new: Any) -> Hint:
        grown = new is not None and (old is None or _space(new) > _space(old))
        return Hint.QUEUE if grown else Hint.SKIP


_REASON_ORDER = (_UNREACHABLE, _NO_VOLUME, _NO_SPACE, _LOST)


class _ProvisioningFailed(Exception):
    """A claim will not be bound on the chosen node."""


def _claim_problem(claim: Object | None, name: str, pod: PodInfo, ephemeral: bool) -> str:
    if claim is None:
        if ephemeral:
            return (
                "waiting for ephemeral volume controller to create the persistentvolumeclaim "
                f'"{name}"'
            )
        return f'persistentvolumeclaim "{name}" not found'
    if (claim.get("status") or {}).get("phase") == "Lost":
        volume = (claim.get("spec") or {}).get("volumeName", "")
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"'
    if claim["metadata"].get("deletionTimestamp") is not None:
        return f'persistentvolumeclaim "{name}" is being deleted'
    owners = claim["metadata"].get("ownerReferences") or ()
    if ephemeral and not any(owner.get("uid") == pod.uid for owner in owners):
        return f"PVC {pod.namespace}/{name} was not created for pod {pod.key} (pod is not owner)"
    return ""


def _space(capacity: Object) -> int:
    """Return the largest volume a capacity object promises; -1 when it promises none."""
    text = capacity.get("maximumVolumeSize") or capacity.get("capacity")
    return -1 if text is None else Quantity.parse(text).value()


def _bound_to(volume: Object, claim: Object) -> Object:
    changed = copy.deepcopy(volume)
    metadata = claim["metadata"]
    changed.setdefault("spec", {})["claimRef"] = {
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        "namespace": metadata.get("namespace"),
        "name": metadata["name"],
        "uid": metadata.get("uid"),
        "resourceVersion": metadata.get("resourceVersion"),
    }
    changed["metadata"].setdefault("annotations", {})[BOUND_BY_CONTROLLER] = "yes"
    return changed


def _selected(claim: Object, node: str) -> Object:
    changed = copy.deepcopy(claim)
    changed["metadata"].setdefault("annotations", {})[SELECTED_NODE] = node
    return changed
