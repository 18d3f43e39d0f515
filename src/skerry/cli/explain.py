"""skerry explain: why an object is or is not at a destination."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, TypeVar

import click

from skerry.app.explain import Question, explain_problems
from skerry.app.explain import explain as explain_placement
from skerry.app.history import History, history_of, paths_of, standing_json
from skerry.app.hub_reading import HubReader, hub
from skerry.cli.columns import print_columns
from skerry.cli.common_flags import Command, Flag, output_flag, with_flags
from skerry.cli.hub_flags import FIND_HUB, answer_or_exit, hub_settings
from skerry.cli.moments import Moment, local_zone
from skerry.cli.printing import show, show_json, show_text
from skerry.logic.fleet.explanation.text import answer_text, problems_text
from skerry.logic.fleet.history.fold import State
from skerry.logic.fleet.history.text import Selection, row, state_rows

T = TypeVar("T")

_FLAGS: tuple[Flag, ...] = (
    *FIND_HUB,
    click.option(
        "--espw-path",
        default="",
        help="Provider workspace; else the one the workspace is bound to, else root:espw.",
    ),
    output_flag("text", "json"),
)


def hub_flags(command: Command) -> Command:
    """Add the flags by which a hub is found and answers are shaped."""
    return with_flags(command, _FLAGS)


def asked(name: str, flags: dict[str, Any], ask: Callable[[HubReader], Awaitable[T]]) -> T:
    """Return what *ask* finds at the hub the flags name; exits with 1 where there is no answer."""

    async def answered() -> T:
        async with hub(hub_settings(flags)) as found:
            return await ask(found)

    return answer_or_exit(name, answered)


@click.group(
    invoke_without_command=True,
    epilog="""\b
Examples:
  skerry explain --problems
  skerry explain --problems --all -o json
  skerry explain placement edge-placement-c --location guilder

\b
Exit codes:
  0  the answer was given, whatever it is
  1  there is no answer: no hub to ask, or nothing of it may be read
  2  the command was called in a way it does not understand
  3  with --exit-code: something is wrong
""",
)
@click.option("--problems", is_flag=True, help="Only what is wrong, the worst first.")
@click.option("--all", "everywhere", is_flag=True, help="With --problems: of all workspaces.")
@click.option("--exit-code", is_flag=True, help="With --problems: exit with 3 if there are any.")
@hub_flags
@click.pass_context
def explain(
    ctx: click.Context, /, *, problems: bool, everywhere: bool, exit_code: bool, **flags: Any
) -> None:
    """Explain why something is as it is.

    With --problems: what is wrong with the placements of the current workspace, or of all of
    them. What is refused or unhealthy at an edge comes first, then what is withheld, what is not
    known because its edge was not heard of, and what is still on its way. Nothing is written.
    """
    if ctx.invoked_subcommand is not None:
        if problems or everywhere or exit_code:
            raise click.UsageError("--problems is about placements as a whole: leave NAME out")
        return
    if not problems:
        raise click.UsageError("want --problems, or a command: placement")
    found = asked("explain", flags, lambda hub: explain_problems(hub, everywhere=everywhere))
    if flags["output"] == "json":
        show_json({"problems": [each.as_json() for each in found]})
    else:
        show_text(problems_text(found))
    if exit_code and found:
        sys.exit(3)


@explain.command(
    epilog="""\b
Examples:
  skerry explain placement edge-placement-c
  skerry explain placement edge-placement-c --location guilder
  skerry explain placement edge-placement-c --object deployment/commonstuff/commond
  skerry explain placement edge-placement-c --object crd/widgets.example.org -o json
  skerry explain placement edge-placement-c --at 14:05

\b
Exit codes:
  0  the answer was given, whatever it is
  1  there is no answer: no such placement, Location or object, or no hub to ask
  2  the command was called in a way it does not understand
"""
)
@click.argument("name")
@click.option("--location", default="", help="Only this Location: its name, or WORKSPACE/NAME.")
@click.option("--object", "wanted", default="", help="Only this object: KIND/NAMESPACE/NAME.")
@click.option("--at", type=Moment(), default=None, help="As it was then: 14:05, 2h or RFC 3339.")
@hub_flags
def placement(name: str, location: str, wanted: str, at: datetime | None, **flags: Any) -> None:
    """Explain which Locations and objects the EdgePlacement NAME of the current workspace selects.

    For each object and destination it says how far the object got: which selector term fails,
    whether its kind travels, customization withholds it, the mailbox is ready, the copy is there
    and not another workspace's, the edge was heard of, has applied it and it is healthy; and the
    smallest edit that would change the answer, which was tried before it is offered. Nothing is
    written.

    With --at: which destinations it had then, by what was recorded.
    """
    if at is not None:
        if wanted:
            raise click.UsageError("--at knows destinations and revisions: leave --object out")
        explain_then(name, location, at, flags)
        return
    question = Question(name, location, wanted)
    answer = asked("explain", flags, lambda hub: explain_placement(hub, question))
    if flags["output"] == "json":
        show_json(answer.as_json())
    else:
        show_text(answer_text(answer))


_NOT_RECORDED = "which objects were copied, applied or healthy then is not recorded"


def explain_then(name: str, location: str, at: datetime, flags: dict[str, Any]) -> None:
    """Print what a placement had at a time, by what was recorded."""

    async def ask(hub: HubReader) -> tuple[History, State, dict[str, str]]:
        found = await history_of(hub, name)
        state = found.at(at)
        return found, state, await paths_of(hub, *state.standings.values())

    found, state, paths = asked("explain", flags, ask)
    if flags["output"] == "json":
        show_json(_state_json(found, state, paths, location, at))
        return
    show(f"EdgePlacement {name} at {_shown(at)}")
    following = found.following(state)
    since = "the beginning" if state.last is None else _shown(state.last.time)
    until = "now" if following is None else _shown(following.time)
    show(f"{len(state.standings)} destinations; no records between {since} and {until}")
    rows = state_rows(state, location)
    if len(rows) > 1:
        print_columns(rows)
    if location:
        _explain_location_then(found, location, at, is_there=len(rows) > 1)
    show(_NOT_RECORDED)
    for problem in found.problems:
        show(f"skerry explain: {problem}", error=True)


def _explain_location_then(found: History, location: str, at: datetime, *, is_there: bool) -> None:
    """Print the last decision about a Location before a time."""
    before = [each for each in found.story(Selection(location=location)) if each.time <= at]
    if before:
        time, change, _, _, why, cause = row(before[-1], found.now.astimezone(local_zone()))
        show(f"{time} {change}: {why}" + (f" ({cause})" if cause else ""))
    elif not is_there:
        show(f"Location {location} was no destination then, nor before; what kept it out is not "
              "known, because inventories are not recorded")  # fmt: skip


def _state_json(
    found: History, state: State, paths: dict[str, str], location: str, at: datetime
) -> dict[str, Any]:
    following = found.following(state)
    return {
        "placement": found.placement,
        "at": at.isoformat(),
        "since": None if state.last is None else state.last.time.isoformat(),
        "until": None if following is None else following.time.isoformat(),
        "destinations": [
            standing_json(each, paths)
            for each in sorted(state.standings.values(), key=lambda each: each.destination)
            if not location or each.destination.location == location
        ],
        "notRecorded": _NOT_RECORDED,
    }


def _shown(moment: datetime) -> str:
    return moment.astimezone(local_zone()).isoformat(timespec="seconds")
