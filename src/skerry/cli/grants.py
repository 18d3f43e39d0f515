"""skerry grants: what an inventory's LocationGrants refuse and hold, and confirming removals."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import click

from skerry.app.consent import Inventory, inventory
from skerry.app.explain_names import Unanswered
from skerry.cli.common_flags import output_flag
from skerry.cli.hub_flags import answer_or_exit, finds_hub, hub_settings
from skerry.cli.printing import confirmed, show, show_json, show_text
from skerry.logic.fleet.explanation.consent import chosen, consent_text

T = TypeVar("T")


def _asked(flags: dict[str, Any], ask: Callable[[Inventory], Awaitable[T]]) -> T:
    async def answered() -> T:
        async with inventory(hub_settings(flags)) as found:
            return await ask(found)

    return answer_or_exit("grants", answered, LookupError)


@click.group()
def grants() -> None:
    """Show and confirm what the LocationGrants of the current workspace refuse and hold."""


@grants.command(
    epilog="""\b
Examples:
  kubectl ws root:imw && skerry grants status
  skerry grants status -o json
"""
)
@output_flag("text", "json")
@finds_hub
def status(output: str, **flags: Any) -> None:
    """Show who is refused, what is held until its removal is confirmed, and by which ids."""

    async def ask(found: Inventory) -> tuple[Any, str]:
        return await found.record(), found.workspace

    record, workspace = _asked(flags, ask)
    if output == "json":
        show_json(record)
    else:
        show_text(consent_text(record, workspace))


@grants.command(
    epilog="""\b
Examples:
  skerry grants confirm d-7f21c04b9a13
  skerry grants confirm root:bank --yes
  skerry grants confirm --all
  skerry grants confirm --open

\b
Exit codes:
  0  confirmed, and taken by the controllers
  1  not confirmed: no such id, something else is held by now, or nobody took it
  2  the command was called in a way it does not understand
"""
)
@click.argument("names", nargs=-1, metavar="[ID|WORKSPACE]...")
@click.option("--all", "everything", is_flag=True, help="Confirm every removal that is held.")
@click.option("--open", "opens", is_flag=True, help="Confirm that the workspace is to be opened.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=30.0,
    show_default=True,
    help="Seconds to wait for the controllers to take the confirmation.",
)
@finds_hub
def confirm(
    names: tuple[str, ...],
    everything: bool,
    opens: bool,
    yes: bool,
    timeout: float,
    **flags: Any,
) -> None:
    """Confirm the removal of what runs without a grant, by id or by workspace.

    What is confirmed is shown first, and is exactly what goes. If something else is held by the
    time of the answer, nothing is confirmed.
    """
    if not (names or everything or opens):
        raise click.UsageError("name an id or a workspace, or give --all or --open")

    async def ask(found: Inventory) -> None:
        record = await found.record()
        if record is None:
            raise Unanswered(f"{found.workspace} has no LocationGrant: nothing is held")
        meant = chosen(record, names, everything=everything, opens=opens)
        for each in meant:
            show(f"{each.id}  {each.text}")
        if not meant:
            raise Unanswered("nothing is held")
        if not yes and not confirmed("Confirm?"):
            raise Unanswered("not confirmed")
        await found.confirm(record, [each.id for each in meant], seconds=timeout)
        show("confirmed")

    _asked(flags, ask)
