"""The skerry command."""

from __future__ import annotations

import click

import skerry
from skerry.cli.backup import backup, restore
from skerry.cli.controllers import controllers
from skerry.cli.demo import demo
from skerry.cli.docs import docs
from skerry.cli.edge import edge
from skerry.cli.explain import explain
from skerry.cli.hub import hub
from skerry.cli.manifests import manifests
from skerry.cli.scheduler import scheduler
from skerry.cli.serve import serve
from skerry.cli.syncer import syncer
from skerry.cli.up import down, status, up
from skerry.cli.whatif import whatif


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with: skerry serve --data-dir .skerry",
)
@click.version_option(skerry.__version__, prog_name="skerry")
def main() -> None:
    """Place workloads on very many edge clusters, speaking plain Kubernetes."""


main.add_command(serve)
main.add_command(hub)
main.add_command(controllers)
main.add_command(scheduler)
main.add_command(syncer)
main.add_command(edge)
main.add_command(manifests)
main.add_command(backup)
main.add_command(restore)
main.add_command(demo)
main.add_command(docs)
main.add_command(explain)
main.add_command(whatif)
main.add_command(up)
main.add_command(down)
main.add_command(status)
