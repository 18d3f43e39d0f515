"""Contents are written before the manifest that names them, and only what is new."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import orjson
import pytest

from skerry.api.edge import CUT, CUT_SEQUENCE, SliceOwner, edge_placement_ref
from skerry.api.errors import ApiError
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.controllers.placement_translator.cutting import (
    CutExecutor,
    CutObserver,
    ObservedCut,
    decide_cut,
)
from skerry.logic.fleet.revision.causes import Cause
from skerry.logic.fleet.revision.cut import Numbered, Settle
from skerry.logic.fleet.translation.manifest import live_state
from skerry.logic.machinery.plan import Create, Patch, Plan
from skerry.runtime.client import Client
from skerry.runtime.metrics import RuntimeMetrics
from skerry.runtime.transport import NO_HEADERS, Answer, TransportError
from tests.kit.answering import AnsweringTransport
from tests.kit.chain.revisions import manifest, pages, ref
from tests.kit.chain.translator_world import CONFIG_MAPS, NAMESPACES, A, World, cluster_object

WEB = edge_placement_ref("one", "web")


def observed(**more: Any) -> ObservedCut:
    world = World()
    world.put(NAMESPACES, cluster_object("one", "n", labels={"go": "yes"}))
    for name in "ab":
        world.put(CONFIG_MAPS, cluster_object("one", name, "n", data={"k": name}))
    world.place("one", "web", namespaceSelector={})
    tables = world.tables
    state = live_state(WEB, "77", tables.route, tables.workspaces, lambda *_: None)
    fields = {"settle": Settle(), "numbered": Numbered(3, 5, None, True), **more}
    return ObservedCut(WEB, SliceOwner("web", "u"), state=state, **fields)


def test_contents_come_first_and_the_manifest_last() -> None:
    plan = decide_cut(observed(causes=(Cause(ref("a"), "9", "kubectl"),)))
    *contents, page = plan
    assert (plan.contents, len(contents), plan.placement) == (3, 3, WEB)
    assert isinstance(page, Create)
    assert page.exclusive
    assert page.target.name == "web-3"
    names = {each.target.name for each in contents if isinstance(each, Create)}
    assert names == {each["digest"] for each in page.object["spec"]["items"]}
    assert page.object["metadata"]["annotations"] == {CUT_SEQUENCE: "5"}
    assert page.object["spec"]["causes"][0]["manager"] == "kubectl"


def test_what_a_revision_names_already_is_not_written_again() -> None:
    known = frozenset(observed().state.contents)
    plan = decide_cut(observed(known=known))
    assert (plan.contents, len(plan)) == (0, 1)


def test_an_earlier_revision_is_marked_as_cut_again() -> None:
    [page] = pages(manifest({"a": b"1"}), 1)
    manual = Settle(manual=True, asked="friday")
    (action,) = decide_cut(observed(numbered=Numbered(1, 5, page, True), settle=manual))
    assert isinstance(action, Patch)
    assert action.target.name == "web-1"
    notes = action.patch["metadata"]["annotations"]
    assert notes == {CUT_SEQUENCE: "5", CUT: "friday"}


# -- observing -------------------------------------------------------------------------------------


class Hub(AnsweringTransport):
    """Takes every write, and says who changed an object last; fails where a test says so."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str]] = []
        self.failing = ""
        self.refused = ""

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        name = (
            orjson.loads(body)["metadata"]["name"]
            if method == "POST"
            else path.rsplit("/", maxsplit=1)[-1]
        )
        self.requests.append((method, name))
        if self.failing and self.failing in (name, path):
            raise TransportError("no answer")
        if self.refused and self.refused in (name, path):
            text = b'{"kind":"Status","code":403,"reason":"Forbidden","message":"no"}'
            return Answer(403, {}, text)
        if method == "GET":
            fields = [{"manager": "kubectl", "operation": "Update", "time": "2026-01-01T00:00:00Z"}]
            return Answer(200, {}, orjson.dumps({"metadata": {"managedFields": fields}}))
        return Answer(201, {}, body)


class Desk:
    """A placement with a Rollout that sends two ConfigMaps, and whoever cuts its revisions."""

    def __init__(self) -> None:
        self.world = World()
        self.world.put(NAMESPACES, cluster_object("one", "n", labels={"go": "yes"}))
        for name in "ab":
            self.world.put(CONFIG_MAPS, cluster_object("one", name, "n", data={"k": name}))
        self.world.place("one", "web", namespaceSelector={"matchLabels": {"go": "yes"}})
        self.hub = Hub()
        self.later: list[tuple[ObjectRef, float]] = []
        self.object: Object | None = {"metadata": {"name": "web", "uid": "u"}, "spec": {}}
        self.roll_out()
        self.observer = CutObserver(
            Client(self.hub),
            self.world.tables,
            self.world.activities,
            lambda _: self.object,
            lambda *_: None,
            lambda placement, seconds: self.later.append((placement, seconds)),
        )
        self.executor = CutExecutor(
            Client(self.hub),
            self.world.tables,
            "translator",
            asyncio.Lock(),
            metrics=RuntimeMetrics(),
        )

    def roll_out(self, asked: str = "", **settle: Any) -> None:
        notes = {CUT: asked} if asked else {}
        obj = cluster_object("one", "web", spec={"settle": settle}, notes=notes)
        self.world.handlers.rollout_changed(None, obj)

    def edit(self, name: str, data: str) -> None:
        self.world.put(CONFIG_MAPS, cluster_object("one", name, "n", data={"k": data}))

    async def observed(self) -> ObservedCut | None:
        self.world.now += 1000
        return await self.observer.observe(WEB)

    async def cut(self) -> int:
        found = await self.observed()
        assert found is not None
        await self.executor.execute(decide_cut(found))
        return found.numbered.number


