"""skerry edge join: one command from nothing to an edge that its hub places workloads on.

With a hub's kubeconfig it does every step: the embedded edge cluster, its SyncTarget and Location,
its identity, its supervised syncer; for a cluster elsewhere it prints what to apply there. With
--from-kubeconfig it does the edge's own share of the identity and nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import click

from skerry.api.edge import HEARTBEAT_LEASE, HEARTBEAT_NAMESPACE, MAX_LEASE_SECONDS
from skerry.api.edge_identity import EdgeName
from skerry.api.errors import Forbidden, NotFound
from skerry.api.kcp.resources import SYNC_TARGETS, WORKSPACES
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.app import edge_identity as identity
from skerry.app import edge_join
from skerry.app.edge_config import EdgeConfigError
from skerry.app.edge_join import Joined
from skerry.app.edge_process import EdgeError, EdgeProcess
from skerry.app.inventory import CommandFailed, checked_labels, checked_name, ensure_location
from skerry.cli.common_flags import output_flag
from skerry.cli.edge_identity import (
    DEFAULT_IMAGE,
    hub_options,
    opened,
    reporting_errors,
    require_approval_flag,
    write_output,
)
from skerry.cli.embedded_edges import configuration, edge_home, start_edge
from skerry.cli.extras import require_extra
from skerry.cli.printing import show, show_json
from skerry.kit import log as logging
from skerry.kit.timestamps import rfc3339
from skerry.logic.machinery.conditions import is_true
from skerry.runtime.client import Client, Selection
from skerry.runtime.election import LEASES

_COMMAND = "skerry edge join"
# The mailbox is made, the syncer makes its key, is certified and renews its Lease: some seconds.
_WAIT_SECONDS = 60.0


@click.command(
    epilog="""\b
Examples:
  skerry edge join berlin env=prod region=eu --imw root:imw
  skerry edge join berlin env=prod --config berlin-kind.yaml
  skerry edge join berlin env=prod --manifest | kubectl --context berlin apply -f -
  skerry edge join berlin --from-kubeconfig berlin-hub.kubeconfig --data-dir .berlin-syncer

