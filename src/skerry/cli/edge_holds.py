"""skerry edge approve-deletions, accept-store, adopt: what an edge waits for a person to decide.

``cli.edge`` adds these commands to its group. What they ask about is in words of the edge: each is
one line with single spaces, so that none passes for another where a terminal breaks it.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import TypeVar

import click

from skerry.app import edge_holds
from skerry.app.edge_identity import HubAccess
from skerry.cli.common_flags import output_flag
from skerry.cli.edge_identity import hub_options, opened, reporting_errors
from skerry.cli.printing import confirmed, show, show_json, show_lines
from skerry.kit.text import one_line

T = TypeVar("T")

_yes = click.option("-y", "--yes", is_flag=True, help="Do not ask.")


def _at_hub(
    command: str, kubeconfig: str, context: str, work: Callable[[HubAccess], Awaitable[T]]
) -> T:
    """Do *work* at the hub; what goes wrong is one line and an exit code."""

    async def connected() -> T:
        hub = opened(kubeconfig, context)
        try:
            return await work(hub)
        finally:
            await hub.client.transport.close()

    return reporting_errors(f"skerry edge {command}", connected)


def _confirm(command: str, question: str, *, yes: bool) -> None:
    """Ask a person, unless they said yes already; whoever cannot be asked has to."""
    if yes:
        return
    if not sys.stdin.isatty():
        show(f"skerry edge {command}: not done; add --yes to do it", error=True)
        sys.exit(1)
    if not confirmed(question, error=True):
        show("not done", error=True)
        sys.exit(1)


@click.command(
    "approve-deletions",
    epilog="""\b
Examples:
  skerry edge approve-deletions florin
  skerry edge approve-deletions florin --id 1f0c3a77b2 --yes
  skerry edge approve-deletions florin --imw root:imw-1 -o json --yes

An edge holds deletions when much less would remain there than was there within ten minutes. An
approval is good for exactly the objects that are held under its id; to keep them instead, place
them again. Exit code 6: nothing is held, or not under that id; 5: there is no such edge.
""",
)
@click.argument("name")
@hub_options
@click.option("--id", "identity", default="", help="Approve only if this is still what is held.")
@_yes
@output_flag("text", "json")
def approve_deletions(
    *,
    name: str,
    kubeconfig: str,
    context: str,
    imw: str,
    espw: str,
    identity: str,
    yes: bool,
    output: str,
) -> None:
    """Show the deletions that the edge NAME holds, and let it carry them out."""
    command = "approve-deletions"

    async def look(hub: HubAccess) -> edge_holds.Held:
        mailbox = await edge_holds.mailbox_client(hub, name, imw, espw)
        return await edge_holds.held_deletions(mailbox, name, identity)

    held = _at_hub(command, kubeconfig, context, look)
    _show(held, to_stderr=output == "json")
    _confirm(command, f"Let edge {name} delete them?", yes=yes)

    async def approve(hub: HubAccess) -> None:
        mailbox = await edge_holds.mailbox_client(hub, name, imw, espw)
        # What was shown is what is approved, whatever is held by now.
        await edge_holds.approve_deletions(mailbox, held)

    _at_hub(command, kubeconfig, context, approve)
    if output == "json":
        show_json(held.as_json(approved=True))
    else:
        show(f"edge {name}: {held.count} deletions approved")


def _show(held: edge_holds.Held, *, to_stderr: bool) -> None:
    """Show what a person is to approve: a line for each, whatever the edge calls it."""
    more = held.count - len(held.objects)
    lines = [
        f"edge {held.edge} holds {held.count} deletions (id {one_line(held.name)}):",
        *(f"  {one_line(name)}" for name in held.objects),
        *([f"  and {more} more"] if more > 0 else []),
    ]
    show_lines(lines, error=to_stderr)


@click.command(
    "accept-store",
    epilog="""\b
Examples:
  skerry edge accept-store florin
  skerry edge accept-store florin --imw root:imw-1 --yes -o json

An edge deletes nothing while the hub answers from another store than the one everything there was
placed from: a hub that was restored or replaced may lack what the edge still runs. Once accepted,
what this hub does not place any more is deleted there, within the deletion budget. Exit code 6:
the edge knows this store; 5: there is no such edge.
""",
)
@click.argument("name")
@hub_options
@_yes
@output_flag("text", "json")
def accept_store(
    *, name: str, kubeconfig: str, context: str, imw: str, espw: str, yes: bool, output: str
) -> None:
    """Let the edge NAME believe the store that this hub answers from now."""
    command = "accept-store"

    async def look(hub: HubAccess) -> tuple[str, str]:
        mailbox = await edge_holds.mailbox_client(hub, name, imw, espw)
        return await edge_holds.unknown_store(mailbox, name)

    store, question = _at_hub(command, kubeconfig, context, look)
    show(f"edge {name}: {one_line(question)}", error=output == "json")
    _confirm(command, f"Let edge {name} believe store {one_line(store)}?", yes=yes)

    async def accept(hub: HubAccess) -> None:
        mailbox = await edge_holds.mailbox_client(hub, name, imw, espw)
        await edge_holds.accept_store(mailbox, store)

    _at_hub(command, kubeconfig, context, accept)
    if output == "json":
        show_json({"edge": name, "store": store, "accepted": True}, indent=None)
    else:
        show(f"edge {name}: store {one_line(store)} accepted")


@click.command(
    epilog="""\b
Examples:
  skerry edge adopt florin configmaps/page -n shop
  skerry edge adopt florin deployments.apps/web -n shop -o json
  skerry edge adopt florin clusterroles/reader

The object that is placed is annotated in its owner's workspace, so it takes over what is in its
way at every edge it goes to. Exit code 6: the edge does not refuse it as somebody else's; 5: there
is no such edge, or it is not placed there.
"""
)
@click.argument("name")
@click.argument("target", metavar="KIND/NAME")
@click.option("-n", "--namespace", default="", help="Namespace of the object.")
@hub_options
@output_flag("text", "json")
def adopt(
    *,
    name: str,
    target: str,
    namespace: str,
    kubeconfig: str,
    context: str,
    imw: str,
    espw: str,
    output: str,
) -> None:
    """Take over an object that the edge NAME has and nobody placed: KIND/NAME is placed over it."""

    async def work(hub: HubAccess) -> tuple[edge_holds.Refused, str]:
        mailbox = await edge_holds.mailbox_client(hub, name, imw, espw)
        refused = await edge_holds.refused_object(mailbox, name, target, namespace)
        return refused, await edge_holds.adopt(hub, refused)

    refused, workspace = _at_hub("adopt", kubeconfig, context, work)
    if output == "json":
        found = {"edge": name, "object": refused.text, "workspace": workspace, "adopted": True}
        show_json(found, indent=None)
    else:
        show(f"edge {name}: {refused.text} of workspace {workspace} will take over what is there")
