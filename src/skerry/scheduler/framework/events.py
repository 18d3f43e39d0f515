"""What happens in a cluster, as far as a waiting item cares.

A plugin that turned an item down registers the events that might change its mind, each with a
hint: a function that looks at the changed object and says whether this item is worth another
attempt. Without a hint every such event is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, IntFlag
from typing import Any


class Action(IntFlag):
    """Kinds of change; several may be meant at once."""

    ADD = 1
    DELETE = 2
    UPDATE_NODE_ALLOCATABLE = 4
    UPDATE_NODE_LABEL = 8
    UPDATE_NODE_TAINT = 16
    UPDATE_NODE_CONDITION = 32
    UPDATE_NODE_ANNOTATION = 64
    UPDATE_POD_LABEL = 128
    UPDATE_POD_SCALE_DOWN = 256
    UPDATE_POD_TOLERATIONS = 512
    UPDATE_POD_GATES_ELIMINATED = 1024
    UPDATE_POD_GENERATED_CLAIM = 2048
    # Any other change of an object whose parts are not distinguished.
    UPDATE_OTHER = 4096

    @property
    def label(self) -> str:
        """Return the name metrics use."""
        return _LABELS.get(self, "Update")


UPDATE = (
    Action.UPDATE_NODE_ALLOCATABLE
    | Action.UPDATE_NODE_LABEL
    | Action.UPDATE_NODE_TAINT
    | Action.UPDATE_NODE_CONDITION
    | Action.UPDATE_NODE_ANNOTATION
    | Action.UPDATE_POD_LABEL
    | Action.UPDATE_POD_SCALE_DOWN
    | Action.UPDATE_POD_TOLERATIONS
    | Action.UPDATE_POD_GATES_ELIMINATED
    | Action.UPDATE_POD_GENERATED_CLAIM
    | Action.UPDATE_OTHER
)
ALL = Action.ADD | Action.DELETE | UPDATE

_LABELS = {
    Action.ADD: "Add",
    Action.DELETE: "Delete",
    UPDATE: "Update",
    ALL: "All",
    Action.UPDATE_NODE_ALLOCATABLE: "UpdateNodeAllocatable",
    Action.UPDATE_NODE_LABEL: "UpdateNodeLabel",
    Action.UPDATE_NODE_TAINT: "UpdateNodeTaint",
    Action.UPDATE_NODE_CONDITION: "UpdateNodeCondition",
    Action.UPDATE_NODE_ANNOTATION: "UpdateNodeAnnotation",
    Action.UPDATE_POD_LABEL: "UpdatePodLabel",
    Action.UPDATE_POD_SCALE_DOWN: "UpdatePodScaleDown",
    Action.UPDATE_POD_TOLERATIONS: "UpdatePodTolerations",
    Action.UPDATE_POD_GATES_ELIMINATED: "UpdatePodSchedulingGatesEliminated",
    Action.UPDATE_POD_GENERATED_CLAIM: "UpdatePodGeneratedResourceClaim",
}

POD = "Pod"
ASSIGNED_POD = "AssignedPod"
UNSCHEDULED_POD = "UnscheduledPod"
NODE = "Node"
PVC = "PersistentVolumeClaim"
PV = "PersistentVolume"
STORAGE_CLASS = "storage.k8s.io/StorageClass"
CSI_NODE = "storage.k8s.io/CSINode"
CSI_DRIVER = "storage.k8s.io/CSIDriver"
CSI_CAPACITY = "storage.k8s.io/CSIStorageCapacity"
VOLUME_ATTACHMENT = "storage.k8s.io/VolumeAttachment"
WILDCARD = "*"

RESOURCES = (
    POD,
    NODE,
    PVC,
    PV,
    STORAGE_CLASS,
    CSI_NODE,
    CSI_DRIVER,
    CSI_CAPACITY,
    VOLUME_ATTACHMENT,
)


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """A change of one kind of resource."""

    resource: str
    action: Action
    name: str = ""

    @property
    def label(self) -> str:
        """Return what metrics and logs call the event."""
        if self.name:
            return self.name
        return self.resource + ("" if self.resource == WILDCARD else self.action.label)

    @property
    def wildcard(self) -> bool:
        return self.resource == WILDCARD and self.action == ALL

    def matches(self, other: ClusterEvent) -> bool:
        """Tell whether a registration for this event is for *other* too.

        ``Pod`` covers assigned and unscheduled pods alike.
        """
        if self.wildcard:
            return True
        same = self.resource in (other.resource, WILDCARD) or (
            self.resource == POD and other.resource in (ASSIGNED_POD, UNSCHEDULED_POD)
        )
        return same and bool(self.action & other.action)


FORCED_ACTIVATION = ClusterEvent(WILDCARD, ALL, "ForceActivate")
UNSCHEDULABLE_TIMEOUT = ClusterEvent(WILDCARD, ALL, "UnschedulableTimeout")
ASSIGNED_POD_ADD = ClusterEvent(ASSIGNED_POD, Action.ADD)
ASSIGNED_POD_DELETE = ClusterEvent(ASSIGNED_POD, Action.DELETE)
UNSCHEDULED_POD_ADD = ClusterEvent(UNSCHEDULED_POD, Action.ADD)
NODE_ADD = ClusterEvent(NODE, Action.ADD)


class Hint(Enum):
    """What a plugin thinks of retrying an item after an event."""

    SKIP = "QueueSkip"
    QUEUE = "Queue"


# ``hint(item, old, new)``: either object is None where the event has none.
HintFunction = Callable[[Any, Any, Any], Hint]


@dataclass(frozen=True, slots=True)
class Registration:
    """An event a plugin wants to hear of, and how to judge it; no hint means always retry."""

    event: ClusterEvent
    hint: HintFunction | None = None


# For rejectors that cannot say what would help: anything might.
ANY_EVENT = tuple(Registration(ClusterEvent(resource, ALL)) for resource in RESOURCES)
