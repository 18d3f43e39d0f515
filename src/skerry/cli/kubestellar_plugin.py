"""``kubectl kubestellar``: locations, workload workspaces and syncers, in the original's words.

Arguments, outputs and exit codes are those of the original's scripts; fixed sleeps are not, and
``--context`` is accepted. Unlike the original's, commands leave the kubeconfig's current workspace
as it is, whatever ``--imw`` names, unless ``--enter`` asks for it. ``ensure wmw`` is about
entering: what comes next is meant for the new workspace, so ``--enter`` is its default.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from skerry.api.edge import USUAL_PROVIDER
from skerry.api.errors import ApiError, Forbidden
from skerry.app import edge_identity as identity
from skerry.app import inventory, kubestellar
from skerry.app.inventory import CommandFailed
from skerry.app.missing_workspace import missing_workspace
from skerry.cli import workspace
from skerry.cli.edge_identity import DEFAULT_IMAGE, write_output
from skerry.cli.flags import KUBECONFIG_FLAGS, Parsed, UsageError, parse
from skerry.cli.hub_client import RequestFailed
from skerry.cli.printing import show, show_lines, show_text
from skerry.cli.session import CommandError, Session, split_url
from skerry.logic.fleet.syncing.manifest import syncer_id
from skerry.runtime.transport import TransportError
from skerry.wire.kubeconfig import KubeconfigError, kubeconfig_paths

HELP = """Usage: kubectl kubestellar COMMAND

Commands:
  ensure location NAME KEY=VALUE...   [--imw PATH] [--enter]
  remove location NAME                [--imw PATH]
  ensure wmw NAME                     [--with-kube true|false] [--enter=false]
  remove wmw NAME
  prep-for-syncer NAME                [--imw PATH] [--espw PATH] [--syncer-image IMAGE]
                                      [-o FILE] [--trust placed|admin] [--require-approval]
  prep-for-cluster NAME KEY=VALUE...  as ensure location and prep-for-syncer

The current workspace stays what it is; with --enter, the default of ensure wmw, it becomes the one
that was made or worked in.

All accept kubectl's own flags, such as --kubeconfig and --context, and -h.
"""
_OWN = {
    "imw": False,
    "espw": False,
    "enter": True,
    "with-kube": False,
    "syncer-image": False,
    "output": False,
    "trust": False,
    "require-approval": True,
    "silent": True,
}
_SHORT = {"o": "output"}


class Call:
    """One call: its words, its flags, the hub they lead to."""

    def __init__(self, name: str, parsed: Parsed) -> None:
        self.name = name
        self.parsed = parsed
        environment = os.environ  # noqa: TID251 - commands find a user's files by it
        home = Path(environment.get("HOME") or "/")
        paths = kubeconfig_paths(
            parsed.value("kubeconfig"), environment.get("KUBECONFIG", ""), home
        )
        self.hub = identity.open_hub(paths, parsed.value("context"), parsed.value("server"))
        if not self.hub.current:
            raise CommandFailed(
                1,
                "the current context does not lead to a workspace: enter one with kubectl ws root",
            )

    @property
    def imw(self) -> str:
        return self.parsed.value("imw") or self.hub.current

    @property
    def espw(self) -> str:
        return self.parsed.value("espw") or USUAL_PROVIDER

    def only(self, what: str) -> str:
        """Return the one argument there must be."""
        words = self.parsed.arguments
        if len(words) != 1:
            raise CommandFailed(1, f"exactly one {what} must be given, found {len(words)}")
        return words[0]

    def enter(self, path: str) -> None:
        """Make *path* the kubeconfig's current workspace, without a word."""
        if path == self.hub.current or self.parsed.value("context"):
            return
        session = Session.open(self.parsed, dict(os.environ))  # noqa: TID251
        split = split_url(session.target.server)
        if split is not None:
            with contextlib.redirect_stdout(io.StringIO()):
                workspace.enter(session, f"{split[0]}/clusters/{path}", "", short=True)


async def _ensure_location(call: Call) -> None:
    words = call.parsed.arguments
    if not words:
        raise CommandFailed(1, "a location name must be given")
    name = inventory.checked_name(words[0])
    labels = inventory.checked_labels(words[1:])
    show_lines(await inventory.ensure_location(call.hub, call.imw, name, labels))
    if call.parsed.on("enter"):
        call.enter(call.imw)


async def _remove_location(call: Call) -> None:
    name = inventory.checked_name(call.only("location name"))
    show_lines(await inventory.remove_location(call.hub, call.imw, name))


