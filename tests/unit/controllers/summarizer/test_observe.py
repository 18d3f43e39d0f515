"""What one summary is compared with."""

from __future__ import annotations

from typing import Any

from skerry.api.edge import PROJECTED, PROJECTED_VALUE, Mailbox, edge_placement_ref
from skerry.api.objects import Object
from skerry.api.refs import CLUSTER_ANNOTATION, ObjectRef
from skerry.controllers.summarizer.events import SummaryInputs
from skerry.controllers.summarizer.observe import (
    ObservedPlacement,
    PlacementObserver,
    SummaryObserver,
)
from skerry.controllers.summarizer.pace import Pace
from skerry.controllers.summarizer.projections import (
    BY_CLUSTER,
    BY_PLACEMENT,
    Kind,
    by_cluster,
    by_placement,
    lean_slice,
)
from skerry.controllers.summarizer.watches import EVERY_KIND, KindWatches, Parked
from skerry.kit.clock import LoopClock
from skerry.logic.fleet.summary.freshness import LIVE
from skerry.logic.fleet.summary.standing import Standing
from skerry.logic.fleet.tables.completeness import Scope
from skerry.runtime.index import Index, Key, key_of
from skerry.runtime.workqueue import WorkQueue
from tests.kit.chain.summarizer_inputs import Hub

DEPLOYMENTS = Kind("apps", "v1", "deployments", "Deployment", has_status=True)
NAMESPACES = Kind("", "v1", "namespaces", "Namespace", has_status=False)
UID = "00000000-0000-4000-8000-000000000000"
WEB = Key("wmw", "shop", "p-deployments-web")
P = edge_placement_ref("wmw", "p")


def thing(cluster: str, name: str, namespace: str = "", **more: Any) -> Object:
    metadata = {"name": name, "annotations": {CLUSTER_ANNOTATION: cluster}, **more.pop("meta", {})}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": "v1", "kind": "Thing", "metadata": metadata, **more}


class World:
    """One Deployment, placed at one edge, in a workspace that was read unless said otherwise."""

    def __init__(self, *, read: bool = True, singleton: bool = False) -> None:
        self.hub = Hub()
        self.slices, self.summaries, self.cluster_summaries, self.placements = (
            Index() for _ in range(4)
        )
        self.slices.add_index(BY_PLACEMENT, by_placement)
        self.enqueued: list[Parked] = []
        self.inputs = SummaryInputs(self.slices, lambda _: None, lambda _: None, lambda _: None)
        self.watches = KindWatches(self.hub.context, self.inputs, self.enqueued.append)
        pace: Pace[Key] = Pace(WorkQueue("summaries"), LoopClock())
        self.observer = SummaryObserver(
            self.inputs,
            self.watches,
            self.summaries,
            self.cluster_summaries,
            self.hub.context.client,
            pace,
        )
        placement_pace: Pace[ObjectRef] = Pace(WorkQueue("placements"), LoopClock())
        self.standings = PlacementObserver(
            self.inputs, self.watches, self.placements, placement_pace
        )
        self._held = {kind: Index() for kind in (DEPLOYMENTS, NAMESPACES)}
        for kind, index in self._held.items():
            index.add_index(BY_CLUSTER, by_cluster)
            self.inputs.watch(kind, index)
        self._place(singleton=singleton)
        if read:
            self.watches._complete_everything("wmw")

    def _place(self, *, singleton: bool) -> None:
        workspace = thing("espw", Mailbox("imw", UID).workspace, spec={"cluster": "mb"})
        self.inputs.mailbox_changed(None, workspace)
        self.inputs.leases_changed({"mb": LIVE})
        self.put(NAMESPACES, thing("wmw", "shop"))
        self.put(DEPLOYMENTS, thing("wmw", "web", "shop"))
        spec = {"namespaceSelector": {}, "wantSingletonReportedState": singleton}
        placement = thing("wmw", "p", spec=spec, meta={"uid": "uid-p"})
        self.placements.put(key_of(placement), placement)
        self.inputs.placement_changed(None, placement)
        where = {"cluster": "imw", "locationName": "l", "syncTargetName": "s", "syncTargetUID": UID}
        piece = lean_slice(thing("wmw", "p", destinations=[where]))
        self.slices.put(key_of(piece), piece)
        self.inputs.slice_changed(None, piece)

    def put(self, kind: Kind, obj: Object) -> None:
        kept = kind.project(obj)
        self.inputs.object_changed(kind, self._held[kind].put(key_of(kept), kept), kept)

    def report(self, status: Object) -> None:
        labels = {PROJECTED: PROJECTED_VALUE}
        copy = thing("mb", "web", "shop", status=status, meta={"labels": labels})
        self.put(DEPLOYMENTS, copy)
        self.hub.objects["/clusters/mb/apis/apps/v1/namespaces/shop/deployments/web"] = copy

    def source(self, status: Object) -> Object:
        live = thing("wmw", "web", "shop", status=status)
        self.hub.objects["/clusters/wmw/apis/apps/v1/namespaces/shop/deployments/web"] = live
        return live


