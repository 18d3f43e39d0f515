"""Reports of inventory workspaces: a second plan is empty, and only the id shown releases."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from pyroaring import BitMap

from skerry.api.edge import (
    CONFIRM,
    LOCATION_CONSENTS,
    LOCATION_GRANTS,
    ROLLOUT_FINALIZER,
    STAGED_REMOVAL,
    edge_placement_ref,
    is_staged,
)
from skerry.api.errors import AlreadyExists
from skerry.api.kcp.resources import workspace_ref
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.controllers.edge_scheduler.consent import (
    ConsentExecutor,
    ConsentObserver,
    ConsentPlan,
    ConsentState,
    HeldEntry,
    InventoryKey,
    ObservedConsent,
    decide_consent,
    opening_id,
)
from skerry.controllers.edge_scheduler.grant_status import SeenGrant
from skerry.logic.fleet.placement.destination import Chosen, DestinationTable
from skerry.logic.fleet.placement.grants import grant_of
from skerry.logic.fleet.placement.records import Destination, location_of, placement_of
from skerry.logic.machinery.plan import Announcement, Create, Delete, Plan, Target, Update
from skerry.runtime.client import Client
from skerry.runtime.metrics import RuntimeMetrics
from tests.kit.caches import cache
from tests.kit.chain import building
from tests.kit.sim.twin import Place, Twin, served

NOW = datetime(2030, 1, 1, tzinfo=UTC)
PLACEMENT = edge_placement_ref("bank", "p")
ELEMENT = ("bank", "p", "imw", "l0")
HELD = HeldEntry("d-1", "root:bank", frozenset({ELEMENT}))


def seen(name: str = "g", mode: str = "Enforce", **status: Any) -> SeenGrant:
    obj = building.grant(name, mode=mode, paths=["root:shop"], selector={})
    return SeenGrant(grant_of(obj), {**obj, "status": status}, 3, 1)


def observed(record: Object | None, *held: HeldEntry, **more: Any) -> ObservedConsent:
    found: dict[str, Any] = {"mode": "Enforce", "grants": (seen(),), **more}
    return ObservedConsent("imw", found["mode"], found["grants"], record, held)


def stored(plan: Plan) -> Object:
    """Return the LocationConsent as the server has it after *plan*."""
    [made] = [a for a in plan if isinstance(a, Create | Update) and not _is_status(a)]
    metadata = {"uid": "uid-1", "resourceVersion": "7", **made.object["metadata"]}
    return {**made.object, "metadata": metadata}


def _is_status(action: Create | Update) -> bool:
    return isinstance(action, Update) and action.subresource == "status"


def confirmed(record: Object, ids: str) -> Object:
    metadata = record["metadata"]
    annotations = {**metadata["annotations"], CONFIRM: ids}
    return {**record, "metadata": {**metadata, "annotations": annotations}}


def writes(plan: Plan) -> list[Any]:
    return [a for a in plan if not (isinstance(a, Update) and a.subresource == "status")]


def test_the_first_grant_brings_a_record_and_a_second_look_writes_nothing() -> None:
    record = stored(decide_consent(observed(None, HELD), NOW))
    assert (record["mode"], record["grants"], record["enforcingGrants"]) == ("Enforce", 1, 1)
    assert record["held"] == 1
    assert record["destinations"]["held"] == [
        {
            "id": "d-1",
            "workspace": "root:bank",
            "placements": 1,
            "locations": 1,
            "locationNames": ["l0"],
        }
    ]
    assert writes(decide_consent(observed(record, HELD), NOW)) == []


def test_only_the_id_that_is_shown_lets_anything_go() -> None:
    record = stored(decide_consent(observed(None, HELD), NOW))
    for ids in ("d-2", "o-1", "open-1", "D-1", "d-1x"):
        plan = decide_consent(observed(confirmed(record, ids), HELD), NOW)
        assert not isinstance(plan, ConsentPlan) or plan.releases == frozenset()
    plan = decide_consent(observed(confirmed(record, "x, d-1"), HELD), NOW)
    assert isinstance(plan, ConsentPlan)
    assert plan.releases == {ELEMENT}
    first = plan.actions[0]
    assert isinstance(first, Update)
    assert CONFIRM not in first.object["metadata"]["annotations"]
    assert first.object["confirmations"][0]["id"] == "d-1"
    reasons = [each.reason for each in plan.announcements]
    assert reasons == ["RemovalConfirmed", "ConfirmationIgnored"]


def test_ids_of_objects_are_left_to_whom_they_belong() -> None:
    record = stored(decide_consent(observed(None), NOW))
    assert writes(decide_consent(observed(confirmed(record, "o-1")), NOW)) == []


def test_without_grants_the_record_stays_while_it_remembers() -> None:
    record = stored(decide_consent(observed(None), NOW))
    record = stored(decide_consent(observed(record, grants=()), NOW))
    assert record["opening"] == {"id": opening_id(record)}
    assert record["held"] == 1
    plan = decide_consent(observed(confirmed(record, opening_id(record)), grants=()), NOW)
    [gone] = plan
    assert isinstance(gone, Delete)
    assert (gone.uid, gone.resource_version) == ("uid-1", "7")


@pytest.mark.parametrize("grants", [(), (seen(mode="Observe"),)])
def test_opening_is_not_offered_while_a_grant_enforces(grants: Any) -> None:
    record = stored(decide_consent(observed(None), NOW))
    offered = stored(decide_consent(observed(record, grants=grants), NOW))
    again = decide_consent(observed(confirmed(offered, opening_id(offered))), NOW)
    [update] = writes(again)
    assert (update.object["mode"], "opening" in update.object) == ("Enforce", False)
    assert not any(isinstance(action, Delete) for action in again)


@pytest.mark.parametrize("grants", [(), (seen(mode="Observe"),)], ids=["none", "observing"])
def test_with_the_opening_no_removal_is_taken_and_that_is_said(grants: Any) -> None:
    offered = stored(decide_consent(observed(None, HELD, grants=grants), NOW))
    offered = stored(decide_consent(observed(offered, HELD, grants=grants), NOW))
    ids = f"d-1,{opening_id(offered)}"

    plan = decide_consent(observed(confirmed(offered, ids), HELD, grants=grants), NOW)

    assert not isinstance(plan, ConsentPlan) or plan.releases == frozenset()
    reasons = {each.reason: each.message for each in plan.announcements}
    assert reasons.keys() == {"OpeningConfirmed", "ConfirmationIgnored"}
    assert "stay" in reasons["ConfirmationIgnored"]
    for update in [each for each in writes(plan) if isinstance(each, Update)]:
        assert [each["action"] for each in update.object["confirmations"]] == ["Open"]
        assert (update.object["mode"], update.object["held"]) == ("Observe", 0)


def test_an_id_that_fits_nothing_is_answered_as_such_also_with_the_opening() -> None:
    grants = (seen(mode="Observe"),)
    offered = stored(decide_consent(observed(None, grants=grants), NOW))
    offered = stored(decide_consent(observed(offered, grants=grants), NOW))
    ids = f"d-9,{opening_id(offered)}"
    plan = decide_consent(observed(confirmed(offered, ids), HELD, grants=grants), NOW)
    [ignored] = [e for e in plan.announcements if e.reason == "ConfirmationIgnored"]
    assert "not the id of anything" in ignored.message
    assert "RemovalHeld" not in {each.reason for each in plan.announcements}


def test_a_record_that_nobody_needs_goes() -> None:
    record = stored(decide_consent(observed(None, mode="Observe"), NOW))
    [gone] = decide_consent(observed(record, mode=None, grants=()), NOW)
    assert isinstance(gone, Delete)
    assert list(decide_consent(observed(None, mode=None, grants=()), NOW)) == []


def inventory(mode: str = "Enforce") -> DestinationTable:
    """Return three Locations of one workspace that lets root:shop place, and nobody else."""
    index = DestinationTable()
    for number in range(3):
        raw = {"name": f"l{number}", "annotations": {"kcp.io/cluster": "imw"}}
        index.put_location(location_of({"metadata": raw, "spec": {"instanceSelector": {}}}))
    for name in ("imw", "bank", "shop"):
        index.put_workspace(name, {}, workspace_ref("root", name))
    index.put_grant(grant_of(building.grant("g", mode=mode, paths=["root:shop"], selector={})))
    return index


P = edge_placement_ref("bank", "p")


def found(refused: list[int], held: list[int]) -> Chosen:
    return Chosen(BitMap(), [], refused=BitMap(refused), held=BitMap(held))


def test_what_a_placement_is_refused_and_holds_enqueues_its_inventory() -> None:
    enqueued: list[str] = []
    state = ConsentState(inventory(), lambda key: enqueued.append(str(key)))
    state.note(P, found(refused=[0, 1], held=[0]))
    assert enqueued == ["imw"]
    [group] = state.holds.groups("imw")
    assert state.holds.elements(group) == {("bank", "p", "imw", "l0")}
    assert state.refusals.count(group) == 1
    state.note(P, found(refused=[0, 1], held=[0]))
    assert enqueued == ["imw"], "nothing is new"
    state.note(P, found(refused=[0, 1], held=[1]))
    assert state.holds.elements(group) == {("bank", "p", "imw", "l1")}
    state.forget(P)
    assert list(state.holds.groups("imw")) == []
    assert list(state.refusals.groups("imw")) == []
    assert len(enqueued) == 3


async def test_in_a_workspace_that_is_open_nothing_is_seen_as_held() -> None:
    """Placements that have not been reconciled since it was opened are in memory as before."""
    index = inventory(mode="Observe")
    state = ConsentState(index, lambda _: None)
    state.note(P, found(refused=[0, 1], held=[0]))
    observer = ConsentObserver(
        state, cache(LOCATION_GRANTS), cache(LOCATION_CONSENTS), lambda: True, lambda _: None
    )
    seen_now = await observer.observe(InventoryKey("imw"))
    assert seen_now is not None
    assert (seen_now.mode, seen_now.held) == ("Observe", ())


async def test_an_inventory_is_seen_with_its_grants_its_holds_and_refusals() -> None:
    index = inventory()
    state = ConsentState(index, lambda _: None)
    state.note(P, found(refused=[0, 1, 2], held=[0]))
    grant = building.grant("g", mode="Enforce", paths=["root:shop"], selector={})
    grants, records = cache(LOCATION_GRANTS), cache(LOCATION_CONSENTS)
    ready = [False]
    observer = ConsentObserver(state, grants, records, lambda: ready[0], lambda _: None)
    assert await observer.observe(InventoryKey("imw")) is None, "paths are not known yet"
    ready[0] = True
    before = await observer.observe(InventoryKey("imw"))
    assert before is not None
    assert (before.grants, before.record) == ((), None), "the grant's object is not read yet"
    grant["metadata"].setdefault("annotations", {})["kcp.io/cluster"] = "imw"
    grants.apply("ADDED", grant)
    seen_now = await observer.observe(InventoryKey("imw"))
    assert seen_now is not None
    assert seen_now.mode == "Enforce"
    [one] = seen_now.grants
    assert one.locations == 3
    [held] = seen_now.held
    assert held.workspace == "root:bank"
    assert held.elements == {("bank", "p", "imw", "l0")}
    [refused] = seen_now.refused
    assert refused == {
        "workspace": "root:bank",
        "placements": 1,
        "locations": 2,
        "locationNames": ["l1", "l2"],
    }


def placed(index: DestinationTable, ref: ObjectRef) -> Object:
    """Place a workspace's everything; returns the EdgePlacement."""
    metadata = {"name": ref.name, "annotations": {"kcp.io/cluster": ref.cluster}}
    obj: Object = {"metadata": metadata, "spec": {"locationSelectors": [{}]}}
    index.put_placement(placement_of(obj))
    return obj


