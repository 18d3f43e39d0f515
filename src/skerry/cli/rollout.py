"""skerry rollout: where the Rollouts of the current workspace stand, and their next steps."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.live import Live
from rich.text import Text

from skerry.api.objects import Object
from skerry.app.rollout import Rollouts, rollouts
from skerry.cli.columns import print_columns
from skerry.cli.common_flags import output_flag
from skerry.cli.hub_flags import answer_or_exit, finds_hub, hub_settings
from skerry.cli.printing import show, show_json, show_lines, show_text
from skerry.logic.fleet.rollout.text import history_rows, is_ready, is_stalled, status_lines

T = TypeVar("T")
_STALLED = 3

_output = output_flag("text", "json")


def _asked(flags: dict[str, Any], ask: Callable[[Rollouts], Awaitable[T]]) -> T:
    async def answered() -> T:
        async with rollouts(hub_settings(flags)) as found:
            return await ask(found)

    return answer_or_exit("rollout", answered)


def _done(flags: dict[str, Any], name: str, ask: Callable[[Rollouts], Awaitable[str]]) -> None:
    show(f"rollout {name}: {_asked(flags, ask)}")


@click.group()
def rollout() -> None:
    """Show and steer the Rollouts of the current workspace."""


@rollout.command(
    epilog="""\b
Examples:
  skerry rollout status web
  skerry rollout status web --watch
  skerry rollout status web -o json | jq .status.counts

\b
Exit codes:
  0  shown; with --watch: everybody who can be reached has what the workspace has
  1  there is no answer: no hub to ask, or no such Rollout
  2  the command was called in a way it does not understand
  3  with --watch: nothing will happen without a person
"""
)
@click.argument("name")
@click.option("--watch", "-w", is_flag=True, help="Stay until it is complete or stalled.")
@_output
@finds_hub
def status(name: str, watch: bool, output: str, **flags: Any) -> None:
    """Show where a Rollout stands, wave by wave."""

    async def ask(found: Rollouts) -> Object:
        if not watch:
            return await found.get(name)
        return await _watched(found, name, output)

    shown = _asked(flags, ask)
    if output == "json":
        show_json(shown)
    elif not watch:
        show_lines(status_lines(shown))
    if watch and not is_ready(shown):
        sys.exit(_STALLED)


async def _watched(found: Rollouts, name: str, output: str) -> Object:
    """Show a Rollout until it is complete or stalled: live on a terminal, else line by line."""
    console = Console()
    live = Live(console=console, auto_refresh=False) if console.is_terminal else None
    last = ""
    if live is not None and output == "text":
        live.start()
    try:
        async for each in found.follow(name):
            text = "\n".join(status_lines(each))
            if output == "text" and live is not None:
                live.update(Text(text), refresh=True)
            elif output == "text" and text != last:
                show_text(f"{text}\n", flush=True)
            last = text
            if is_ready(each) or is_stalled(each):
                return each
    finally:
        if live is not None:
            live.stop()
    raise AssertionError("a watch without end has ended")


@rollout.command(
    epilog="""\b
Examples:
  skerry rollout history web
  skerry rollout history web -o json
"""
)
@click.argument("name")
@_output
@finds_hub
def history(name: str, output: str, **flags: Any) -> None:
    """Show the revisions of a placement, what changed and what became of them."""

    async def ask(found: Rollouts) -> tuple[Object, list[Object]]:
        return await found.get(name), await found.revisions(name)

    current, revisions = _asked(flags, ask)
    if output == "json":
        show_json(revisions)
        return
    print_columns(history_rows(current, revisions))


@rollout.command(epilog="\b\nExamples:\n  skerry rollout pause web\n")
@click.argument("name")
@finds_hub
def pause(name: str, **flags: Any) -> None:
    """Assign nobody any more; verdicts go on."""
    _done(flags, name, lambda found: found.set_paused(name, paused=True))


@rollout.command(epilog="\b\nExamples:\n  skerry rollout resume web\n")
@click.argument("name")
@finds_hub
def resume(name: str, **flags: Any) -> None:
    """Go on; after a failure with what is bad by now accepted."""
    _done(flags, name, lambda found: found.set_paused(name, paused=False))


@rollout.command(epilog="\b\nExamples:\n  skerry rollout abort web\n")
@click.argument("name")
@finds_hub
def abort(name: str, **flags: Any) -> None:
    """Give the revision up that is under way: everybody returns to the stable one."""
    _done(flags, name, lambda found: found.abort(name))


@rollout.command(epilog="\b\nExamples:\n  skerry rollout promote web\n")
@click.argument("name")
@finds_hub
def promote(name: str, **flags: Any) -> None:
    """Let the present wave pass without waiting for soak, checks or approval."""
    _done(flags, name, lambda found: found.promote(name))


@rollout.command(
    epilog="""\b
Examples:
  skerry rollout approve web
  skerry rollout approve web --wave early --message 'looked at the dashboards'

\b
Whoever may write the status of RolloutApprovals may approve:
  kubectl create clusterrole approvers --verb=get,list,patch --resource=rolloutapprovals/status
"""
)
@click.argument("name")
@click.option("--wave", default="", help="Name of the wave; else the present one.")
@click.option("--message", default="", help="Why, for those who ask later.")
@click.option("--by", default="", help="Who approves, as shown; the audit log knows better.")
@finds_hub
def approve(name: str, wave: str, message: str, by: str, **flags: Any) -> None:
    """Approve that a rollout goes on after a wave, for exactly this content."""
    _done(flags, name, lambda found: found.approve(name, wave, message, by))


@rollout.command(
    epilog="""\b
Examples:
  skerry rollout undo web --to 40
  skerry rollout undo web --to 40 --now --reason INC-77
"""
)
@click.argument("name")
@click.option("--to", "number", type=click.IntRange(min=1), required=True, help="Revision.")
@click.option("--now", is_flag=True, help="Everywhere at once, past every gate.")
@click.option("--reason", default="", help="Why; needed with --now.")
@finds_hub
def undo(name: str, number: int, now: bool, reason: str, **flags: Any) -> None:
    """Go back to an older revision in waves, until a newer one is cut."""
    if now != bool(reason):
        raise click.UsageError("--now and --reason go together")
    _done(flags, name, lambda found: found.undo(name, number, reason))


@rollout.command(epilog="\b\nExamples:\n  skerry rollout retry web\n")
@click.argument("name")
@finds_hub
def retry(name: str, **flags: Any) -> None:
    """Try the revision again that failed."""
    _done(flags, name, lambda found: found.retry(name))
