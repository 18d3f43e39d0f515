"""skerry demo: a tour of what is there."""

from __future__ import annotations

import click


@click.command()
@click.option("--once", is_flag=True, help="Tear down and exit when the tour is over.")
def demo(once: bool) -> None:
    """Start a server and play the tour."""
    raise click.ClickException("not yet")
