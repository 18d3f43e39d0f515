"""skerry manifests: the contents of ``config/``."""

from __future__ import annotations

from pathlib import Path

import click

from skerry.api.edge import USUAL_PROVIDER
from skerry.cli.printing import show_text

_FOLDERS = ("crds", "exports", "imports", "compute", "samples")


@click.command(
    epilog="""\b
Examples:
  skerry manifests crds exports | kubectl create -f -
  skerry manifests --provider root:edge imports | kubectl apply -f -
  skerry manifests --write config
"""
)
@click.argument("folders", nargs=-1, type=click.Choice(_FOLDERS))
@click.option("--provider", default=USUAL_PROVIDER, show_default=True,
              help="Path of the workspace that exports the edge kinds.")  # fmt: skip
@click.option(
    "--write",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write the files below this folder instead of printing them.",
)
def manifests(folders: tuple[str, ...], provider: str, write: Path | None) -> None:
    """Print the manifests of the edge kinds: definitions, exports, imports and samples.

    compute is for a kcp's workspace root:compute: it lets edges report status.
    """
    from skerry.app.manifests import manifest_files

    wanted = folders or _FOLDERS
    files = {
        name: text
        for name, text in manifest_files(provider).items()
        if name.partition("/")[0] in wanted
    }
    for name, text in files.items():
        if write is None:
            show_text(f"---\n# Source: config/{name}\n{text}")
            continue
        path = write / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
