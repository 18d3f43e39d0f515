"""What the workers of one node share."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from skerry.edge.agent.control_groups import ControlGroups
from skerry.edge.agent.host_access import HostAccess
from skerry.edge.agent.network import Network
from skerry.edge.agent.refusals import NodePolicy
from skerry.edge.agent.runtime import ContainerRuntime
from skerry.edge.agent.settings import AgentSettings
from skerry.edge.agent.sources import PodSources
from skerry.kit.clock import Clock
from skerry.runtime.client import Client
from skerry.runtime.events import EventRecorder


@dataclass(frozen=True)
class NodeContext:
    """One node's parts. ``root`` holds a directory per pod, named by uid."""

    name: str
    number: int
    host_ip: str
    root: Path
    client: Client
    runtime: ContainerRuntime
    network: Network
    sources: PodSources
    recorder: EventRecorder
    settings: AgentSettings = field(default_factory=AgentSettings)
    allocatable: Mapping[str, str] = field(default_factory=dict)
    dns_address: str = ""
    access: HostAccess = field(default_factory=HostAccess)
    control_groups: ControlGroups = field(default_factory=ControlGroups)

    @property
    def policy(self) -> NodePolicy:
        """What pods are refused by."""
        abilities = self.runtime.abilities
        return NodePolicy(abilities, self.access, os.geteuid(), os.getegid())

    @property
    def clock(self) -> Clock:
        return self.client.clock