async def test_a_summary_with_a_cause_is_compared_with_its_tally() -> None:
    world = World()
    world.report({"replicas": 2})

    found = await world.observer.observe(WEB)

    assert found is not None
    assert found.desired is not None
    assert found.desired.placement == P
    assert found.desired.owner_uid == "uid-p"
    assert found.desired.subject == ("apps", "v1", "deployments", "Deployment", "shop", "web")
    assert (found.desired.totals.destinations, found.desired.totals.reported) == (1, 1)
    assert (found.existing, found.returned, found.missing) == (None, None, None)


async def test_a_summary_that_is_neither_there_nor_desired_is_not_compared() -> None:
    assert await World().observer.observe(Key("wmw", "shop", "unknown")) is None


async def test_a_summary_without_cause_is_compared_with_nothing() -> None:
    world = World()
    for held, key in (
        (world.summaries, Key("wmw", "shop", "old")),
        (world.cluster_summaries, Key("wmw", "", "old")),
    ):
        obj = thing("wmw", "old", key.namespace)
        held.put(key, obj)

        found = await world.observer.observe(key)

        assert found is not None
        assert (found.existing, found.desired) == (obj, None)


async def test_a_summary_waits_until_its_kind_was_read() -> None:
    world = World(read=False)

    found = await world.observer.observe(WEB)

    assert found is not None
    assert found.missing == Scope("wmw", DEPLOYMENTS.group_resource)
    world.watches._complete(found.missing)
    assert world.enqueued == [Parked("summaries", WEB)]


async def test_a_summary_without_cause_waits_until_everything_was_read() -> None:
    world = World(read=False)

    found = await world.observer.observe(Key("wmw", "shop", "old"))

    assert found is not None
    assert found.missing == Scope("wmw", EVERY_KIND)


async def test_the_status_of_the_only_destination_is_returned_when_asked_for() -> None:
    world = World(singleton=True)
    world.report({"replicas": 2})
    live = world.source({})

    found = await world.observer.observe(WEB)

    assert found is not None
    assert found.returned is not None
    assert (found.returned.source, found.returned.status) == (live, {"replicas": 2})


async def test_no_status_is_returned_that_nobody_asked_for() -> None:
    world = World(singleton=False)
    world.report({"replicas": 2})
    world.source({})

    found = await world.observer.observe(WEB)

    assert found is not None
    assert found.returned is None


async def test_no_status_is_returned_before_one_was_reported() -> None:
    world = World(singleton=True)
    world.source({})

    found = await world.observer.observe(WEB)

    assert found is not None
    assert found.returned is None


async def test_no_status_is_returned_that_is_there_already() -> None:
    world = World(singleton=True)
    world.report({"replicas": 2})
    world.source({"replicas": 2})

    found = await world.observer.observe(WEB)

    assert found is not None
    assert found.returned is None


async def test_no_status_is_returned_to_a_source_that_has_gone() -> None:
    world = World(singleton=True)
    world.report({"replicas": 2})

    found = await world.observer.observe(WEB)

    assert found is not None
    assert found.returned is None


async def test_a_placement_is_observed_with_its_standing() -> None:
    standing = Standing(destinations=1, objects=2, undelivered=("l",))

    found = await World().standings.observe(P)

    assert found == ObservedPlacement(P, found.placement if found else {}, standing)


async def test_the_standing_of_a_placement_waits_until_everything_was_read() -> None:
    world = World(read=False)

    found = await world.standings.observe(P)

    assert found is not None
    assert found.missing == Scope("wmw", EVERY_KIND)
    world.watches._complete_everything("wmw")
    assert world.enqueued == [Parked("placements", P)]


async def test_a_placement_that_has_gone_has_no_standing() -> None:
    assert await World().standings.observe(edge_placement_ref("wmw", "gone")) is None
