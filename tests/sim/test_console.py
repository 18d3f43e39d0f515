"""The console's aggregator equals a count made from the API, after every event, for each viewer.

The hub is a real one in this process: edges, Locations, slices and rights are written over its API,
and what is counted are the lists that the API gives to the very person who looks. An event counts
as arrived when what the console's informers hold is what the API lists.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from skerry.api.edge import SINGLE_PLACEMENT_SLICES
from skerry.api.kcp.resources import LOCATIONS as LOCATION_KIND
from skerry.api.kcp.resources import SYNC_TARGETS as TARGET_KIND
from skerry.api.kinds import GroupVersionResource
from skerry.app.console_access import embedded_access
from skerry.app.console_feed import feeding, run_feed
from skerry.app.hub_server import HubServer
from skerry.kit.clock import SystemClock
from skerry.kit.ids import SystemIds
from skerry.server.user import User
from skerry.web.eyes import Eyes
from skerry.web.feed import Feed
from skerry.web.fleet_view import FleetView
from tests.kit.chain.console_objects import location, sync_target
from tests.kit.server.hub import (
    BINDERS,
    BINDINGS,
    LOCATIONS,
    SYNC_TARGETS,
    Hub,
    binding,
    grants,
    running_hub,
)
from tests.kit.sim.world import seeds_of

SLICES = "/apis/edge.kcp.io/v1alpha1/singleplacementslices"
# One hub plays this many, each some dozens of requests: a test must end in time.
_TOGETHER = 25
_SEEDS = seeds_of(1)
SEEDS = [_SEEDS[at : at + _TOGETHER] for at in range(0, len(_SEEDS), _TOGETHER)]
EVENTS = 10
NAMES = ("oslo", "bari", "lund")
STATES = ("Ready", "Syncing", "Held", "Refused", "Unhealthy", "Lost", "NotJoined")
FILTERS = ("", "env=prod", "env!=prod", "status:away", "placement:root:shop/web", "o zone")
PEOPLE = {"alice": User("alice", groups=("system:authenticated",)),
          "bob": User("bob", groups=("system:authenticated",))}  # fmt: skip
WORKSPACES = ("north", "south")


@dataclass
class Town:
    """A hub with two inventories and a workload workspace, and what its console knows."""

    hub: Hub
    feed: Feed
    eyes: Eyes
    clusters: dict[str, str]
    rights: list[int] = field(default_factory=lambda: [0])

    async def listed(self, user: str, place: str, path: str) -> list[Any]:
        """Return what the API lists to somebody; nothing where they may not list."""
        reply = await self.hub.ask(user, "GET", f"/clusters/{self.clusters[place]}{path}")
        assert reply.status in (200, 403), reply.body
        return list(reply.body["items"]) if reply.status == 200 else []

    async def arrived(self) -> None:
        """Wait until the console's informers hold what the API lists."""
        for gvr, path, places in (
            (TARGET_KIND, SYNC_TARGETS, WORKSPACES),
            (LOCATION_KIND, LOCATIONS, WORKSPACES),
            (SINGLE_PLACEMENT_SLICES, SLICES, ("shop",)),
        ):
            wanted = [
                each["metadata"]["resourceVersion"]
                for place in places
                for each in await self.listed("kcp-admin", place, path)
            ]
            async with asyncio.timeout(30):
                while self._held(gvr) != sorted(wanted):
                    await self.hub.settled()

    def _held(self, gvr: GroupVersionResource) -> list[str]:
        return sorted(each["metadata"]["resourceVersion"] for each in self.feed.kept(gvr))


@contextlib.asynccontextmanager
async def town(folder: Path) -> AsyncIterator[Town]:
    async with running_hub(folder, edge_provider=True) as hub:
        api = hub.running.api
        assert isinstance(api, HubServer)
        versions = [0]
        clusters = {
            "north": await hub.workspace("root", "north", admin="alice"),
            "south": await hub.workspace("root", "south", admin="bob"),
            "shop": await hub.workspace("root", "shop", admin="alice"),
        }
        edge = binding("edge", "root:espw", "edge.kcp.io")
        await hub.create(clusters["shop"], BINDINGS, edge)
        await hub.until(clusters["shop"], f"{BINDINGS}/edge", "status", "phase", "Bound")
        access = embedded_access(api, api._parts.authorizer, lambda: versions[0])
        feed, clock = Feed(), SystemClock()
        client = feeding(access.transport_for, clock)
        feed.wanted.set()
        reading = asyncio.create_task(run_feed(feed, client, SystemIds()))
        try:
            await feed.ready()
            yield Town(hub, feed, Eyes(feed, access.rights), clusters, versions)
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)


