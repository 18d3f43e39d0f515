"""Settings of a node agent."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """How one node agent behaves. Tests make waiting shorter; nothing else should."""

    backoff_seconds: float = 10.0
    """First delay before a container that ended again is restarted; doubles each time."""

    max_backoff_seconds: float = 300.0
    """Longest such delay, as kubelet's."""

    calm_seconds: float = 600.0
    """A container that ran this long has its delays forgotten."""

    mount_retry_seconds: float = 2.0
    """How soon a volume that could not be set up is tried again when nothing announces change."""

    lease_seconds: int = 40
    """How long the node counts as alive without a word; kubelet's nodeLeaseDurationSeconds."""

    heartbeat_seconds: float = 10.0
    """How often the node's lease is renewed."""

    max_pods: int = 110
    """Pods the node says it can hold, as kubelet's maxPods."""