class Restarted:
    """A process that leads since a moment ago, and has reconciled nobody."""

    def __init__(self, *refs: ObjectRef) -> None:
        self.enqueued: list[str] = []
        index = inventory()
        self.objects = {ref: placed(index, ref) for ref in refs}
        self.state = ConsentState(index, lambda key: self.enqueued.append(str(key)))
        self.state.begin()
        self.observer = ConsentObserver(
            self.state,
            cache(LOCATION_GRANTS),
            cache(LOCATION_CONSENTS),
            lambda: True,
            self.objects.get,
        )

    async def observe(self) -> ObservedConsent:
        found = await self.observer.observe(InventoryKey("imw"))
        assert found is not None
        return found


async def test_nothing_is_seen_before_everybody_who_may_hold_something_was_reconciled() -> None:
    other = edge_placement_ref("bank", "q")
    restarted = Restarted(P, other)
    restarted.state.note(P, found(refused=[0, 1, 2], held=[0]))
    early = await restarted.observe()
    assert (early.settled, early.held, early.refused) == (False, (), ())
    restarted.enqueued.clear()
    restarted.state.note(other, found(refused=[], held=[]))
    assert restarted.enqueued == ["imw"], "that was what the report waited for"
    late = await restarted.observe()
    assert late.settled
    assert len(late.held) == len(late.refused) == 1