Exit code 5: the edge has no mailbox yet, see skerry controllers. Exit code 6: nobody has approved
the key within --wait-seconds. Run it again: what was done stays done, and the key stays the same.
"""
)
@click.argument("name")
@click.argument("labels", nargs=-1, metavar="[KEY=VALUE]...")
@hub_options
@click.option(
    "--wait-seconds",
    type=click.FloatRange(min=0),
    help="How long to wait for mailbox and approval  [default: 60; with --from-kubeconfig: until "
    "approved]",
)
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="kind configuration file of the embedded edge, when it is created.",
)
@click.option(
    "--heartbeat-seconds",
    type=click.FloatRange(min=1, max=MAX_LEASE_SECONDS / 2),
    help="Time between signs of life of the embedded edge; it is lost after two  [default: 30]",
)
@click.option(
    "--tunnel",
    is_flag=True,
    help="Let the hub ask the embedded edge for logs, commands and ports of pods.",
)
@click.option(
    "--manifest", is_flag=True, help="The cluster is elsewhere: print what to apply there."
)
@click.option(
    "--syncer-image", default=DEFAULT_IMAGE, show_default=True, help="Image in that manifest."
)
@require_approval_flag
@click.option(
    "--from-kubeconfig",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="At the edge: what skerry edge bootstrap NAME has made at the hub; get a certificate.",
)
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the embedded edge; with --from-kubeconfig of the syncer "
    "[default: .skerry-syncer].",
)
@output_flag("text", "json")
def join(name: str, labels: tuple[str, ...], output: str, **flags: Any) -> None:
    """Let the edge NAME join: make it, its SyncTarget, Location, identity and syncer.

    An embedded edge cluster of that name is created unless there is one; the Location gets the
    labels. May be repeated. With --manifest the cluster is yours, and what to apply there is
    printed. With --from-kubeconfig only the key of the edge is made on this machine, which it does
    not leave, and a certificate got for it; where a person has to approve it, its fingerprint is
    shown and the command waits.
    """
    if flags["from_kubeconfig"] is not None:
        if labels or flags["manifest"] or flags["config"]:
            raise click.UsageError("--from-kubeconfig is the edge's part alone: it takes no labels")
        _get_certificate(name, flags, output)
    elif flags["manifest"]:
        _print_manifest(name, labels, flags)
    else:
        _join_embedded(name, labels, flags, output)


# -- at the hub -------------------------------------------------------------------------------


class _Enlisting:
    """What is done at the hub for an edge that joins."""

    def __init__(self, name: str, labels: Mapping[str, str], flags: dict[str, Any]) -> None:
        self.access = opened(flags["kubeconfig"], flags["context"])
        self.imw: str = flags["imw"] or self.access.current
        waits = flags["wait_seconds"]
        self.wait_seconds: float = _WAIT_SECONDS if waits is None else waits
        self._name = name
        self._labels = labels
        self.flags = flags

    async def check(self) -> None:
        """Raise unless the inventory workspace can have SyncTargets."""
        if not self.imw:
            raise CommandFailed(2, "the current context names no workspace: give one with --imw")
        try:
            await self.access.at(self.imw).list_page(SYNC_TARGETS, limit=1)
        except (NotFound, Forbidden) as error:
            # The hub does not say which, to somebody who may not enter.
            raise CommandFailed(
                2,
                f"{self.imw} is no inventory workspace that you can use (there is none, or it has "
                f"no SyncTargets, or you may not read them): name another with --imw; {error}",
            ) from error

    async def enlist(self) -> EdgeName:
        """Make sure of SyncTarget and Location, and wait for the mailbox."""
        for line in await ensure_location(self.access, self.imw, self._name, self._labels):
            show(line, error=True)
        return await identity.edge_of(
            self.access,
            self._name,
            self.imw,
            self.flags["espw"],
            wait_seconds=self.wait_seconds,
        )

    async def whose(self, mailbox: str) -> str:
        """Return in words whose mailbox has an address; empty when this hub has it no longer."""
        base, _, cluster = mailbox.rpartition("/clusters/")
        if base != self.access.base:
            return f"another hub, {base}"
        for workspace in (await self.access.at(self.flags["espw"]).list(WORKSPACES)).items:
            if workspace["spec"].get("cluster") == cluster:
                return "another SyncTarget of this hub"
        return ""

    async def credential(self, edge: EdgeName) -> Object:
        """Return the kubeconfig by which the edge begins."""
        terms = identity.CredentialTerms(approved=not self.flags["require_approval"])
        return await identity.issue(self.access, self._name, edge, terms)


@asynccontextmanager
async def _enlisting(
    name: str, labels: tuple[str, ...], flags: dict[str, Any]
) -> AsyncIterator[_Enlisting]:
    """Open the hub; what is wrong with the call is reported before anything is made."""
    found = _Enlisting(checked_name(name), checked_labels(labels) if labels else {}, flags)
    try:
        await found.check()
        yield found
    finally:
        await found.access.client.transport.close()


# -- an embedded edge -------------------------------------------------------------------------


def _join_embedded(name: str, labels: tuple[str, ...], flags: dict[str, Any], output: str) -> None:
    async def work() -> None:
        async with _enlisting(name, labels, flags) as hub:
            edge = await asyncio.to_thread(_running_edge, name, flags)
            found = await hub.enlist()
            before = await _last_beat(hub.access.at(found.mailbox))
            begun = await _start_syncer(edge, hub, found)
            if flags["require_approval"]:
                show(f"Its key waits for approval: skerry edge approve {name}", error=True)
            await _heard(hub, name, found, before if begun else None)

    reporting_errors(_COMMAND, work)
    if output == "json":
        show_json({"edge": name}, indent=None)
    else:
        show(f"edge {name} has joined: the hub hears of it and can place workloads on it")


async def _start_syncer(edge: EdgeProcess, hub: _Enlisting, found: EdgeName) -> bool:
    """Run the edge's syncer; one that runs for this very mailbox is left alone.

    Tell whether it was begun here.

    Where that of before is gone with its SyncTarget, the edge goes over to the new one with what
    it runs. From one that is still there it is not taken away.
    """
    syncer, mailbox = edge.syncer, f"{hub.access.base}/clusters/{found.mailbox}"
    if syncer.mailbox not in ("", mailbox):
        whose = await hub.whose(syncer.mailbox)
        if whose:
            raise CommandFailed(
                1, f"edge {edge.name} belongs to {whose}; first: skerry edge delete {edge.name}"
            )
        await asyncio.to_thread(syncer.stop)
    begins = not syncer.mailbox or not syncer.process.running
    if begins:
        beats = hub.flags["heartbeat_seconds"]
        flags = [] if beats is None else ["--heartbeat-seconds", str(beats)]
        flags += ["--tunnel"] if hub.flags["tunnel"] else []
        syncer.join(await hub.credential(found), flags)
    await asyncio.to_thread(syncer.start)
    return begins


def _running_edge(name: str, flags: dict[str, Any]) -> EdgeProcess:
    """Return the embedded edge, created and started where it was not."""
    require_extra(_COMMAND, "edge")
    home = edge_home()
    edge = home.edge(name, flags["data_dir"])
    try:
        if not edge.exists:
            edge.create(configuration(name, flags["config"]))
            home.register(edge)
        # The current context stays the hub's.
        start_edge(edge, flags["kubeconfig"], choose=False)
    except (EdgeError, EdgeConfigError) as error:
        raise CommandFailed(1, str(error)) from error
    return edge


async def _last_beat(mailbox: Client) -> str:
    """Return the version of the Lease by which the edge of a mailbox shows that it lives.

    Nobody may read in a mailbox that is still being made, and no edge was there either.
    """
    try:
        lease = await mailbox.get(LEASES, HEARTBEAT_LEASE, HEARTBEAT_NAMESPACE)
    except (Forbidden, NotFound):
        return ""
    return _version(lease)


async def _heard(hub: _Enlisting, name: str, edge: EdgeName, before: str | None) -> None:
    """Wait until the hub has heard of an edge; later than the heartbeat *before*, if that is given.

    What was heard of an edge that had the name before lasts for as long as its Lease.
    """
    try:
        async with asyncio.timeout(hub.wait_seconds):
            if before is not None:
                lease = Selection(HEARTBEAT_NAMESPACE, fields=f"metadata.name={HEARTBEAT_LEASE}")
                mailbox = hub.access.at(edge.mailbox)
                await _seen(mailbox, LEASES, lease, lambda found: _version(found) != before)
            selection = Selection(fields=f"metadata.name={name}")
            await _seen(hub.access.at(hub.imw), SYNC_TARGETS, selection, _is_ready)
    except TimeoutError as error:
        raise edge_join.NotApproved(
            f"the hub has not heard of edge {name} yet: see skerry fleet, and "
            f"skerry edge approve --list"
        ) from error


async def _seen(
    client: Client,
    gvr: GroupVersionResource,
    selection: Selection,
    holds: Callable[[Object], bool],
) -> None:
    """Wait until *holds* is true of something selected."""
    found = await client.list(gvr, selection)
    if any(map(holds, found.items)):
        return
    revision = found.resource_version
    async with client.watch(gvr, selection, resource_version=revision) as events:
        async for event in events:
            if event.kind in ("ADDED", "MODIFIED") and holds(event.object):
                return


def _version(obj: Object) -> str:
    return str(obj["metadata"]["resourceVersion"])


def _is_ready(sync_target: Object) -> bool:
    return is_true(sync_target, "Ready")


# -- a cluster elsewhere ----------------------------------------------------------------------


def _print_manifest(name: str, labels: tuple[str, ...], flags: dict[str, Any]) -> None:
    async def work() -> str:
        async with _enlisting(name, labels, flags) as hub:
            found = await hub.enlist()
            return await identity.manifest(
                hub.access,
                name,
                found.mailbox,
                image=flags["syncer_image"],
                kubeconfig=await hub.credential(found),
            )

    write_output("-", reporting_errors(_COMMAND, work))


# -- the edge's own part ----------------------------------------------------------------------


def _get_certificate(name: str, flags: dict[str, Any], output: str) -> None:
    def waiting(fingerprint: str) -> None:
        show(f"key {fingerprint}", error=True)
        show(f"waiting for approval: skerry edge approve {name}", error=True, flush=True)

    # Only what is wrong: what is right is said below.
    logging.configure(verbosity=-1)

    async def work() -> Joined:
        return await edge_join.join(
            name,
            flags["from_kubeconfig"],
            flags["data_dir"] or Path(".skerry-syncer"),
            wait_seconds=flags["wait_seconds"],
            waiting=waiting,
        )

    joined = reporting_errors(_COMMAND, work)
    expires = rfc3339(joined.expires)
    if output == "json":
        show_json({"edge": name, "mailbox": joined.mailbox, "expires": expires}, indent=None)
        return
    show(f"edge {name} has joined; its certificate is good until {expires} and renews itself")
