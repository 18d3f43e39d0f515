"""What is watched for whom, and who waits until it was read."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from skerry.api.edge import Mailbox
from skerry.api.errors import ServiceUnavailable
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.api.refs import CLUSTER_ANNOTATION
from skerry.controllers.summarizer.events import SummaryInputs
from skerry.controllers.summarizer.projections import (
    BY_PLACEMENT,
    by_placement,
    lean_definition,
)
from skerry.controllers.summarizer.watches import (
    EVERY_KIND,
    Cluster,
    KindWatches,
    Parked,
    defined_kind,
)
from skerry.logic.fleet.tables.completeness import Scope
from skerry.runtime.client import Selection
from skerry.runtime.index import Index, key_of
from tests.kit.chain.summarizer_inputs import Hub

DEPLOYMENTS = GroupResource("apps", "deployments")
CONFIG_MAPS = GroupResource("", "configmaps")
WIDGETS = GroupResource("example.org", "widgets")
WMW = Cluster("wmw")
WEB = Parked("summaries", ("wmw", "shop", "p-deployments-web"))
PAGE = Parked("summaries", ("wmw", "shop", "p-configmaps-page"))


def thing(cluster: str, name: str, **more: object) -> Object:
    return {"metadata": {"name": name, "annotations": {CLUSTER_ANNOTATION: cluster}}, **more}


def definition(cluster: str) -> Object:
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
    spec = {
        "group": "example.org",
        "names": {"plural": "widgets", "kind": "Widget"},
        "scope": "Namespaced",
        "versions": [version],
    }
    established = {"conditions": [{"type": "Established", "status": "True"}]}
    return lean_definition(thing(cluster, "widgets.example.org", spec=spec, status=established))


class Watched:
    """The watches of a workspace with a placement, and what they enqueue."""

    def __init__(self) -> None:
        self.hub = Hub()
        slices = Index()
        slices.add_index(BY_PLACEMENT, by_placement)
        self.enqueued: list[Parked] = []
        self.inputs = SummaryInputs(slices, *[lambda _: None] * 4)
        self.watches = KindWatches(self.hub.context, self.inputs, self.enqueued.append)
        self.inputs.placement_changed(None, thing("wmw", "p", spec={"namespaceSelector": {}}))

    def define(self, cluster: str) -> None:
        obj = definition(cluster)
        self.watches.definitions.index.put(key_of(obj), obj)

    def sync(self, *kinds: GroupResource) -> None:
        for (kind, _), informer in self.watches._informers.items():
            if not kinds or kind.group_resource in kinds:
                informer.synced.set()

    async def read(self, *synced: GroupResource) -> asyncio.Task[None]:
        """Begin to read the workspace; returns once it waits for more than *synced*."""
        reading = asyncio.get_running_loop().create_task(self.watches.read(WMW))
        for _ in range(50):
            await asyncio.sleep(0)
            self.sync(*synced) if synced else None
        return reading


async def stop(reading: asyncio.Task[None]) -> None:
    reading.cancel()
    with suppress(asyncio.CancelledError):
        await reading


async def test_before_anything_was_read_everything_is_missing() -> None:
    watched = Watched()

    assert watched.watches.missing("wmw") == Scope("wmw", EVERY_KIND)
    assert watched.watches.missing("wmw", DEPLOYMENTS) == Scope("wmw", DEPLOYMENTS)


async def test_nothing_is_missing_of_a_cluster_without_a_role() -> None:
    assert Watched().watches.missing("elsewhere") is None


async def test_every_kind_that_travels_is_watched_everywhere_at_once() -> None:
    watched = Watched()

    await stop(await watched.read())

    kinds = {kind.group_resource: kind for kind, _ in watched.watches._informers}
    assert set(kinds) == {DEPLOYMENTS, CONFIG_MAPS, GroupResource("", "namespaces")}
    assert kinds[DEPLOYMENTS].has_status
    assert not kinds[CONFIG_MAPS].has_status


async def test_one_kind_that_cannot_be_read_holds_up_no_other() -> None:
    watched = Watched()
    watched.watches.park(WEB, Scope("wmw", DEPLOYMENTS))
    watched.watches.park(PAGE, Scope("wmw", CONFIG_MAPS))

    reading = await watched.read(CONFIG_MAPS, GroupResource("", "namespaces"))

    assert watched.enqueued == [PAGE]
    assert watched.watches.missing("wmw", CONFIG_MAPS) is None
    assert watched.watches.missing("wmw", DEPLOYMENTS) == Scope("wmw", DEPLOYMENTS)
    assert watched.watches.missing("wmw") == Scope("wmw", EVERY_KIND)
    await stop(reading)


async def test_with_everything_read_nothing_is_missing_and_nobody_waits() -> None:
    watched = Watched()
    watched.watches.park(WEB, Scope("wmw", EVERY_KIND))

    reading = await watched.read()
    watched.sync()
    await reading

    assert watched.enqueued == [WEB]
    assert watched.watches.missing("wmw") is None
    # A kind that the workspace does not even serve is known not to be there.
    assert watched.watches.missing("wmw", WIDGETS) is None


async def test_a_kind_with_a_new_watch_is_unread_again_until_all_was_read() -> None:
    watched = Watched()
    watched.hub.resources["/apis/example.org/v1"] = [
        {"name": "widgets", "kind": "Widget", "namespaced": True, "verbs": ["list", "watch"]}
    ]
    watched.define("wmw")
    reading = await watched.read(WIDGETS, CONFIG_MAPS, GroupResource("", "namespaces"))
    watched.sync(DEPLOYMENTS)
    await reading

    # A settled workspace is not unsettled by a mailbox that begins to define the kind.
    mailbox = Mailbox("imw", "00000000-0000-4000-8000-000000000000").workspace
    watched.inputs.mailbox_changed(None, thing("espw", mailbox, spec={"cluster": "mb"}))
    watched.define("mb")
    await watched.watches.read(Cluster("mb"))

    where = {extent.cluster for kind, extent in watched.watches._informers if kind.group}
    assert where == {"", "wmw", "mb"}
    assert watched.watches.missing("wmw", WIDGETS) is None


async def test_a_cluster_that_lost_its_role_holds_nobody_up_and_is_read_anew() -> None:
    watched = Watched()
    watched.watches.park(WEB, Scope("wmw", DEPLOYMENTS))
    obj = thing("wmw", "p", spec={"namespaceSelector": {}})
    watched.inputs.placement_changed(obj, None)

    await watched.watches.read(WMW)

    assert watched.enqueued == [WEB]
    watched.inputs.placement_changed(None, obj)
    assert watched.watches.missing("wmw") == Scope("wmw", EVERY_KIND)


async def test_a_definition_that_went_takes_its_watch_along() -> None:
    watched = Watched()
    mailbox = Mailbox("imw", "00000000-0000-4000-8000-000000000000").workspace
    watched.inputs.mailbox_changed(None, thing("espw", mailbox, spec={"cluster": "mb"}))
    watched.define("mb")
    await watched.watches.read(Cluster("mb"))
    assert len(watched.watches._informers) == 1

    watched.watches.definitions.index.remove(key_of(definition("mb")))
    await watched.watches.read(Cluster("mb"))

    assert watched.watches._informers == {}


async def test_a_workspace_whose_discovery_fails_is_tried_again() -> None:
    watched = Watched()
    watched.hub.stale = True

    with pytest.raises(ServiceUnavailable, match="discovery of v1 failed in wmw"):
        await watched.watches.read(WMW)


def test_a_definition_that_serves_no_version_makes_no_kind() -> None:
    obj = definition("wmw")
    obj["spec"]["versions"][0]["served"] = False

    assert defined_kind(obj) is None


def test_a_definition_makes_a_kind_with_the_status_it_declares() -> None:
    kind = defined_kind(definition("wmw"))

    assert kind is not None
    assert (kind.group_resource, kind.version, kind.has_status) == (WIDGETS, "v1", True)


async def test_what_somebody_keeps_of_a_kind_is_kept_of_what_is_seen_from_then_on() -> None:
    watched = Watched()
    await stop(await watched.read())
    [informer] = [
        informer
        for (kind, _), informer in watched.watches._informers.items()
        if kind.group_resource == DEPLOYMENTS
    ]
    project = informer._reflector._transform
    obj = thing("wmw", "web", spec={"replicas": 3}, status={"replicas": 2})
    assert "extract" not in project(obj)
    watched.watches.extract(DEPLOYMENTS, lambda kind, whole, kept: whole["spec"]["replicas"])
    assert project(obj)["extract"] == 3
    watched.watches.extract(DEPLOYMENTS, lambda kind, whole, kept: None)
    assert "extract" not in project(obj), "who keeps nothing takes no room"
    watched.watches.extract(DEPLOYMENTS, None)
    watched.watches.extract(DEPLOYMENTS, None)
    assert "extract" not in project(obj)


async def test_a_kind_is_served_once_a_workspace_was_read_and_no_longer_than_that() -> None:
    watched = Watched()
    assert not watched.watches.is_served("wmw", DEPLOYMENTS)
    reading = await watched.read()
    watched.sync()
    await reading
    assert watched.watches.is_served("wmw", DEPLOYMENTS)
    assert not watched.watches.is_served("wmw", WIDGETS)
    assert not watched.watches.is_served("elsewhere", DEPLOYMENTS)
    obj = thing("wmw", "p", spec={"namespaceSelector": {}})
    watched.inputs.placement_changed(obj, None)
    await watched.watches.read(WMW)
    assert not watched.watches.is_served("wmw", DEPLOYMENTS)


async def test_a_kind_is_watched_once_all_its_watches_were_read() -> None:
    watched = Watched()
    assert not watched.watches.is_watched(DEPLOYMENTS)
    reading = await watched.read(CONFIG_MAPS)
    assert watched.watches.is_watched(CONFIG_MAPS)
    assert not watched.watches.is_watched(DEPLOYMENTS)
    watched.sync(DEPLOYMENTS)
    assert watched.watches.is_watched(DEPLOYMENTS)
    await watched.watches.wait_read(DEPLOYMENTS)
    await watched.watches.wait_read(WIDGETS)
    await stop(reading)


async def test_a_kind_is_as_far_as_the_one_of_its_watches_that_lags_behind() -> None:
    watched = Watched()
    assert watched.watches.revision(DEPLOYMENTS) == 0
    await stop(await watched.read())
    [informer] = watched.watches._by_type[DEPLOYMENTS]
    assert watched.watches.revision(DEPLOYMENTS) == 0
    assert not watched.watches.is_followed(DEPLOYMENTS), "its watch has not begun"
    assert watched.watches.is_followed(WIDGETS), "what nobody watches is not interrupted"
    informer.synced.set()


def test_a_definition_of_a_kind_that_stays_makes_none() -> None:
    obj = definition("wmw")
    obj["spec"]["group"] = "edge.kcp.io"
    assert defined_kind(obj) is None


def test_the_first_version_that_is_served_is_the_one_that_is_watched() -> None:
    obj = definition("wmw")
    old = {"name": "v1alpha1", "served": False, "storage": False}
    obj["spec"]["versions"].insert(0, old)
    kind = defined_kind(obj)
    assert kind is not None
    assert (kind.version, kind.has_status) == ("v1", True)
    del obj["spec"]["versions"][1]["subresources"]
    bare = defined_kind(obj)
    assert bare is not None
    assert not bare.has_status


def test_a_cluster_in_a_queue_is_shown_by_its_name() -> None:
    assert str(WMW) == "wmw"


async def test_objects_seen_before_are_listed_once_more_page_by_page() -> None:
    watched = Watched()
    await stop(await watched.read())
    pages = [[thing("wmw", "a"), thing("wmw", "b")], [thing("other", "c")]]

    def serve(number: int) -> None:
        more = {"continue": "next"} if number + 1 < len(pages) else {}
        listed = {"kind": "DeploymentList", "metadata": more, "items": pages[number]}
        watched.hub.objects["/clusters/*/apis/apps/v1/deployments"] = listed

    serve(0)
    found: list[list[str]] = []
    async for kind, items in watched.watches.reread(DEPLOYMENTS, Selection()):
        assert kind.group_resource == DEPLOYMENTS
        found.append([each["metadata"]["name"] for each in items])
        serve(min(len(found), 1))
    assert found == [["a", "b"], ["c"]]


async def test_nothing_is_listed_of_a_kind_that_nobody_watches() -> None:
    watched = Watched()
    await stop(await watched.read())
    assert [each async for each in watched.watches.reread(WIDGETS, Selection())] == []