async def test_whoever_leads_again_reconciles_everybody_again_before_a_report() -> None:
    restarted = Restarted(P)
    restarted.state.note(P, found(refused=[0, 1, 2], held=[0]))
    assert (await restarted.observe()).settled
    restarted.state.begin()
    assert not (await restarted.observe()).settled


async def test_a_placement_that_is_kept_by_a_finalizer_of_somebody_else_is_not_waited_for() -> None:
    restarted = Restarted(P)
    assert not (await restarted.observe()).settled
    restarted.objects[P]["metadata"]["deletionTimestamp"] = "now"
    assert (await restarted.observe()).settled
    # One that is taken away wave by wave is reconciled all the same.
    restarted.objects[P]["metadata"] |= {
        "finalizers": [ROLLOUT_FINALIZER],
        "annotations": {STAGED_REMOVAL: "true"},
    }
    assert is_staged(restarted.objects[P])
    assert not (await restarted.observe()).settled


@pytest.mark.parametrize("ids", ["d-1", "d-2", "open"])
def test_before_that_no_id_is_answered_and_the_list_stays_as_it_is(ids: str) -> None:
    record = stored(decide_consent(observed(None, HELD, grants=(seen(mode="Observe"),)), NOW))
    record = stored(decide_consent(observed(record, HELD, grants=(seen(mode="Observe"),)), NOW))
    given = confirmed(record, opening_id(record) if ids == "open" else ids)
    early = replace(observed(given, grants=(seen(mode="Observe"),)), settled=False)

    plan = decide_consent(early, NOW)

    assert writes(plan) == []
    assert list(plan.announcements) == []
    assert not isinstance(plan, ConsentPlan) or plan.releases == frozenset()


