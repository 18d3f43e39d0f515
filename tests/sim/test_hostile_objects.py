"""Whatever tenants write into the objects that controllers read, the controllers go on.

Objects are made at random from the kinds' own schemas, so the hub takes them: numbers at their
limits, texts that are nearly something, lists that repeat themselves, and every annotation with a
value that is none. Spec, status and the mailboxes are written alike.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

import orjson
import pytest
from pyroaring import BitMap

from skerry.api import edge
from skerry.api.edge import DOMAIN, HEARTBEAT_LEASE, PROJECTED, SYNC_TARGET_NAME
from skerry.api.errors import ApiError
from skerry.api.kcp import compute
from skerry.api.kcp import edge as edge_kinds
from skerry.api.kcp.resources import LOGICAL_CLUSTERS, WORKSPACES
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.app.console_desk import _openings
from skerry.app.console_feed import run_feed
from skerry.app.edge_controllers import EDGE_CONTROLLERS
from skerry.logic.fleet.history.packing import packed_slots
from skerry.logic.fleet.history.record import _content
from skerry.logic.fleet.placement.heartbeat import LEASES
from skerry.runtime.client import Client
from skerry.scheduler.placement import location_chooser
from skerry.server.user import User
from skerry.web.eyes import Eyes, Rights
from skerry.web.feed import Feed
from skerry.web.past_view import PastFleet
from tests.kit.chain.building import equal
from tests.kit.chain.edge_scheduler_hub import PROVIDER
from tests.kit.chain.rollout_chain import CONFIG_MAPS, NAMESPACES
from tests.kit.chain.rollout_hub import FAST, INVENTORY, WORKLOAD, RolloutHub
from tests.kit.sim.loop import virtual
from tests.kit.sim.world import seeds_of

CALM = "root:calm"
_FEW = seeds_of(4, least=2)
_MAX_DEPTH = 12
_OBJECTS = 150
ANNOTATIONS: Final = sorted(
    {each for each in vars(edge).values() if re.fullmatch(DOMAIN + "[a-z-]+", str(each))}
)
# A hundred million slots in a few thousand characters.
EVERYBODY: Final = packed_slots(BitMap().flip(0, 2**27))
# Nearly a number, a time, a duration, a name, a selector, a digest, a compressed set.
TEXTS: Final = (
    "", "web", "e1", "e2", "default", "root:imw", "root:shop", "web-1", "s", "page", "the-one",
    "0", "-1", "1", "9" * 20, "1e999", "NaN", "5%", "100%", "101%", "-1s", "1s", "9999999h", "0s",
    "2026-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59Z", "now", "* * * * *",
    "0 0 31 2 *", "UTC", "Nowhere/Land", "true", "null", "{}", "[]", "{", "[[1]]", '{"a": [null]}',
    "a" * 64, "0" * 64, "AAAA", "OjAAAAEAAAAAAAAAEAAAAAEA", "!!!!", "configmaps", "apps", "*",
    "self.x > 1", "1/0", "size(", "reports[0].a", "$(location.", "%(x)s", "é\u2028\u0000x",
    "edges", "Count", "o-1", "d-1", "open-1", "web/1", "1/rest", "a=b,c", "a in (b)", "!",
    EVERYBODY,
)  # fmt: skip


DATES: Final = tuple(each for each in TEXTS if each.startswith(("2026-", "0001-", "9999-")))
NOT_OURS: Final = ("apiVersion", "kind", "metadata")
EVERYTHING: Mapping[str, Any] = {}


class Maker:
    """Makes values that a schema takes, or nearly."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def value(self, schema: dict[str, Any], depth: int = 0) -> Any:
        if "enum" in schema:
            return self.random.choice(schema["enum"])
        kind = schema.get("type")
        if kind == "object" and depth < _MAX_DEPTH:
            return self._struct(schema, depth)
        if kind == "array" and depth < _MAX_DEPTH:
            count = max(schema.get("minItems", 0), self.random.choice((0, 1, 1, 2)))
            found = [self.value(schema["items"], depth + 1) for _ in range(count)]
            return found * 2 if self.random.random() < 0.1 else found
        if kind in ("integer", "number"):
            return self._number(schema)
        if kind == "boolean":
            return self.random.random() < 0.5
        if schema.get("x-kubernetes-int-or-string"):
            return self.random.choice((0, -1, 1, "50%", "100%", "-1%", self.text()))
        return self.text(schema)

    def _struct(self, schema: dict[str, Any], depth: int) -> Any:
        required = schema.get("required", ())
        found = {
            name: self.value(inner, depth + 1)
            for name, inner in schema.get("properties", {}).items()
            if name in required or self.random.random() < 0.5
        }
        more = schema.get("additionalProperties")
        if isinstance(more, dict):
            found |= {self.text(): self.value(more, depth + 1) for _ in range(2)}
        if schema.get("x-kubernetes-preserve-unknown-fields"):
            found |= {name: self.anything() for name in ("metadata", "spec", "status", "data")}
        return found

    def _number(self, schema: dict[str, Any]) -> int:
        end = 2**31 if schema.get("format") == "int32" else 2**63
        first, last = schema.get("minimum", -end), schema.get("maximum", end - 1)
        few = [number for number in (0, 1, 2, 7) if first <= number <= last]
        return int(self.random.choice((first, last, *few)))

    def text(self, schema: Mapping[str, Any] = EVERYTHING) -> str:
        if schema.get("format") == "date-time":
            return self.random.choice(DATES)
        pattern = schema.get("pattern", "")
        lengths = range(schema.get("minLength", 0), schema.get("maxLength", 2**20) + 1)
        fitting = [each for each in TEXTS if len(each) in lengths and re.search(pattern, each)]
        return self.random.choice(fitting or TEXTS)

    def anything(self, depth: int = 0) -> Any:
        values: list[Any] = [None, True, -1, 2**63 - 1, 0.5, self.text(), [], {}]
        if depth < 3:
            values.append([self.anything(depth + 1)])
            values.append({self.text(): self.anything(depth + 1), "name": "x"})
        return self.random.choice(values)

    def annotations(self) -> dict[str, str]:
        return {name: self.text() for name in self.random.sample(ANNOTATIONS, 4)}


