"""A script that relabels everything, and an old backup of the inventory: nothing goes unasked."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from skerry.api.edge import CONFIRM, EDGE_PLACEMENTS, PLACEMENT_GUARDS, SINGLE_PLACEMENT_SLICES
from skerry.api.errors import ApiError, Conflict, ServiceUnavailable
from skerry.api.kcp.resources import API_BINDINGS, LOCATIONS, SYNC_TARGETS, WORKSPACES
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.runtime.client import Client
from skerry.runtime.kubeconfig import Overrides, connect, load
from tests.kit.e2e.hubs import Hub
from tests.kit.e2e.summaries import binding, edge
from tests.kit.e2e.two_tenants import SKERRY

_EDGES, _BUDGET = 60, 20
_EDGE_API = "edge.kcp.io/v1alpha1"
_PATIENCE_SECONDS = 60.0


@pytest.fixture
def scheduled(hub: Hub, tmp_path: Path) -> Iterator[None]:
    where = ("--espw-path", "root:espw", "--kubeconfig", str(hub.kubeconfig))
    command = [SKERRY, "controllers", *where, "--only", "edge-scheduler"]
    with (tmp_path / "controllers.log").open("wb") as log:
        running = subprocess.Popen(
            [*command, "--server-bind-address", "127.0.0.1:0"], stdout=log, stderr=log
        )
    yield
    running.terminate()
    running.wait(timeout=60)


@asynccontextmanager
async def speaking(hub: Hub, context: str) -> AsyncIterator[Client]:
    transport = connect(load([hub.kubeconfig], Overrides(context=context)))
    try:
        yield Client(transport)
    finally:
        await transport.close()


def made(version: str, kind: str, name: str, spec: Object) -> Object:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


async def furnish(admin: Client) -> None:
    """Have an inventory of edges, a guard for all, and a placement that goes to every edge."""
    root = admin.at("", "root")
    edge_api = binding("edge", "root:espw", "edge.kcp.io")
    for name in ("imw", "shop"):
        await root.create(WORKSPACES, made("tenancy.kcp.io/v1alpha1", "Workspace", name, {}))
    for path in ("root:espw", "root:shop"):
        await admin.at("", path).create(API_BINDINGS, edge_api)
    for number in range(_EDGES):
        target, location = edge(f"e{number}")
        await admin.at("", "root:imw").create(SYNC_TARGETS, target)
        await admin.at("", "root:imw").create(LOCATIONS, location)
    everywhere = {"locationSelectors": [{"matchLabels": {"env": "prod"}}]}
    placement = made(_EDGE_API, "EdgePlacement", "web", everywhere)
    await admin.at("", "root:shop").create(EDGE_PLACEMENTS, placement)
    budget = {"of": "DestinationsRemoved", "max": _BUDGET, "window": "1h"}
    guard = made(_EDGE_API, "PlacementGuard", "fleet", {"budgets": [budget]})
    await admin.at("", "root:espw").create(PLACEMENT_GUARDS, guard)
    change = {"metadata": {"labels": {"read": "yes"}}}
    async with asyncio.timeout(_PATIENCE_SECONDS):
        while True:
            # With the first guard the hub reads what guards ask for, and says so meanwhile.
            with suppress(ServiceUnavailable):
                await admin.at("", "root:imw").patch(LOCATIONS, "e0", change)
                return


async def until(
    client: Client, gvr: GroupVersionResource, holds: Callable[[Object], bool]
) -> Object:
    """Wait until the object ``web`` of the workspace is as it should be."""
    async with asyncio.timeout(_PATIENCE_SECONDS):
        async with client.at("", "root:shop").watch(gvr) as events:
            async for event in events:
                if event.object["metadata"].get("name") == "web" and holds(event.object):
                    return event.object
    raise AssertionError("the watch has ended")


def reaches(number: int) -> Callable[[Object], bool]:
    return lambda piece: len(piece.get("destinations") or ()) == number


async def relabel(client: Client, number: int, env: str) -> None:
    change = {"metadata": {"labels": {"env": env}}}
    await client.at("", "root:imw").patch(LOCATIONS, f"e{number}", change)


async def refused_of(client: Client) -> list[ApiError]:
    """Relabel every Location as a careless script does; return what it met."""
    found: list[ApiError] = []
    for number in range(_EDGES):
        try:
            await relabel(client, number, "dr")
        except Conflict as error:
            found.append(error)
    return found


@pytest.mark.usefixtures("scheduled")
async def test_a_script_is_stopped_at_the_budget_and_an_old_backup_asks(hub: Hub) -> None:
    async with speaking(hub, "base") as person, speaking(hub, "system:admin") as system:
        await furnish(person)
        await until(person, SINGLE_PLACEMENT_SLICES, reaches(_EDGES))
        refused = await refused_of(person)
        assert len(refused) == _EDGES - _BUDGET
        assert f"(budget {_BUDGET})" in refused[0].message
        left = _EDGES - _BUDGET
        await until(person, SINGLE_PLACEMENT_SLICES, reaches(left))

        # A backup of the inventory that is older than "prod" comes by no person's request.
        for number in range(_EDGES):
            await relabel(system, number, "old")

        def held(placement: Object) -> Object:
            removals = (placement.get("status") or {}).get("removals") or {}
            return dict(removals.get("held") or {})

        placement = await until(person, EDGE_PLACEMENTS, lambda o: held(o).get("removed") == left)
        shop = person.at("", "root:shop")
        assert reaches(left)(await shop.get(SINGLE_PLACEMENT_SLICES, "web"))
        note = {"metadata": {"annotations": {CONFIRM: held(placement)["name"]}}}
        await shop.patch(EDGE_PLACEMENTS, "web", note)
        await until(person, SINGLE_PLACEMENT_SLICES, reaches(0))
