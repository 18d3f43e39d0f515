"""The plugins that come with skerry, under the names kube-scheduler gives them."""

from __future__ import annotations

from typing import Any

from skerry.scheduler.framework.registry import Registry
from skerry.scheduler.plugins.default_binder import DefaultBinder
from skerry.scheduler.plugins.default_preemption import DefaultPreemption
from skerry.scheduler.plugins.image_locality import ImageLocality
from skerry.scheduler.plugins.inter_pod_affinity import InterPodAffinity
from skerry.scheduler.plugins.node_affinity import NodeAffinity
from skerry.scheduler.plugins.node_name import NodeName
from skerry.scheduler.plugins.node_ports import NodePorts
from skerry.scheduler.plugins.node_resources_balanced_allocation import (
    NodeResourcesBalancedAllocation,
)
from skerry.scheduler.plugins.node_resources_fit import NodeResourcesFit
from skerry.scheduler.plugins.node_unschedulable import NodeUnschedulable
from skerry.scheduler.plugins.node_volume_limits import NodeVolumeLimits
from skerry.scheduler.plugins.pod_topology_spread import PodTopologySpread
from skerry.scheduler.plugins.priority_sort import PrioritySort
from skerry.scheduler.plugins.scheduling_gates import SchedulingGates
from skerry.scheduler.plugins.taint_toleration import TaintToleration
from skerry.scheduler.plugins.volume_binding import VolumeBinding
from skerry.scheduler.plugins.volume_restrictions import VolumeRestrictions
from skerry.scheduler.plugins.volume_zone import VolumeZone

_PLUGINS: tuple[Any, ...] = (
    SchedulingGates,
    PrioritySort,
    NodeUnschedulable,
    NodeName,
    TaintToleration,
    NodeAffinity,
    NodePorts,
    NodeResourcesFit,
    VolumeRestrictions,
    NodeVolumeLimits,
    VolumeBinding,
    VolumeZone,
    PodTopologySpread,
    InterPodAffinity,
    DefaultPreemption,
    NodeResourcesBalancedAllocation,
    ImageLocality,
    DefaultBinder,
)


def in_tree_registry() -> Registry:
    """Return a registry of the shipped plugins, fit for merging others into."""
    return Registry({plugin.name: plugin for plugin in _PLUGINS})