_COUNT = {"name": "n", "function": "Count"}
_SUM = {"name": "n", "function": "Sum", "of": "status.?readyReplicas.orValue(1/0)"}
_PAGES = {"rows": "Copies", "resources": [{"group": "", "resource": "configmaps"}]}
# Of kinds whose specs are hardly ever valid by chance.
SPECS: Final[Mapping[str, list[Object]]] = {
    "StatusQuery": [
        {"from": {"rows": "Destinations"}, "aggregates": [_COUNT]},
        {"from": _PAGES, "aggregates": [_SUM]},
        {"from": _PAGES, "select": [{"name": "x", "value": "metadata.name"}]},
    ],
    "Rollout": [
        {**FAST, "judge": {"minReady": "0s", "failWhen": "reports[7].restarts > 5"}},
        {"waves": [{"name": "one"}], "settle": {"quiet": "0s", "longest": "999h"}},
        {"pace": {"concurrency": "1%", "maxUnavailable": "1%"}},
    ],
    "PlacementGuard": [
        {
            "freezes": [
                {"name": "x", "schedule": "* * * * *", "duration": "1m", "stops": ["Content"]}
            ]
        },
        {"budgets": [{"of": "Destinations", "max": 1, "window": "1h"}]},
        {"protect": [{"kind": "Namespace", "against": ["Delete"], "names": ["web"]}]},
    ],
}


_CONTAINER = {"name": "c", "image": "i"}
_TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [_CONTAINER]}}
DEPLOYMENTS = GroupVersionResource("apps", "v1", "deployments")


class Kind:
    """A kind that tenants write."""

    def __init__(self, definition: dict[str, Any]) -> None:
        spec = definition["spec"]
        [version] = spec["versions"]
        self.gvr = GroupVersionResource(spec["group"], version["name"], spec["names"]["plural"])
        self.kind = spec["names"]["kind"]
        self.schema = version["schema"]["openAPIV3Schema"]
        self.has_status = "status" in version.get("subresources", {})
        self.is_namespaced = spec["scope"] == "Namespaced"


KINDS = [
    Kind(each) for each in (*edge_kinds.definitions(), compute.location(), compute.sync_target())
]


async def write(maker: Maker, client: Client) -> bool:
    """Write one object or status; returns whether the hub took it."""
    kind = maker.random.choice(KINDS)
    namespace = "s" if kind.is_namespaced else ""
    name = maker.random.choice((*["web"] * 6, "web-1", "e1", "the-one", "default", "x", "p"))
    body = {n: v for n, v in maker.value(kind.schema).items() if n not in NOT_OURS}
    if kind.kind in SPECS and maker.random.random() < 0.7:
        body["spec"] = maker.random.choice(SPECS[kind.kind])
    if kind.kind == "DecisionRecord":
        with suppress(KeyError):
            name = f"web-00000000{maker.random.randrange(1000, 9999)}-0001-{_content(body)}"
    metadata: Object = {"name": name, "annotations": maker.annotations()}
    if maker.random.random() < 0.2:
        metadata["finalizers"] = ["example.com/mine"]
    if maker.random.random() < 0.3:
        metadata["labels"] = {"edge.kcp.io/source-placement": "web", "env": "prod"}
    obj = {"apiVersion": f"{kind.gvr.group}/{kind.gvr.version}", "kind": kind.kind,
           **body, "metadata": metadata}  # fmt: skip
    taken = False
    with suppress(ApiError):
        await client.create(kind.gvr, obj, namespace)
        taken = True
    if not taken:
        with suppress(ApiError):
            await client.patch(kind.gvr, name, obj, namespace)
            taken = True
    if kind.has_status and "status" in body:
        with suppress(ApiError):
            status = {"status": body["status"]}
            await client.patch(kind.gvr, name, status, namespace, subresource="status")
            taken = True
    if maker.random.random() < 0.1:
        with suppress(ApiError):
            await client.delete(kind.gvr, name, namespace)
    return taken


