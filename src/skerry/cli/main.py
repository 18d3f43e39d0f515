"""The skerry command."""

from __future__ import annotations

import click

import skerry
from skerry.cli.extras import EXTRAS_OF_COMMANDS
from skerry.cli.lazy import LazyGroup

# Where each command is; its function has the command's name.
_MODULES = {
    "serve": "serve",
    "hub": "hub",
    "console": "console",
    "controllers": "controllers",
    "scheduler": "scheduler",
    "syncer": "syncer",
    "edge": "edge",
    "envtest": "envtest",
    "up": "up",
    "down": "up",
    "status": "up",
    "explain": "explain",
    "logs": "logs",
    "exec": "exec",
    "port-forward": "port_forward",
    "history": "history",
    "diff": "diff",
    "fleet": "fleet",
    "grants": "grants",
    "query": "query",
    "rollout": "rollout",
    "whatif": "whatif",
    "manifests": "manifests",
    "backup": "backup",
    "restore": "backup",
    "secrets": "secrets",
    "certificates": "certificates",
    "demo": "demo",
    "completion": "completion",
    "docs": "docs",
    "version": "version",
}


@click.group(
    cls=LazyGroup,
    modules=_MODULES,
    extras=EXTRAS_OF_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with: skerry demo",
)
@click.version_option(skerry.__version__, prog_name="skerry")
def main() -> None:
    """Place workloads on very many edge clusters, speaking plain Kubernetes."""
