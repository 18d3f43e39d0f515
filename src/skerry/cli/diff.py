"""skerry diff: how a placement differs between two times."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from skerry.app.history import History, history_of, paths_of, standing_json
from skerry.app.hub_reading import HubReader
from skerry.cli.columns import print_columns
from skerry.cli.common_flags import output_flag
from skerry.cli.explain import asked
from skerry.cli.hub_flags import finds_hub
from skerry.cli.moments import Moment, local_zone
from skerry.cli.printing import show, show_json
from skerry.logic.fleet.history.text import difference_rows


@click.group()
def diff() -> None:
    """Show what changed between two times."""


@diff.command(
    epilog="""\b
Examples:
  skerry diff placement web --from 14:00 --to 15:00
  skerry diff placement web --from 2h -o json

\b
Exit codes:
  0  the answer was given, also where nothing differs
  1  there is no answer: nothing is known of one of the times, or no hub to ask
  2  the command was called in a way it does not understand
"""
)
@click.argument("name")
@click.option("--from", "start", type=Moment(), required=True, help="14:00, 2h or RFC 3339.")
@click.option("--to", "end", type=Moment(), default=None, help="The same; now if left out.")
@output_flag("text", "json")
@finds_hub
def placement(name: str, start: datetime, end: datetime | None, output: str, **flags: Any) -> None:
    """Show which destinations the EdgePlacement NAME gained and lost, and other revisions."""

    async def ask(hub: HubReader) -> tuple[History, dict[str, str]]:
        found = await history_of(hub, name)
        until = end or found.now
        every = [each for pair in found.between(start, until).values() for each in pair if each]
        return found, await paths_of(hub, *every)

    found, paths = asked("diff", flags, ask)
    until = end or found.now
    differences = found.between(start, until)
    if output == "json":
        show_json(_json(differences, paths, start, until))
        return
    shown = [each.astimezone(local_zone()).isoformat(timespec="seconds") for each in (start, until)]
    show(f"EdgePlacement {name} from {shown[0]} to {shown[1]}: {len(differences)} differences")
    if differences:
        print_columns(difference_rows(differences))


def _json(
    differences: Any, paths: dict[str, str], start: datetime, until: datetime
) -> dict[str, Any]:
    return {
        "from": start.isoformat(),
        "to": until.isoformat(),
        "differences": [
            {
                "before": each.before and standing_json(each.before, paths),
                "after": each.after and standing_json(each.after, paths),
            }
            for each in differences.values()
        ],
    }
