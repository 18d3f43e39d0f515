"""A hub that is not ours: a kcp that somebody names.

``SKERRY_E2E_KCP=KUBECONFIG pytest tests/e2e/rollout`` runs the suite against the kcp that this
administrator's kubeconfig leads to. The workspaces ``espw``, ``imw`` and ``shop`` are made below
its root, and removed in the end.
"""

from __future__ import annotations

import os
from pathlib import Path

from tests.kit.e2e.hubs import Hub, Shell
from tests.kit.e2e.summaries import binding, manifests

_ROOT = Path(__file__).parents[3]
EDGE_API = binding("bind-espw", "root:espw", "edge.kcp.io")
_KUBERNETES = binding("bind-kubernetes", "root:compute", "kubernetes")
_BOUND = "kubectl wait --for=jsonpath='{.status.phase}'=Bound apibinding --all --timeout=110s"


class OurHub:
    """A hub of ours, alone with its test."""

    edges = tuple(f"e{number}" for number in range(1, 21))
    # Until when a good image is surely available, and a broken one is not.
    deadline = "5s"

    def __init__(self, folder: Path) -> None:
        self._hub = Hub(folder / "hub", "--init")

    @property
    def kubeconfig(self) -> Path:
        return self._hub.kubeconfig

    def start(self) -> None:
        self._hub.start()

    def stop(self) -> None:
        self._hub.stop()

    def clean(self) -> None:
        """It goes with all that it has."""

    def install(self, shell: Shell) -> None:
        """Make the inventory and the workload workspace; the provider is there."""
        shell("kubectl ws root\nkubectl ws create imw\nkubectl kubestellar ensure wmw shop")
        shell(f"kubectl ws root:imw\n{manifests(EDGE_API)}")


class ForeignHub:
    """A kcp that was there before us and stays; a mailbox there takes seconds."""

    edges = OurHub.edges[:6]
    deadline = "30s"

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        self.kubeconfig = kubeconfig
        home = folder / "administrator"
        home.mkdir()
        self._shell = Shell(kubeconfig, home, _ROOT)

    def start(self) -> None:
        """Give it what ``docs/how-to/foreign-kcp.md`` says."""
        self._shell(
            "kubectl ws root\nkubectl ws create espw --enter\n"
            "kubectl apply -f config/crds -f config/exports\n"
            "kubectl ws root:compute\nkubectl apply -f config/compute"
        )

    def stop(self) -> None:
        """Remove the provider, when nobody runs that needs it."""
        self._shell("kubectl ws root\nkubectl delete workspace espw")

    def clean(self) -> None:
        """Remove what the controllers let go of, while they run."""
        self._shell("kubectl ws root\nkubectl delete workspace --ignore-not-found shop imw")

    def install(self, shell: Shell) -> None:
        """Make the inventory and the workload workspace, and wait for what they bind."""
        shell("kubectl ws root\nkubectl ws create imw\nkubectl ws create shop")
        shell(f"kubectl ws root:imw\n{manifests(EDGE_API)}{_BOUND}")
        shell(f"kubectl ws root:shop\n{manifests(EDGE_API, _KUBERNETES)}{_BOUND}")


def hub_for(folder: Path) -> OurHub | ForeignHub:
    """Return the hub that somebody names, else one of ours."""
    named = os.environ.get("SKERRY_E2E_KCP", "")
    return ForeignHub(Path(named), folder) if named else OurHub(folder)
