"""skerry fleet: every edge and every placement of a hub on one screen, the worst first."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import click
import uvloop
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from skerry.api.edge import USUAL_PROVIDER
from skerry.api.errors import ApiError
from skerry.app.fleet import Fleet, FleetUnreadable
from skerry.app.fleet import fleet as opened
from skerry.cli.columns import GAP, aligned
from skerry.cli.common_flags import output_flag
from skerry.cli.hub_flags import finds_hub, hub_settings
from skerry.cli.printing import show, show_json
from skerry.kit import log
from skerry.kit.text import inert_line
from skerry.logic.fleet.overview.text import (
    Section,
    as_json,
    edge_section,
    placement_section,
    sentence,
)
from skerry.runtime.transport import TransportError
from skerry.wire.kubeconfig import KubeconfigError

# Ages are shown in seconds; drawing more often would show nothing new.
_REDRAW_SECONDS = 1.0
# Why there may be no answer, each a sentence.
_FAILURES = (FleetUnreadable, ApiError, KubeconfigError, TransportError)
_STYLES = {
    "Lost": "red",
    "Held": "red",
    "Refused": "red",
    "Unhealthy": "red",
    "Syncing": "yellow",
    "NotJoined": "yellow",
    "Ready": "green",
    "False": "red",
    "Unknown": "yellow",
    "True": "green",
}
# Around the two tables: the sentence, two heads, two footers, empty lines and a prompt.
_OTHER_LINES = 10
_USUAL_LIMIT = 20


@dataclass(frozen=True, slots=True)
class _Form:
    """How much is shown."""

    wide: bool
    problems: bool
    limit: int
    # Of a terminal, on which a row is a line; 0 where lines may have any length.
    width: int


@click.command(
    epilog="""\b
Examples:
  skerry fleet
  skerry fleet --problems
  skerry fleet --watch
  skerry fleet -o wide --limit 0
  skerry fleet -o json | jq '.edges[] | select(.state == "Lost").name'

\b
Exit codes:
  0  the fleet was shown, whatever its state
  1  there is no answer: no hub to ask, or nothing of it may be read
  2  the command was called in a way it does not understand
  3  with --exit-code: something is wrong somewhere
"""
)
@click.option("--watch", "-w", is_flag=True, help="Stay, and show changes as they come.")
@click.option("--problems", is_flag=True, help="Only what somebody should look at.")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=None,
    help="Rows of each table; 0 for all  [default: what fits the terminal, else 20]",
)
@click.option("--exit-code", is_flag=True, help="Exit with 3 when something is wrong.")
@output_flag("text", "wide", "json")
@click.option("--espw-path", default=USUAL_PROVIDER, show_default=True, help="Provider workspace.")
@finds_hub
def fleet(
    *,
    watch: bool,
    problems: bool,
    limit: int | None,
    exit_code: bool,
    output: str,
    **flags: Any,
) -> None:
    """Show all edges and placements across workspaces, the worst first.

    Edges: whether the hub hears of them, how many objects they are to have, have and have
    unhealthy, and deletions held until a person approves. Placements: at how many destinations
    they are delivered, healthy or not known. The last column says what is wrong; skerry explain
    says why. Nothing is written.
    """
    console = Console(highlight=False, soft_wrap=True)
    if watch and (output == "json" or not console.is_terminal):
        raise click.UsageError("--watch draws on a terminal: leave it out where a program reads")
    width = console.width if console.is_terminal and output != "wide" else 0
    rows = _rows(console) if limit is None else limit
    form = _Form(output == "wide", problems, rows, width)
    settings = hub_settings(flags)

    async def answered() -> bool:
        async with opened(settings) as found:
            if watch:
                await _watch(found, form, console)
            await found.read()
            if output == "json":
                show_json(as_json(found.overview, found.path, problems=problems))
            else:
                console.print(Group(*_screen(found, form)))
            return found.overview.has_problem()

    log.configure(verbosity=0)
    if not watch:
        # A screen is over before there is garbage: looking for it in ten thousand edges is half
        # of the time.
        gc.disable()
    try:
        troubled = uvloop.run(answered())
    except KeyboardInterrupt:
        return
    except _FAILURES as error:
        show(f"skerry fleet: {error}", error=True)
        sys.exit(1)
    if exit_code and troubled:
        sys.exit(3)


def _rows(console: Console) -> int:
    """Return how many rows each of the two tables may have."""
    if not console.is_terminal:
        return _USUAL_LIMIT
    return max(5, (console.size.height - _OTHER_LINES) // 2)


async def _watch(found: Fleet, form: _Form, console: Console) -> None:
    """Show the fleet until interrupted."""
    try:
        async with asyncio.TaskGroup() as tasks:
            await found.follow(tasks)
            with Live(console=console, screen=True, auto_refresh=False) as live:
                while True:
                    await found.name_workspaces()
                    live.update(Group(*_screen(found, form)), refresh=True)
                    await found.clock.sleep(_REDRAW_SECONDS)
    except ExceptionGroup as group:
        failures = group.subgroup(_FAILURES)
        if failures is None:
            raise
        raise failures.exceptions[0] from group


def _screen(found: Fleet, form: _Form) -> Iterator[Text]:
    overview, now = found.overview, found.clock.now()
    yield Text(sentence(overview.counts()), style="bold")
    edges = overview.edges(form.limit, problems=form.problems)
    placements = overview.placements(form.limit, problems=form.problems)
    for name, section in (
        ("edges", edge_section(edges, now, found.path, wide=form.wide)),
        ("placements", placement_section(placements, found.path, wide=form.wide)),
    ):
        if name in found.unreadable:
            yield Text("\n" + inert_line(f"{name}: not shown: {found.unreadable[name]}"))
        elif section.rows:
            yield from _table(section, form.width)


def _table(section: Section, width: int) -> Iterator[Text]:
    head, *rows = aligned([section.head, *section.rows])
    yield Text("\n" + GAP.join(head).rstrip(), style="bold")
    for cells, state in zip(rows, section.states, strict=True):
        line = Text()
        for number, cell in enumerate(cells):
            style = _STYLES[state] if cell.strip() == state else ""
            line.append((GAP if number else "") + cell, style=style)
        line.rstrip()
        if width:
            line.truncate(width, overflow="ellipsis")
        yield line
    if section.footer:
        yield Text(section.footer, style="dim")
