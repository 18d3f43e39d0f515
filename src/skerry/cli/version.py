"""skerry version: which one this is."""

from __future__ import annotations

import click

import skerry


@click.command(epilog="\b\nExample:\n  skerry version\n")
def version() -> None:
    """Print the version of this program."""
    print(f"skerry {skerry.__version__}")