async def test_without_rollout_placement_or_need_nothing_is_cut() -> None:
    desk = Desk()
    desk.object = None
    assert await desk.observed() is None
    desk.object = {"metadata": {"name": "web", "uid": "u", "deletionTimestamp": "now"}}
    assert await desk.observed() is None
    desk.world.handlers.rollout_changed(cluster_object("one", "web", spec={}), None)
    desk.object = {"metadata": {"name": "web", "uid": "u"}}
    assert await desk.observed() is None
    assert desk.later == []


async def test_a_cut_waits_for_quiet_and_not_when_somebody_asks() -> None:
    desk = Desk()
    await desk.cut()
    desk.edit("a", "new")
    assert await desk.observer.observe(WEB) is None
    [(placement, seconds)] = desk.later
    assert placement == WEB
    assert 0 < seconds <= 10
    desk.roll_out(mode="Manual", asked="now")
    assert await desk.observer.observe(WEB) is not None


async def test_what_is_not_read_to_the_end_is_not_cut() -> None:
    desk = Desk()
    desk.world.restart(desk.world.key(CONFIG_MAPS))
    assert await desk.observed() is None
    assert desk.later == [(WEB, 1.0)]
    desk.world.sync()
    assert await desk.observed() is not None


async def test_the_first_cut_has_everything_and_the_next_only_what_changed() -> None:
    desk = Desk()
    assert await desk.cut() == 1
    assert await desk.observed() is None, "nothing changed"
    desk.edit("a", "other")
    found = await desk.observed()
    assert found is not None
    assert (found.numbered.number, len(found.known)) == (2, 2)
    assert [(each.item.name, each.manager) for each in found.causes] == [("a", "kubectl")]
    plan = decide_cut(found)
    assert (plan.contents, len(plan)) == (1, 2)


async def test_what_a_revision_named_and_is_known_to_be_gone_is_written_again() -> None:
    desk = Desk()
    await desk.cut()
    desk.edit("a", "other")
    found = await desk.observed()
    assert found is not None
    gone = min(found.known)
    desk.world.tables.revisions.contents.note_absent(("one", gone))
    desk.world.activities.touch([WEB])
    found = await desk.observed()
    assert found is not None
    assert gone not in found.known


async def test_what_there_was_before_is_that_revision_cut_again() -> None:
    desk = Desk()
    await desk.cut()
    desk.edit("a", "other")
    await desk.cut()
    desk.edit("a", "a")
    found = await desk.observed()
    assert found is not None
    assert found.numbered.existing is not None
    assert found.numbered.number == 1
    [patch] = decide_cut(found)
    assert isinstance(patch, Patch)


async def test_what_failed_is_left_to_its_retry_however_little_quiet_is_asked_for() -> None:
    desk = Desk()
    desk.roll_out(quiet="0s")
    found = await desk.observed()
    assert found is not None
    desk.hub.failing = "web-1"
    desk.later.clear()
    enqueued = list(desk.world.cuts)
    with pytest.raises(TransportError):
        await desk.executor.execute(decide_cut(found))
    assert (desk.later, desk.world.cuts) == ([], enqueued), "nobody enqueues it"
    again = await desk.observed()
    assert again is not None
    assert again.numbered.number == 1


@pytest.mark.parametrize("trouble", ["failing", "refused"])
async def test_a_cause_whose_author_cannot_be_read_is_named_without(trouble: str) -> None:
    desk = Desk()
    await desk.cut()
    desk.edit("b", "other")
    setattr(desk.hub, trouble, "b")
    found = await desk.observed()
    assert found is not None
    assert [(each.item.name, each.manager) for each in found.causes] == [("b", "")]


async def test_a_number_that_slices_name_is_not_given_to_something_else() -> None:
    desk = Desk()
    desk.world.slice(WEB, (A, "florin"), revisions={A: 7})
    assert await desk.cut() == 8


# -- writing ---------------------------------------------------------------------------------------


async def test_the_manifest_is_written_after_every_content_and_known_at_once() -> None:
    desk = Desk()
    await desk.cut()
    names = [name for method, name in desk.hub.requests if method == "POST"]
    assert len(names) == 4
    assert names[-1] == "web-1"
    assert [page.number for page in desk.world.tables.revisions.table.pages(WEB)] == [1]


async def test_a_content_that_cannot_be_written_leaves_no_manifest_and_is_tried_again() -> None:
    desk = Desk()
    found = await desk.observed()
    assert found is not None
    desk.hub.refused = min(found.state.contents)
    with pytest.raises(ApiError):
        await desk.executor.execute(decide_cut(found))
    assert "web-1" not in [name for _, name in desk.hub.requests]
    assert not desk.world.tables.revisions.table.pages(WEB)
    desk.hub.refused = ""
    assert await desk.cut() == 1, "whoever retries it finds it due"


async def test_a_dry_run_and_another_plan_take_nothing_for_written() -> None:
    desk = Desk()
    dry = CutExecutor(
        Client(desk.hub), desk.world.tables, "translator", asyncio.Lock(),
        metrics=RuntimeMetrics(), dry_run=True,
    )  # fmt: skip
    found = await desk.observed()
    assert found is not None
    await dry.execute(decide_cut(found))
    assert not desk.world.tables.revisions.table.pages(WEB)
    assert await desk.executor.execute(Plan()) == []
