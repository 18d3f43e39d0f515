"""The skerry command."""

from __future__ import annotations

import click

import skerry
from skerry.cli.extras import EXTRAS_OF_COMMANDS
from skerry.cli.lazy import LazyGroup, Listed

_SECTIONS = {
    "Begin": {
        "demo": Listed("demo", "Play the example scenario: two edges, two workloads."),
        "up": Listed("up", "Run a hub and its controllers, restarted when they fail."),
        "down": Listed("up", "Stop a hub and its controllers; what they keep stays."),
        "status": Listed("up", "Say what runs."),
        "edge": Listed("edge", "Run edge clusters on this machine; let edges join a hub."),
    },
    "See": {
        "fleet": Listed("fleet", "Show all edges and placements, the worst first."),
        "console": Listed("console", "Open the console of the hub in a browser."),
        "explain": Listed("explain", "Explain why an object is, or is not, at an edge."),
        "query": Listed("query", "Ask the copies at all edges one question."),
        "history": Listed("history", "Show who decided what about placements, when and why."),
        "diff": Listed("diff", "Show what changed between two times."),
    },
    "Steer": {
        "whatif": Listed("whatif", "Show what the objects in a file would change, before they do."),
        "rollout": Listed("rollout", "Show and steer Rollouts: approve, pause, abort, undo."),
        "grants": Listed("grants", "Show and confirm whose workloads your Locations take."),
        "logs": Listed("logs", "Show the log of a pod at an edge, through the hub."),
        "exec": Listed("exec", "Run a command in a pod at an edge, through the hub."),
        "port-forward": Listed("port_forward", "Forward local ports to a pod at an edge."),
    },
    "Run one part": {
        "hub": Listed("hub", "Run a hub: an API server with workspaces and exports."),
        "controllers": Listed("controllers", "Run the edge controllers against a hub."),
        "syncer": Listed("syncer", "Make one edge cluster run what its mailbox says, and report."),
        "serve": Listed("serve", "Run a plain Kubernetes API server."),
        "scheduler": Listed("scheduler", "Place pods on nodes of any Kubernetes cluster."),
        "envtest": Listed("envtest", "Run controller-runtime's envtest on this server."),
    },
    "Look after it": {
        "backup": Listed("backup", "Write a consistent copy of a server to a file, while it runs."),
        "restore": Listed("backup", "Fill an empty store from a backup."),
        "secrets": Listed("secrets", "Rotate the keys that Secrets are encrypted with."),
        "certificates": Listed("certificates", "Rotate certificate authorities and signing keys."),
    },
    "Other": {
        "manifests": Listed("manifests", "Print the definitions and exports of the edge kinds."),
        "completion": Listed("completion", "Print a script that completes skerry in a shell."),
        "docs": Listed("docs", "Write the reference pages that are made from the code."),
        "version": Listed("version", "Print the version of this program."),
    },
}


@click.group(
    cls=LazyGroup,
    sections=_SECTIONS,
    extras=EXTRAS_OF_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with: skerry demo",
)
@click.version_option(skerry.__version__, prog_name="skerry")
def main() -> None:
    """Place workloads on very many edge clusters, speaking plain Kubernetes."""