async def put(hub: Hub, cluster: str, path: str, name: str, obj: dict[str, Any]) -> None:
    """Have an object as it is given: made anew, or changed."""
    where = f"/clusters/{cluster}{path}"
    live = await hub.ask("kcp-admin", "GET", f"{where}/{name}")
    if live.status == 404:
        await hub.create(cluster, path, obj)
    else:
        metadata = {**obj["metadata"], "resourceVersion": live.body["metadata"]["resourceVersion"]}
        reply = await hub.ask("kcp-admin", "PUT", f"{where}/{name}", {**obj, "metadata": metadata})
        assert reply.status == 200, reply.body


async def drop(hub: Hub, cluster: str, path: str, name: str) -> None:
    reply = await hub.ask("kcp-admin", "DELETE", f"/clusters/{cluster}{path}/{name}")
    assert reply.status in (200, 404), reply.body


def labels(source: random.Random) -> dict[str, str]:
    found = {}
    for key in ("env", "zone"):
        if source.random() < 0.6:
            found[key] = source.choice(("prod", "stage"))
    return found


async def play(t: Town, source: random.Random) -> str:
    """Have something happen; return what."""
    place, name = source.choice(WORKSPACES), source.choice(NAMES)
    cluster, hub = t.clusters[place], t.hub
    kind = source.choice(("target", "target", "target", "gone", "location", "slice", "rights"))
    match kind:
        case "target":
            made = sync_target(cluster, name, labels(source), source.choice(STATES))
            obj = {"apiVersion": "workload.kcp.io/v1alpha1", "kind": "SyncTarget", **made}
            status = obj.pop("status")
            obj["metadata"] = {"name": name, "labels": obj["metadata"]["labels"]}
            await put(hub, cluster, SYNC_TARGETS, name, obj)
            reply = await hub.ask(
                "kcp-admin", "PATCH", f"/clusters/{cluster}{SYNC_TARGETS}/{name}/status",
                {"status": None}, content_type="application/merge-patch+json",
            )  # fmt: skip
            assert reply.status == 200, reply.body
            reply = await hub.ask(
                "kcp-admin", "PATCH", f"/clusters/{cluster}{SYNC_TARGETS}/{name}/status",
                {"status": _dated(status)}, content_type="application/merge-patch+json",
            )  # fmt: skip
            assert reply.status == 200, reply.body
        case "gone":
            await drop(hub, cluster, SYNC_TARGETS, name)
        case "location":
            made = location(cluster, name, labels(source), labels(source))
            await put(hub, cluster, LOCATIONS, name, _location(made))
        case "slice":
            members = [
                {"cluster": t.clusters[p], "locationName": n, "syncTargetName": n,
                 "syncTargetUID": f"uid-{n}"}
                for p in WORKSPACES for n in NAMES if source.random() < 0.4
            ]  # fmt: skip
            await put(hub, t.clusters["shop"], SLICES, "web", _slice(members))
        case _:
            who = source.choice(tuple(PEOPLE))
            if source.random() < 0.5:
                await put(hub, cluster, BINDERS, f"admin-{who}",
                          grants(f"admin-{who}", "cluster-admin", who))  # fmt: skip
            else:
                await drop(hub, cluster, BINDERS, f"admin-{who}")
            t.rights[0] += 1
    return f"{kind} {place}/{name}"


def _dated(status: Mapping[str, Any]) -> dict[str, Any]:
    moment = {"lastTransitionTime": "2030-01-01T00:00:00Z", "reason": "R"}
    return {**status, "conditions": [{**moment, **each} for each in status["conditions"]]}