async def _ensure_wmw(call: Call) -> None:
    name = call.only("workspace name")
    wish = call.parsed.value("with-kube", "true")
    if wish not in ("true", "false"):
        raise CommandFailed(1, f"--with-kube must be true or false, not {wish!r}")
    parent = call.hub.current
    if warning := await kubestellar.namesake_warning(call.hub, parent, name):
        show(f"Warning: {warning}", error=True)
    show_lines(await kubestellar.ensure_wmw(call.hub, parent, name, with_kube=wish == "true"))
    if call.parsed.value("enter", "true") == "true":
        call.enter(f"{parent}:{name}")


async def _remove_wmw(call: Call) -> None:
    show_lines(
        await kubestellar.remove_wmw(call.hub, call.hub.current, call.only("workspace name"))
    )


async def _prep_for_syncer(call: Call) -> None:
    await _prepare(call, call.only("SyncTarget name"))


async def _prep_for_cluster(call: Call) -> None:
    await _ensure_location(call)
    await _prepare(call, call.parsed.arguments[0])


async def _prepare(call: Call, name: str) -> None:
    await kubestellar.check_provider(call.hub, call.espw)
    try:
        edge = await identity.edge_of(call.hub, name, call.imw, call.espw)
    except identity.NoMailbox as error:
        raise CommandFailed(5, str(error)) from error
    terms = identity.CredentialTerms(approved=not call.parsed.on("require-approval"))
    credential = await identity.issue(call.hub, name, edge, terms)
    text = await identity.manifest(
        call.hub,
        name,
        edge.mailbox,
        image=call.parsed.value("syncer-image") or DEFAULT_IMAGE,
        kubeconfig=credential,
        admin=call.parsed.value("trust") == "admin",
    )
    path = call.parsed.value("output") or f"{name}-syncer.yaml"
    write_output(path, text)
    if path != "-":
        place = syncer_id(name, edge.mailbox)
        show(f'Wrote physical cluster manifest to {path} for namespace "{place}". Use')
        show_lines(["", f'  KUBECONFIG=<pcluster-config> kubectl apply -f "{path}"', ""])
        show("to apply it. Use")
        get = f'kubectl get deployment -n "{place}" {place}'
        show_lines(["", f"  KUBECONFIG=<pcluster-config> {get}", ""])
        show("to verify the syncer pod is running.")


_COMMANDS: dict[tuple[str, ...], Callable[[Call], Awaitable[None]]] = {
    ("ensure", "location"): _ensure_location,
    ("remove", "location"): _remove_location,
    ("ensure", "wmw"): _ensure_wmw,
    ("remove", "wmw"): _remove_wmw,
    ("prep-for-syncer",): _prep_for_syncer,
    ("prep-for-cluster",): _prep_for_cluster,
}


def run(words: Sequence[str]) -> int:
    """Carry out one call; return its exit code."""
    try:
        parsed = parse(words, {**KUBECONFIG_FLAGS, **_OWN}, _SHORT)
        if parsed.on("help") or not parsed.arguments:
            show_text(f"{HELP}\n")
            return 0 if parsed.on("help") else 1
        return asyncio.run(_carried_out(parsed))
    except CommandFailed as error:
        return _failed(error, error.code)
    except TransportError as error:
        hint = "is the hub running, and the kubeconfig its own? See skerry status"
        return _failed(CommandFailed(1, f"no hub answers: {error}; {hint}"), 1)
    except (
        UsageError,
        CommandError,
        ApiError,
        KubeconfigError,
        RequestFailed,
        OSError,
    ) as error:
        return _failed(error, 1)


async def _carried_out(parsed: Parsed) -> int:
    for name, command in _COMMANDS.items():
        # The original's files are called prep_for_syncer; kubectl turns one form into the other.
        given = tuple(word.replace("_", "-") for word in parsed.arguments[: len(name)])
        if given == name:
            parsed.arguments = parsed.arguments[len(name) :]
            call = Call(" ".join(name), parsed)
            try:
                await command(call)
            except Forbidden as error:
                missing = await missing_workspace(call.hub.client, call.imw)
                raise CommandFailed(
                    1, f'workspace "{missing}" not found' if missing else str(error)
                ) from error
            finally:
                await call.hub.client.transport.close()
            return 0
    raise CommandFailed(1, f"unknown command {' '.join(parsed.arguments)!r}; see --help")


def _failed(error: Exception, code: int) -> int:
    show(f"kubectl-kubestellar: {error}", error=True)
    return code


def main() -> None:
    """Run as the program ``kubectl-kubestellar``."""
    sys.exit(run(sys.argv[1:]))
