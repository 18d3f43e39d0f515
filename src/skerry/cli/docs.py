"""skerry docs: the reference pages that come from code."""

from __future__ import annotations

from pathlib import Path

import click

from skerry.app import reference


@click.command(epilog="\b\nExample:\n  skerry docs --write docs/reference\n")
@click.option(
    "--write",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="Folder to write the pages to.",
)
@click.pass_context
def docs(context: click.Context, directory: Path) -> None:
    """Write the reference pages that are made from the code."""
    root = context.find_root().command
    if isinstance(root, click.Group):
        reference.write(directory, root)
