"""skerry whatif: what a change not yet made would do."""

from __future__ import annotations

import json
import sys
from typing import Any, NoReturn, TextIO

import click
import yaml

from skerry.app.explain import Hub
from skerry.cli.explain import asked, hub_flags
from skerry.logic.fleet.explanation.changes import PlacementChange
from skerry.logic.fleet.explanation.text import changes_text


@click.command(
    epilog="""\b
Examples:
  skerry whatif -f new-placement.yaml
  skerry whatif -f - <<< '{apiVersion: v1, kind: Namespace,
                           metadata: {name: shop, labels: {tier: edge}}}'
  skerry whatif --delete -f location.yaml -o json

\b
Exit codes:
  0  the answer was given, also when nothing would change
  1  there is no answer: a kind the workspace does not serve, or no hub to ask
  2  the file or the command cannot be understood
"""
)
@click.option(
    "-f", "--filename", "file", type=click.File(), required=True, help="YAML or JSON; - for stdin."
)
@click.option("--delete", is_flag=True, help="Ask what deleting these objects would do.")
@hub_flags
def whatif(file: TextIO, delete: bool, **flags: Any) -> None:
    """Show which destinations and objects the objects in a file would add and remove.

    The file holds EdgePlacements, Locations, SyncTargets, Namespaces or any other objects of the
    current workspace. One with metadata alone is a change of labels (null removes one); any other
    stands for the whole object. Nothing is written.
    """
    documents = _documents(file)

    async def ask(found: Hub) -> list[PlacementChange]:
        return await found.what_if(documents, delete=delete)

    answer = asked("whatif", flags, ask)
    if flags["output"] == "json":
        print(json.dumps({"placements": [each.as_json() for each in answer]}, indent=2))
    else:
        print(changes_text(answer), end="")


def _documents(file: TextIO) -> list[dict[str, Any]]:
    """Return the objects of a file; a List stands for its items. Exits with 2 at a mistake."""
    try:
        found = [each for each in yaml.safe_load_all(file) if each is not None]
    except yaml.YAMLError as error:
        _refuse(f"{file.name}: {error}")
    documents: list[Any] = []
    for each in found:
        listed = isinstance(each, dict) and str(each.get("kind", "")).endswith("List")
        documents += each.get("items") or [] if listed else [each]
    for each in documents:
        if not isinstance(each, dict) or not (each.get("metadata") or {}).get("name"):
            _refuse(f"{file.name}: want objects with apiVersion, kind and metadata.name")
    if not documents:
        _refuse(f"{file.name}: there is no object in it")
    return documents


def _refuse(message: str) -> NoReturn:
    print(f"skerry whatif: {message}", file=sys.stderr)
    sys.exit(2)