def test_before_that_the_mode_and_the_status_of_grants_are_written_all_the_same() -> None:
    early = replace(observed(None), settled=False)
    plan = decide_consent(early, NOW)
    record = stored(plan)
    assert (record["mode"], "destinations" in record) == ("Enforce", False)
    assert any(_is_status(each) for each in plan if isinstance(each, Update))
    listed = stored(decide_consent(observed(record, HELD, mode="Observe"), NOW))
    [update] = writes(decide_consent(replace(observed(listed), settled=False), NOW))
    assert update.object["mode"] == "Enforce"
    assert update.object["destinations"] == listed["destinations"]


# -- acting ----------------------------------------------------------------------------------


class Acting:
    """An executor over a server, and what it let go."""

    def __init__(self, *, dry_run: bool = False) -> None:
        self.server = Twin()
        group, version, resource = LOCATION_CONSENTS
        self.server.types.append(
            served(group, version, resource, "LocationConsent", namespaced=False)
        )
        self.state = ConsentState(DestinationTable(), lambda key: None)
        self.released: list[ObjectRef] = []
        self.announced: list[str] = []
        self.executor = ConsentExecutor(
            Client(self.server),
            self.state,
            self.released.append,
            "edge-scheduler",
            metrics=RuntimeMetrics(),
            announce=lambda each: self.announced.append(each.reason),
            dry_run=dry_run,
        )
        here = [Destination("imw", name, f"st-{name}", f"uid-{name}") for name in ("l0", "l1")]
        self.state.running.note(PLACEMENT, here)

    async def delete(self, version: str) -> None:
        """Open the workspace, with the record as of *version*."""
        target = Target(LOCATION_CONSENTS, "consent", cluster="imw")
        news = [Announcement({}, "Normal", "OpeningConfirmed", "the workspace is open")]
        gone = Delete(target, "OpeningConfirmed", resource_version=version)
        await self.executor.execute(Plan([gone], news))

    async def execute(self) -> None:
        """Take a confirmation, of which the write of the record is the first action."""
        target = Target(LOCATION_CONSENTS, "consent", cluster="imw")
        content = {"metadata": {"name": "consent"}}
        take = Create(target, content, "ConsentChanged", exclusive=True)
        await self.executor.execute(ConsentPlan([take], releases=frozenset({ELEMENT})))

    def kept(self) -> set[str]:
        return {each.location for each in self.state.running.destinations(PLACEMENT)}


async def test_a_confirmation_that_was_taken_lets_exactly_its_destinations_go() -> None:
    acting = Acting()
    await acting.execute()
    assert acting.kept() == {"l1"}
    assert acting.released == [PLACEMENT]


async def test_a_confirmation_whose_write_is_refused_lets_nothing_go() -> None:
    acting = Acting()
    place = Place("edge.kcp.io", "locationconsents", "imw", "", "consent")
    acting.server.objects[place] = {"metadata": {"name": "consent", "resourceVersion": "1"}}
    with pytest.raises(AlreadyExists):
        await acting.execute()
    assert acting.kept() == {"l0", "l1"}
    assert acting.released == []


async def test_a_dry_run_lets_nothing_go() -> None:
    acting = Acting(dry_run=True)
    await acting.execute()
    assert acting.kept() == {"l0", "l1"}


async def test_an_opening_is_announced_when_the_record_has_gone_and_not_when_it_was_kept() -> None:
    acting = Acting()
    place = Place("edge.kcp.io", "locationconsents", "imw", "", "consent")
    metadata = {"name": "consent", "resourceVersion": "2"}
    acting.server.objects[place] = {"kind": "LocationConsent", "metadata": metadata}
    await acting.delete("1")
    assert acting.announced == [], "somebody changed it meanwhile, and may have confirmed no more"
    await acting.delete("2")
    assert acting.announced == ["OpeningConfirmed"]
    assert place not in acting.server.objects
