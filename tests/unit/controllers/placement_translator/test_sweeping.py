"""What slots and Rollouts name is used, and deletions are of exactly what was listed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import orjson

from skerry.api.objects import Object
from skerry.api.refs import CLUSTER_ANNOTATION
from skerry.controllers.placement_translator.sweeping import Sweeper, sweep_actions, used_numbers
from skerry.kit.clock import LoopClock
from skerry.logic.fleet.revision.objects import Cut, revision_objects
from skerry.logic.fleet.revision.retention import SWEEP_SECONDS, SweepPlan
from skerry.logic.machinery.plan import Delete
from skerry.runtime.client import Client
from skerry.runtime.execute import Executor
from skerry.runtime.metrics import RuntimeMetrics
from skerry.runtime.transport import NO_HEADERS, Answer, TransportError
from tests.kit.answering import AnsweringTransport
from tests.kit.chain.revisions import OWNER, manifest, pages, stored
from tests.kit.chain.translator_world import cluster_object
from tests.kit.sim.loop import virtual


def test_slots_and_everything_a_rollout_says_name_revisions() -> None:
    piece = cluster_object("c", "web", destinations=[{"revision": 4}, {"revision": 5}, {}])
    more = cluster_object("c", "web-2", destinations=[{"revision": 9}])
    more["metadata"]["labels"] = {"edge.kcp.io/source-placement": "web"}
    rollout: Object = {
        "spec": {"force": {"revision": 2}},
        "status": {"target": 7, "stable": 6, "failure": {"revision": 3}},
    }
    other = cluster_object("c", "new", spec={}, status={})
    found = used_numbers([piece, more], [cluster_object("c", "web", **rollout), other])
    assert found == {("c", "web"): {2, 3, 4, 5, 6, 7, 9}, ("c", "new"): set()}


def test_revisions_go_before_contents_and_each_as_it_was_seen() -> None:
    [page] = pages(manifest({"a": b"1"}), 1)
    plan = SweepPlan((("c", page),), (("c", "ab"),), {})
    first, second = sweep_actions(plan, {("c", "ab"): "uid-ab"})
    assert isinstance(first, Delete)
    assert isinstance(second, Delete)
    assert (first.target.name, first.uid) == ("web-1", "uid-web-1")
    assert (second.target.name, second.uid, second.target.cluster) == ("ab", "uid-ab", "c")


# -- sweeping --------------------------------------------------------------------------------------


class Hub(AnsweringTransport):
    """Lists contents and revisions, and takes deletions."""

    def __init__(self) -> None:
        self.contents: dict[str, str] = {}
        self.revisions: list[Object] = []
        self.failures = 0
        self.deleted: list[str] = []
        self.lists = 0

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        if method == "DELETE":
            self.deleted.append(path.rsplit("/", maxsplit=1)[-1])
            return Answer(200, {}, b'{"kind":"Status"}')
        self.lists += 1
        if self.failures:
            self.failures -= 1
            raise TransportError("no answer")
        items = self.revisions
        if "revisioncontents" in path:
            items = [cluster_object("c", name) for name in self.contents]
            for each in items:
                each["metadata"]["uid"] = self.contents[each["metadata"]["name"]]
        found = {"metadata": {"resourceVersion": "1"}, "items": items}
        return Answer(200, {}, orjson.dumps(found))


def sweeper(hub: Hub) -> Sweeper:
    client = Client(hub, clock=LoopClock())
    executor = Executor(client, "translator", metrics=RuntimeMetrics())
    return Sweeper(client.for_cluster("*"), executor, asyncio.Lock(), list, list)


def revision(number: int, proof: bytes) -> Object:
    found = manifest({"a": proof})
    (obj,) = revision_objects(OWNER, found, Cut(number, number))
    obj["metadata"].setdefault("annotations", {})[CLUSTER_ANNOTATION] = "c"
    return stored(obj)


@virtual
async def test_a_content_that_nobody_names_goes_at_the_second_sweep_and_a_named_one_stays() -> None:
    hub = Hub()
    hub.revisions = [revision(1, b"1")]
    named = hub.revisions[0]["spec"]["items"][0]["digest"]
    hub.contents = {named: "uid-named", "stray": "uid-stray"}
    work = sweeper(hub)
    await work.sweep()
    assert hub.deleted == []
    await asyncio.sleep(2 * SWEEP_SECONDS)
    await work.sweep()
    assert hub.deleted == ["stray"]


@virtual
async def test_a_content_that_is_named_in_between_counts_from_the_beginning() -> None:
    hub = Hub()
    named = revision(1, b"1")
    content = named["spec"]["items"][0]["digest"]
    hub.contents = {content: "uid"}
    work = sweeper(hub)
    for revisions in ([], [named], []):
        hub.revisions = revisions
        await work.sweep()
        await asyncio.sleep(2 * SWEEP_SECONDS)
    assert hub.deleted == []


@virtual
async def test_a_sweep_that_fails_is_made_up_for_an_hour_later_and_a_new_leader_starts_anew() -> (
    None
):
    hub = Hub()
    hub.contents, hub.failures = {"stray": "uid"}, 1
    work = sweeper(hub)
    running = asyncio.create_task(work.run())
    await asyncio.sleep(1)
    assert (hub.lists, hub.deleted) == (1, [])
    await asyncio.sleep(SWEEP_SECONDS)
    assert (hub.lists, hub.deleted) == (3, [])
    running.cancel()
    await asyncio.sleep(3 * SWEEP_SECONDS)
    running = asyncio.create_task(work.run())
    await asyncio.sleep(1)
    assert hub.deleted == [], "what was seen before another led does not count"
    await asyncio.sleep(3 * SWEEP_SECONDS)
    running.cancel()
    assert hub.deleted[0] == "stray"
