"""Feature gates: which of Kubernetes' switches mean something here.

A gate is known when kube-scheduler 1.32 acts on it. One can be switched; all others have the one
value that describes what this scheduler does, and asking for the other is refused rather than
silently ignored: whoever writes ``DynamicResourceAllocation=true`` counts on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

QUEUEING_HINTS = "SchedulerQueueingHints"

# Whether each feature is here; those with None may be switched, and are on by default.
_GATES: Mapping[str, bool | None] = {
    QUEUEING_HINTS: None,
    "MatchLabelKeysInPodAffinity": True,
    "MatchLabelKeysInPodTopologySpread": True,
    "MinDomainsInPodTopologySpread": True,
    "NodeInclusionPolicyInPodTopologySpread": True,
    "PodDisruptionConditions": True,
    "PodSchedulingReadiness": True,
    "SidecarContainers": True,
    "DRAControlPlaneController": False,
    "DynamicResourceAllocation": False,
    "InPlacePodVerticalScaling": False,
    "PodLevelResources": False,
    "SchedulerAsyncPreemption": False,
    "StorageCapacityScoring": False,
    "VolumeCapacityPriority": False,
    # Every experimental feature there is; off, as none is here.
    "AllAlpha": False,
}
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})


class GateError(ValueError):
    """A gate that is unknown, has no value that makes sense, or cannot be had."""


@dataclass(frozen=True, slots=True)
class Gates:
    """What the gates come down to."""

    queueing_hints: bool = True


def known_gates() -> list[tuple[str, str]]:
    """Return every gate with what may be said of it, for documentation."""
    shown = {None: "true or false, by default true", True: "true", False: "false"}
    return [(name, shown[value]) for name, value in sorted(_GATES.items())]


def parse_gates(text: str) -> Gates:
    """Read ``Name=bool,…``; raises GateError in Kubernetes' words where it has them."""
    hints = True
    for part in filter(None, (item.strip() for item in text.split(","))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise GateError(f"missing bool value for {name}")
        if name not in _GATES:
            raise GateError(f"unrecognized feature gate: {name}")
        wanted, here = _boolean(name, value), _GATES[name]
        if here is None:
            hints = wanted
        elif wanted is not here:
            locked = str(here).lower()
            raise GateError(
                f"cannot set feature gate {name} to {str(wanted).lower()}, "
                f"feature is locked to {locked}"
            )
    return Gates(hints)


def _boolean(name: str, text: str) -> bool:
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise GateError(
        f'invalid value of {name}={text}, err: strconv.ParseBool: parsing "{text}": invalid syntax'
    )
