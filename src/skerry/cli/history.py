"""skerry history: what was decided about placements, when, why, and who caused it."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import Any

import click

from skerry.api.objects import Object
from skerry.app.history import History, breaks, histories, history_of
from skerry.cli.columns import print_columns
from skerry.cli.common_flags import output_flag
from skerry.cli.explain import asked
from skerry.cli.hub_flags import finds_hub
from skerry.cli.moments import Moment, local_zone
from skerry.cli.printing import show, show_json
from skerry.logic.fleet.history.audit import AuditTrail, audit_event
from skerry.logic.fleet.history.fold import timeline
from skerry.logic.fleet.history.text import Selection, table

_EXITS = """\b
Exit codes:
  0  the answer was given
  1  there is no answer: no history is kept, or no hub to ask
  2  the command was called in a way it does not understand
"""


@click.group()
def history() -> None:
    """Show who decided what about placements, when and why.

    From DecisionRecords of the current workspace. Nothing is written, and nothing is computed
    again: reasons are those found then.
    """


@history.command(
    epilog=f"""\b
Examples:
  skerry history placement web --location oslo --since 4h
  skerry history placement web --audit-log /var/lib/skerry/audit.log -o json

{_EXITS}"""
)
@click.argument("name")
@click.option("--location", default="", help="Only what concerns this Location.")
@click.option("--object", "wanted", default="", help="Only this object: KIND/NAMESPACE/NAME.")
@click.option("--since", type=Moment(), default=None, help="From then on: 4h, 14:05 or RFC 3339.")
@click.option("--audit-log", default="", help="Audit log of the hub, to look users up in.")
@output_flag("text", "json")
@finds_hub
def placement(
    name: str,
    *,
    location: str,
    wanted: str,
    since: datetime | None,
    audit_log: str,
    output: str,
    **flags: Any,
) -> None:
    """Tell the story of the EdgePlacement NAME, which may be gone."""
    found = asked("history", flags, lambda hub: history_of(hub, name))
    records = found.story(Selection(since, location, wanted))
    if audit_log:
        records = list(
            timeline(_with_users([dict(each.object) for each in records], audit_log)).records
        )
    if output == "json":
        show_json({"items": [each.object for each in records]})
    else:
        print_columns(table(records, found.now.astimezone(local_zone())))
    _report_problems(found)


def _with_users(objects: list[Object], path: str) -> list[Object]:
    """Look users up in an audit log; without it they are as the records have them."""
    try:
        with open(path, "rb") as file:
            trail = AuditTrail(file)
    except OSError as error:
        text = f"skerry history: {path}: {error.strerror}: users are as the records have them"
        show(text, error=True)
        return objects
    if trail.unreadable:
        show(f"skerry history: {path}: {trail.unreadable} lines are no events", error=True)
    return [trail.with_users(each) for each in objects]


def _report_problems(found: History) -> None:
    for each in found.problems:
        show(f"skerry history: {each}", error=True)


@history.command(
    epilog="""\b
Exit codes:
  0  every record follows the one before
  1  there is no answer: no history is kept, or no hub to ask
  3  a record is missing, edited, or follows another than the one before; the first is named first
"""
)
@click.argument("name", required=False, default="")
@finds_hub
def verify(name: str, **flags: Any) -> None:
    """Check that the records of NAME, or of all placements, follow each other without a gap."""
    found = (
        [asked("history", flags, lambda hub: history_of(hub, name))]
        if name
        else asked("history", flags, histories)
    )
    broken = [(each.placement, gap) for each in found for gap in breaks(each)]
    for placed, gap in broken:
        show(f"{placed}: {gap.name}: {gap.text}")
    if broken:
        sys.exit(3)
    show(f"{sum(len(each.objects) for each in found)} records of {len(found)} placements: whole")


@history.command(epilog=_EXITS)
@click.argument("name", required=False, default="")
@click.option("--since", type=Moment(), default=None, help="From then on: 30d, 14:05 or RFC 3339.")
@click.option("-o", "--output", type=click.Choice(["jsonl", "audit"]), default="jsonl",
              show_default=True, help="Records, or audit events; one a line.")  # fmt: skip
@finds_hub
def export(name: str, since: datetime | None, output: str, **flags: Any) -> None:
    """Print the records of NAME, or of all placements, one a line and in order."""
    found = (
        [asked("history", flags, lambda hub: history_of(hub, name))]
        if name
        else asked("history", flags, histories)
    )
    for each in found:
        for record in each.line.records:
            if since is None or record.time >= since:
                obj = dict(record.object)
                show_json(audit_event(obj) if output == "audit" else obj, indent=None)
        _report_problems(each)