async def write_content(maker: Maker, client: Client) -> bool:
    """Write an object that is sent, a copy in a mailbox, or a heartbeat."""
    gvr, namespace = maker.random.choice(
        ((CONFIG_MAPS, "s"), (DEPLOYMENTS, "s"), (LEASES, "default"))
    )
    name = HEARTBEAT_LEASE if gvr == LEASES else maker.random.choice(("page", "web", "x"))
    contents: dict[GroupVersionResource, Object] = {
        CONFIG_MAPS: {"data": {"text": maker.text()}},
        DEPLOYMENTS: {
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": _TEMPLATE},
            "status": {"readyReplicas": maker.random.choice((0, 2**31 - 1))},
        },
        LEASES: {
            "spec": {
                "renewTime": maker.random.choice(DATES),
                "leaseDurationSeconds": maker.random.choice((1, 2**31 - 1)),
            }
        },
    }
    labels = {PROJECTED: "yes"} if maker.random.random() < 0.3 else {}
    metadata = {"name": name, "labels": labels, "annotations": maker.annotations()}
    obj = {**contents[gvr], "metadata": metadata}
    with suppress(ApiError):
        await client.create(gvr, obj, namespace)
        return True
    with suppress(ApiError):
        await client.patch(gvr, name, obj, namespace)
        return True
    return False


class Looking:
    """A console that follows the hub, and somebody who looks at everything."""

    def __init__(self, hub: RolloutHub) -> None:
        self.hub, self.feed = hub, Feed(location_chooser)
        self.feed.wanted.set()
        rights = Rights(lambda *_: True, lambda: 0, lambda each: each, lambda path: path)
        self.eyes = Eyes(self.feed, rights)

    async def run(self) -> None:
        await run_feed(self.feed, self.hub.client, self.hub.ids)

    async def look(self, cluster: str) -> None:
        """Open every view there is."""
        user = User("ann")
        for opening in _openings(self.feed, self.eyes, self.hub.clock, self._past).values():
            for given in ({}, {"ws": cluster, "name": "web", "by": "env"}):
                with suppress(ApiError):
                    view = await opening(user, given)
                    view.version()
                    orjson.dumps(view.content(), option=orjson.OPT_NON_STR_KEYS)
                    view.close()

    async def _past(self, user: User, moment: datetime) -> PastFleet:
        return PastFleet(moment, {}, ())


@pytest.mark.parametrize("seed", _FEW)
@virtual
async def test_controllers_go_on_whatever_tenants_write(seed: int) -> None:
    hub, maker = RolloutHub(seed), Maker(seed)
    async with hub.running("shop", "imw", "calm"), hub.controlled(*EDGE_CONTROLLERS):
        await hub.fleet(2)
        await hub.place(WORKLOAD, "web", equal(env="prod"), namespaceSelector=equal(goes="out"))
        await hub.roll_out()
        await hub.cut(1)
        await asyncio.sleep(5)
        spaces = (await hub.at(PROVIDER).list(WORKSPACES)).items
        contents = [
            each["spec"]["cluster"]
            for each in spaces
            if SYNC_TARGET_NAME in (each["metadata"].get("annotations") or {})
        ]
        assert len(contents) == 2
        places = [hub.at(WORKLOAD), hub.at(INVENTORY), *map(hub.at, contents)]
        for each in places:
            labels = {"goes": "out"}
            await each.create(NAMESPACES, {"metadata": {"name": "s", "labels": labels}})
        taken = 0
        clusters = [
            (await each.get(LOGICAL_CLUSTERS, "cluster"))["metadata"]["annotations"][
                "kcp.io/cluster"
            ]
            for each in places
        ]
        console = Looking(hub)
        looking = asyncio.create_task(console.run())
        for number in range(_OBJECTS):
            if number % 10 == 0:
                await console.look(clusters[number % 20 // 10])
            place = maker.random.choice(places)
            taken += await write(maker, place)
            await write_content(maker, place)
            await asyncio.sleep(maker.random.choice((0, 0.1, 3)))
        await asyncio.sleep(7200)
        assert taken > _OBJECTS / 10
        if looking.done():
            looking.result()
        looking.cancel()
        await hub.place(CALM, "after", equal(fresh="yes"))
        await hub.target(CALM, "fresh", {"fresh": "yes"})
        await hub.locate(CALM, "fresh", {"fresh": "yes"}, equal(fresh="yes"))
        await asyncio.sleep(60)
        found = {ref.name: each for ref, each in (await hub.destinations()).items()}
        assert [each.sync_target for each in found["after"]] == ["fresh"]
