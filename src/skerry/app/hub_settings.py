"""How commands find the hub that they ask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from skerry.wire.kubeconfig import kubeconfig_paths


@dataclass(frozen=True, slots=True)
class HubSettings:
    """How the hub is found."""

    kubeconfig: str = ""
    """File that says where the hub is; empty means what kubectl would take."""

    context: str = ""
    """Context to use; empty means the current one."""

    environment: Mapping[str, str] = field(default_factory=dict)
    """``KUBECONFIG`` and ``HOME``, for the same end."""

    provider: str = ""
    """Path of the provider workspace; empty leaves it to the command."""

    def paths(self) -> list[Path]:
        """Return the kubeconfig files that are meant."""
        home = Path(self.environment.get("HOME", ""))
        return kubeconfig_paths(self.kubeconfig, self.environment.get("KUBECONFIG", ""), home)