def _location(made: dict[str, Any]) -> dict[str, Any]:
    resource = {"group": "workload.kcp.io", "version": "v1alpha1", "resource": "synctargets"}
    return {
        "apiVersion": "scheduling.kcp.io/v1alpha1",
        "kind": "Location",
        "metadata": {"name": made["metadata"]["name"], "labels": made["metadata"]["labels"]},
        "spec": {**made["spec"], "resource": resource},
    }


def _slice(members: list[dict[str, str]]) -> dict[str, Any]:
    return {
        "apiVersion": "edge.kcp.io/v1alpha1",
        "kind": "SinglePlacementSlice",
        "metadata": {"name": "web", "labels": {"edge.kcp.io/source-placement": "web"}},
        "destinations": members,
    }


@dataclass(frozen=True)
class Counted:
    """One edge as the API has it: its state, read here anew, and its labels."""

    place: str
    name: str
    state: str
    labels: Mapping[str, str]
    placed: bool

    def holds(self, word: str) -> bool:
        if word.startswith("status:"):
            return self.state == word.removeprefix("status:")
        if word.startswith("placement:"):
            return self.placed
        key, found, value = word.partition("!=")
        if found:
            return self.labels.get(key) != value
        key, found, value = word.partition("=")
        if found:
            return self.labels.get(key) == value
        return word in self.name or word in self.labels


def _state(target: Any) -> str:
    """Return how an edge stands, by what the API says of it."""
    status = target.get("status") or {}
    if not status.get("lastSyncerHeartbeatTime"):
        return "unknown"
    said = {each["type"]: each["status"] for each in status["conditions"]}
    objects = status["objects"]
    if said.get("Ready") != "True":
        return "away"
    if "True" in (said.get("Held"), said.get("ObjectsRefused")):
        return "degraded"
    if objects["unhealthy"]:
        return "unhealthy"
    return "healthy" if objects["applied"] == objects["wanted"] else "progressing"


async def counted(t: Town, user: str) -> list[Counted]:
    """Return the edges that the API lists to somebody; labels of Locations are the hub's."""
    slices = await t.listed("kcp-admin", "shop", SLICES)
    may = bool(await t.listed(user, "shop", SLICES)) if slices else False
    members = {
        (each["cluster"], each["syncTargetName"])
        for piece in slices
        for each in piece.get("destinations") or ()
    }
    found = []
    for place in WORKSPACES:
        locations = await t.listed("kcp-admin", place, LOCATIONS)
        for target in await t.listed(user, place, SYNC_TARGETS):
            own = target["metadata"].get("labels") or {}
            all_of: dict[str, str] = {}
            for each in sorted(locations, key=lambda one: one["metadata"]["name"], reverse=True):
                wanted = (each["spec"].get("instanceSelector") or {}).get("matchLabels") or {}
                if wanted.items() <= own.items():
                    all_of |= each["metadata"].get("labels") or {}
            name = target["metadata"]["name"]
            placed = may and (t.clusters[place], name) in members
            found.append(Counted(place, name, _state(target), all_of | own, placed))
    return found


async def compare(t: Town, happened: str) -> None:
    for user, viewer in PEOPLE.items():
        edges = await counted(t, user)
        for words in FILTERS:
            view = FleetView(t.feed, t.eyes, viewer, {"q": words, "by": "env"}, lambda: 0.0)
            shown = view.content()
            wanted = [each for each in edges if all(map(each.holds, words.split()))]
            why = f"{happened}: {user} looks at {words!r}"
            states = Counter(each.state for each in wanted)
            assert {k: n for k, n in shown["counts"].items() if n} == dict(states), why
            values = Counter(each.labels.get("env", "") for each in wanted)
            assert {g["value"]: g["count"] for g in shown["groups"]} == dict(values), why
            named = sorted((row["ws"], row["name"]) for row in shown["rows"])
            assert named == sorted((f"root:{each.place}", each.name) for each in wanted), why
            assert shown["total"] == len(edges), why


@pytest.mark.parametrize("seeds", SEEDS, ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")
async def test_the_aggregator_equals_a_count_from_the_api_after_every_event(
    tmp_path: Path, seeds: range
) -> None:
    async with town(tmp_path) as t:
        for seed in seeds:
            source = random.Random(seed)
            for number in range(EVENTS):
                happened = await play(t, source)
                await t.arrived()
                await compare(t, f"seed {seed}, event {number}, {happened}")
