"""skerry version: which one this is."""

from __future__ import annotations

import click

import skerry
from skerry.cli.printing import show


@click.command(epilog="\b\nExample:\n  skerry version\n")
def version() -> None:
    """Print the version of this program."""
    show(f"skerry {skerry.__version__}")
