"""skerry whatif: what a change not yet made would do."""

from __future__ import annotations

import sys
from typing import Any, NoReturn, TextIO

import click
import yaml

from skerry.app.what_if import foresee
from skerry.cli.explain import asked, hub_flags
from skerry.cli.printing import show, show_json, show_text
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
  1  there is no answer: no such object, a kind that is not served, or no hub to ask
  2  the file or the command cannot be understood
"""
)
@click.option(
    "-f", "--filename", "file", type=click.File(), required=True, help="YAML or JSON; - for stdin."
)
@click.option("--delete", is_flag=True, help="Ask what deleting these objects would do.")
@hub_flags
def whatif(file: TextIO, delete: bool, **flags: Any) -> None:
    """Show what the objects in a file would change: destinations, objects and their contents.

    The file holds EdgePlacements, Locations, SyncTargets, Namespaces, Customizers or any other
    objects of the current workspace. One with metadata alone is a change of labels (null removes
    one) of an object that exists; any other stands for the whole object. Where copies would
    differ, destinations at which they differ in the same way are one group. What would be
    withheld is listed with its reason, and so is what guards would hold. Of a placement with a
    Rollout, the rollout that the change would start is shown. Nothing is written.
    """
    documents = _documents(file)
    answer = asked("whatif", flags, lambda hub: foresee(hub, documents, delete=delete))
    if flags["output"] == "json":
        show_json(answer.as_json())
        return
    show_text(changes_text(answer.changes, answer.path, answer.created))
    for name, why in answer.holds():
        show(f"the removals of {name} would be held: {why}")
    if answer.unread:
        show(f"names that others have were not looked for at {answer.unread} more destinations")


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
    show(f"skerry whatif: {message}", error=True)
    sys.exit(2)
