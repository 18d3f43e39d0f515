"""From revoking an edge to the end of its last open stream, at a hub process over TLS.

The edge has a certificate of its own and as many streams as a syncer of many kinds could open, each
of them watched until it has brought its first event. Then the hub's administrator writes the mark
that ``skerry edge revoke`` writes. The time runs from sending that write until the last stream has
ended at the edge's side; other edges' streams stay.

    python -m bench revocation
"""

from __future__ import annotations

import asyncio
import base64
import statistics
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

from bench.edge_hub import CONFIG_MAPS, PROVIDER, bind, body, connected, make_workspace, sync_target
from bench.report import Row
from bench.servers import Measured, ours
from skerry.api.edge import API_VERSION, GROUP, SYNCER_CONFIG_NAME, SYNCER_CONFIGS
from skerry.api.edge_identity import EDGES, REQUESTS, REVOKED, EdgeName, certificate_request
from skerry.api.kcp.resources import LOGICAL_CLUSTERS, SYNC_TARGETS
from skerry.app.edge_environment import ClientFlags, endpoint
from skerry.edge.syncer.identity.signing_request import Subject, signing_request
from skerry.runtime.answers import WatchEvent
from skerry.runtime.client import Client, cluster_of
from skerry.runtime.kubeconfig import connect

_SUITE = "revocation"
_ROUNDS = 10
_STREAMS = 50
_MAX_SECONDS = 1.0
_NAMESPACES = {"namespaces": ["default"], "resources": [
    {"group": "", "resource": "configmaps", "apiVersion": "v1"}]}  # fmt: skip


def run() -> list[Row]:
    """Measure everything."""
    with ours("hub", ["--init", "--controllers", "none"]) as hub:
        return asyncio.run(_measured(hub))


@dataclass(frozen=True, slots=True)
class _Edge:
    """An edge that has arrived: its mailbox as the administrator sees it, and as itself."""

    mailbox: Client
    itself: Client


async def _measured(hub: Measured) -> list[Row]:
    async with connected(hub.kubeconfig) as client:
        inventory = await make_workspace(client, "root", "imw")
        spared = await _joined(hub, client, inventory, "spared")
        async with AsyncExitStack() as stack:
            others = await _streams(spared, stack)
            seconds = [
                await _revoked(await _joined(hub, client, inventory, f"edge-{number}"))
                for number in range(_ROUNDS)
            ]
            ended = sum(each.done() for each in others)
            for each in others:
                each.cancel()
        await spared.itself.transport.close()
    worst = max(seconds)
    note = (
        f"{_ROUNDS} edges of {_STREAMS} streams, one after the other; median "
        f"{statistics.median(seconds) * 1000:.0f} ms; {ended} streams of another edge ended"
    )
    return [
        Row(
            _SUITE,
            "revoke → last stream of the edge closed, longest",
            worst * 1000,
            "ms",
            f"< {_MAX_SECONDS * 1000:.0f} ms",
            worst < _MAX_SECONDS and not ended,
            note,
        )
    ]


async def _joined(hub: Measured, client: Client, inventory: str, name: str) -> _Edge:
    """Let an edge arrive: SyncTarget, mailbox, configuration, certificate."""
    target = await client.at("", inventory).create(SYNC_TARGETS, sync_target(name, {}))
    uid = target["metadata"]["uid"]
    path = await make_workspace(client, PROVIDER, f"{cluster_of(target)}-mb-{uid}")
    await bind(client, path, GROUP)
    mailbox = client.at("", path)
    spec = {"namespaceScope": _NAMESPACES}
    config = body(API_VERSION, "SyncerConfig", SYNCER_CONFIG_NAME, spec=spec)
    await mailbox.create(SYNCER_CONFIGS, config)
    cluster = cluster_of(await mailbox.get(LOGICAL_CLUSTERS, "cluster"))
    edge = EdgeName(cluster, uid)
    made = signing_request(Subject(edge.common_name, EDGES))
    asked = await mailbox.create(REQUESTS, certificate_request(made.name, made.request.encode()))
    approval = {"type": "Approved", "status": "True", "reason": "Known", "message": ""}
    asked["status"] = {"conditions": [approval]}
    issued = await mailbox.update(REQUESTS, asked, subresource="approval")
    certificate = base64.b64decode(issued["status"]["certificate"])
    admin = endpoint("admin", [hub.kubeconfig], ClientFlags()).config
    own = replace(admin, certificate=certificate, key=made.key.encode(), token="")
    return _Edge(mailbox, Client(connect(own)).at("", cluster))


async def _streams(edge: _Edge, stack: AsyncExitStack) -> Sequence[asyncio.Task[None]]:
    """Open the edge's streams and return what ends with each, once all have brought an event."""
    waiting = []
    for _ in range(_STREAMS):
        events = await stack.enter_async_context(
            edge.itself.watch(CONFIG_MAPS, initial_events=True)
        )
        await anext(events)
        waiting.append(asyncio.create_task(_end_of(events)))
    return waiting


async def _end_of(events: AsyncIterator[WatchEvent]) -> None:
    async for _ in events:
        pass


async def _revoked(edge: _Edge) -> float:
    async with AsyncExitStack() as stack:
        streams = await _streams(edge, stack)
        began = time.perf_counter()
        await edge.mailbox.patch(
            LOGICAL_CLUSTERS, "cluster", {"metadata": {"annotations": {REVOKED: "now"}}}
        )
        await asyncio.wait(streams)
        taken = time.perf_counter() - began
    await edge.itself.transport.close()
    return taken
