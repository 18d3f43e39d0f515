"""Every change of a slice is recorded before it happens, and the records tell the same story."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from contextlib import suppress
from datetime import UTC, datetime

import orjson
import pytest

from skerry.api.edge import (
    CHANGED_BY,
    CONFIRM,
    DECISION_RECORDS,
    EDGE_PLACEMENTS,
    PLACEMENT_GUARDS,
    SINGLE_PLACEMENT_SLICES,
    edge_placement_ref,
    placement_of_slice,
)
from skerry.api.errors import ApiError, Invalid
from skerry.api.kcp.resources import LOCATIONS, SYNC_TARGETS, WORKSPACES
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.history.chain import verify
from skerry.logic.fleet.history.fold import folded, timeline
from skerry.logic.fleet.history.packing import Standing
from skerry.logic.fleet.history.record import (
    Decision,
    Maker,
    Reason,
    Subject,
    _content,
    in_order,
    records_of,
)
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.placement.slices import destinations_in
from tests.kit.chain.edge_scheduler_hub import SMALL_SLICES, Hub, People, equal
from tests.kit.chain.written import writes
from tests.kit.sim.faults import Rates
from tests.kit.sim.loop import virtual
from tests.kit.sim.world import seeds_of

_FEW = seeds_of(6, least=3)


def placement_of_record(obj: Object) -> ObjectRef:
    ref = ObjectRef.of(DECISION_RECORDS.group_resource, obj)
    return edge_placement_ref(ref.cluster, obj["placement"]["name"])


def reported(records: list[Object]) -> set[Destination]:
    line = timeline(records)
    assert not line.broken
    assert not line.strangers
    return set(folded(line, len(line.records)).standings)


async def recorded(hub: Hub) -> dict[ObjectRef, list[Object]]:
    found: dict[ObjectRef, list[Object]] = defaultdict(list)
    for obj in await hub.everything(DECISION_RECORDS):
        found[placement_of_record(obj)].append(obj)
    return found


async def assert_reported(hub: Hub) -> None:
    """Check that the records of each placement add up to what its slices hold."""
    records = await recorded(hub)
    placed = {
        ObjectRef.of(EDGE_PLACEMENTS.group_resource, obj): obj
        for obj in await hub.everything(EDGE_PLACEMENTS)
    }
    destinations = await hub.destinations()
    for ref in placed:
        assert reported(records.get(ref, [])) == set(destinations.get(ref, ()))


async def assert_caused(hub: Hub) -> None:
    """Check that every cause that a record names is a write there was, before the record."""
    seen: set[tuple[str, str, str, str]] = set()
    for event in await hub.store.history("", after=0, limit=1_000_000):
        _, _, resource, cluster, *_, name = event.key.split("/")
        plural = resource.partition(":")[0]
        seen.add((plural, cluster, name, str(event.revision)))
        if plural != DECISION_RECORDS.resource or event.value is None:
            continue
        record = orjson.loads(event.value[event.value.index(b"{") :])
        for cause in (record.get("cause"), *record.get("otherCauses", ())):
            if cause is not None:
                known = (cause["cluster"], cause["name"], cause["resourceVersion"])
                assert (f"{cause['kind'].lower()}s", *known) in seen, f"{cause} never happened"


async def assert_recorded_before(hub: Hub) -> None:
    """Check that at no moment a slice held, or had lost, what no record had reported before."""
    slices: dict[str, Object] = {}
    records: dict[ObjectRef, list[Object]] = defaultdict(list)
    for write in await writes(hub.store, DECISION_RECORDS, SINGLE_PLACEMENT_SLICES):
        obj = write.obj
        if obj is None:
            slices.pop(write.key, None)
            continue
        if write.kind == DECISION_RECORDS.group_resource:
            records[edge_placement_ref(write.cluster, obj["placement"]["name"])].append(obj)
            continue
        ref = edge_placement_ref(write.cluster, placement_of_slice(obj))
        before = held(slices, ref.name)
        slices[write.key] = obj
        after, known = held(slices, ref.name), reported(records[ref])
        assert after - before <= known, f"revision {write.revision}: came without a record"
        assert not (before - after) & known, f"revision {write.revision}: left without a record"


def held(slices: dict[str, Object], placement: str) -> set[Destination]:
    own = (each for each in slices.values() if placement_of_slice(each) == placement)
    return {destination for each in own for destination in destinations_in(each)}


class Owners(People):
    """People who change what they own, and leave slices alone."""

    async def act(self) -> None:
        hub, name = self.hub, self.one_of("x", "y", "z", "u", "v")
        placed = self.one_of(*self.placements)
        deed = self.one_of(
            lambda: hub.place("root:a", placed, self.selector()),
            lambda: hub.locate("root:imw1", name, self.labels(), self.one_of({}, equal())),
            lambda: hub.locate("root:imw1", name, self.labels(), {}),
            lambda: hub.target("root:imw1", name, self.labels()),
            lambda: hub.remove("root:imw1", LOCATIONS, name),
            lambda: hub.remove("root:imw1", SYNC_TARGETS, name),
        )
        with suppress(ApiError):
            await deed()


@pytest.mark.parametrize("scheduler", ["edge-scheduler", SMALL_SLICES])
@pytest.mark.parametrize("seed", _FEW)
@virtual
async def test_records_add_up_to_the_slices_after_every_event(seed: int, scheduler: str) -> None:
    hub = Hub(seed)
    people = Owners(hub)
    async with hub.running("imw1", "a"), hub.controlled(scheduler):
        for _ in range(25):
            await people.act()
            await asyncio.sleep(3)
            await assert_reported(hub)
        for records in (await recorded(hub)).values():
            assert verify(in_order(records)) == []


@pytest.mark.parametrize("scheduler", ["edge-scheduler", SMALL_SLICES])
@pytest.mark.parametrize("seed", _FEW)
@virtual
async def test_a_scheduler_that_dies_anywhere_changes_no_slice_without_a_record(
    seed: int, scheduler: str
) -> None:
    hub = Hub(seed, Rates())
    people = Owners(hub)
    async with hub.running("imw1", "a"):
        for _ in range(5):  # each time by a new process that dies amid its work
            async with hub.controlled(scheduler):
                for _ in range(8):
                    await people.act()
                    await asyncio.sleep(hub.ids.fraction() * 0.1)
        async with hub.controlled(scheduler):
            await hub.settle()
            await hub.assert_scheduled()
        await assert_reported(hub)
        await assert_recorded_before(hub)
        await assert_caused(hub)
        revision = await hub.store.revision()
        async with hub.controlled(scheduler):
            await hub.settle()
        assert await hub.store.revision() == revision, "what did not change is not recorded"


# With these a namesake is taken over, and a record before a checkpoint is repeated after it.
@pytest.mark.parametrize("seed", sorted({*_FEW, 13, 25}))
@virtual
async def test_slices_that_somebody_edits_are_restored_and_the_story_holds(seed: int) -> None:
    hub = Hub(seed, Rates())
    people = People(hub)
    async with hub.running("imw1", "imw2", "a", "b"):
        async with hub.controlled("edge-scheduler"):
            for _ in range(25):
                await people.act()
                await asyncio.sleep(hub.ids.fraction() * 2)
            await hub.settle()
            await hub.collect_garbage()
            await hub.settle()
        await assert_reported(hub)


@virtual
async def test_a_storm_of_changes_is_few_records_with_many_causes() -> None:
    hub = Hub(1)
    async with hub.running("imw1", "a"), hub.controlled("edge-scheduler"):
        await hub.place("root:a", "web", equal(env="prod"))
        for number in range(200):
            await hub.target("root:imw1", f"t{number}", {"n": str(number)})
            await hub.locate("root:imw1", f"l{number}", {"env": "dr"}, equal(n=str(number)))
        await asyncio.sleep(5)
        for number in range(200):
            await hub.locate("root:imw1", f"l{number}", {"env": "prod"}, equal(n=str(number)))
            await asyncio.sleep(0.01)
        await asyncio.sleep(5)
        [records] = (await recorded(hub)).values()
        assert len(reported(records)) == 200
        assert len(records) < 30
        assert max(int(each.get("causeCount", 0)) for each in records) > 20


@virtual
async def test_the_end_of_a_placement_is_recorded_and_outlives_it() -> None:
    hub = Hub(1)
    async with hub.running("imw1", "a"), hub.controlled("edge-scheduler"):
        await hub.target("root:imw1", "t", {})
        await hub.locate("root:imw1", "l", {}, {})
        await hub.place("root:a", "web", {})
        await asyncio.sleep(2)
        await hub.remove("root:a", EDGE_PLACEMENTS, "web")
        await asyncio.sleep(2)
        [records] = (await recorded(hub)).values()
        assert [each["change"] for each in in_order(records)] == ["Joined", "Left"]
        assert in_order(records)[-1]["reason"]["code"] == "PlacementDeleted"
        assert reported(records) == set()
        await hub.place("root:a", "web", {})
        await asyncio.sleep(2)
        await hub.collect_garbage()
        await asyncio.sleep(2)
        [records] = (await recorded(hub)).values()
        assert verify(in_order(records)) == []
        await assert_reported(hub)


@virtual
async def test_what_guards_hold_is_recorded_and_who_let_it_go() -> None:
    hub = Hub(1)
    async with hub.running("imw1", "a"), hub.controlled("edge-scheduler"):
        for number in range(3):
            await hub.target("root:imw1", f"t{number}", {"n": str(number)})
            await hub.locate("root:imw1", f"l{number}", {"env": "prod"}, equal(n=str(number)))
        budgets = [{"of": "DestinationsRemoved", "max": 1}]
        guard: Object = {"apiVersion": "edge.kcp.io/v1alpha1", "kind": "PlacementGuard"}
        guard |= {"metadata": {"name": "own"}, "spec": {"budgets": budgets}}
        await hub.at("root:a").create(PLACEMENT_GUARDS, guard)
        await hub.place("root:a", "web", equal(env="prod"))
        await asyncio.sleep(2)
        await hub.place("root:a", "web", equal(env="none"))
        await asyncio.sleep(2)
        obj = await hub.at("root:a").get(EDGE_PLACEMENTS, "web")
        name = obj["status"]["removals"]["held"]["name"]
        patch = {"metadata": {"annotations": {CONFIRM: name}}}
        await hub.ann.at("", "root:a").patch(EDGE_PLACEMENTS, "web", patch)
        await asyncio.sleep(2)
        [records] = (await recorded(hub)).values()
        story = in_order(records)
        assert [each["change"] for each in story] == ["Joined", "Held", "Released", "Left"]
        held, released = story[1:3]
        assert held["destinations"]["count"] == released["destinations"]["count"] == 3
        assert held["reason"]["text"].startswith(f"{name}: PlacementGuard ./own: removals would")
        assert released["cause"]["change"] == f"confirm={name}"
        assert released["cause"]["user"] == "ann"
        assert verify(story) == []
        assert reported(records) == set()


class ForeignHub(Hub):
    """A hub that is not ours, though somebody has annotated everything there."""

    is_skerry_hub = False


@virtual
async def test_nobody_is_named_on_the_word_of_a_client() -> None:
    hub = ForeignHub(1)
    async with hub.running("imw1", "a"), hub.controlled("edge-scheduler"):
        await hub.target("root:imw1", "t", {})
        await hub.locate("root:imw1", "l", {"env": "prod"}, {})
        await hub.place("root:a", "web", equal(env="prod"))
        await asyncio.sleep(2)
        await hub.locate("root:imw1", "l", {"env": "dr"}, {})
        await asyncio.sleep(2)
        location = await hub.at("root:imw1").get(LOCATIONS, "l")
        assert "user" in location["metadata"]["annotations"][CHANGED_BY]
        [records] = (await recorded(hub)).values()
        causes = [each["cause"] for each in in_order(records)]
        assert [each["kind"] for each in causes] == ["EdgePlacement", "Location"]
        assert all(each.get("manager") and "user" not in each for each in causes)


@virtual
async def test_a_tenant_hears_of_those_who_act_on_what_it_sees_and_of_nobody_else() -> None:
    hub = Hub(1)
    async with hub.running("imw1", "a", "b"), hub.controlled("edge-scheduler"):
        for number, env in enumerate("aaabbb"):
            await hub.target("root:imw1", f"t{number}", {"n": str(number)})
            await hub.locate("root:imw1", f"l{number}", {"env": env}, equal(n=str(number)))
        for env in "ab":
            await hub.place(f"root:{env}", "web", equal(env=env))
        await asyncio.sleep(2)
        # At one moment, each at a Location of one tenant's; the last at one of both.
        for who, number in (("ann", 0), ("bob", 3), ("ann", 1), ("bob", 4)):
            label = {"metadata": {"labels": {"env": "none"}}}
            await hub.person(who).at("", "root:imw1").patch(LOCATIONS, f"l{number}", label)
        moved = {"metadata": {"labels": {"env": "b"}}}
        await hub.person("carol").at("", "root:imw1").patch(LOCATIONS, "l2", moved)
        await asyncio.sleep(2)
        heard = {}
        for ref, records in (await recorded(hub)).items():
            text = str(records)
            heard[ref.cluster] = {who for who in ("ann", "bob", "carol") if f"'{who}'" in text}
        cluster = {name: (await hub.at("root").get(WORKSPACES, name))["spec"]["cluster"]
                   for name in "ab"}  # fmt: skip
        assert heard == {cluster["a"]: {"ann", "carol"}, cluster["b"]: {"bob", "carol"}}


@virtual
async def test_slices_older_than_their_history_begin_with_a_checkpoint() -> None:
    hub = Hub(1)
    async with hub.running("imw1", "a"):
        async with hub.controlled("edge-scheduler"):
            await hub.target("root:imw1", "t", {})
            await hub.locate("root:imw1", "l", {}, {})
            await hub.place("root:a", "web", {})
            await asyncio.sleep(2)
        for records in (await recorded(hub)).values():
            for each in records:
                await hub.remove("root:a", DECISION_RECORDS, each["metadata"]["name"])
        async with hub.controlled("edge-scheduler"):
            await asyncio.sleep(2)
            assert await recorded(hub) == {}, "nothing changed"
            await hub.target("root:imw1", "t2", {})
            await asyncio.sleep(2)
        [records] = (await recorded(hub)).values()
        assert [each["change"] for each in in_order(records)] == ["Checkpoint", "Joined"]
        await assert_reported(hub)


@virtual
async def test_a_day_later_a_checkpoint_stands_and_the_story_goes_on() -> None:
    hub = Hub(1)
    async with hub.running("imw1", "a"), hub.controlled("edge-scheduler", "history"):
        await hub.target("root:imw1", "t", {})
        await hub.locate("root:imw1", "l", {}, {})
        await hub.place("root:a", "web", {})
        await asyncio.sleep(90_000)
        await hub.remove("root:imw1", LOCATIONS, "l")
        await asyncio.sleep(2)
        [records] = (await recorded(hub)).values()
        assert [each["change"] for each in in_order(records)] == ["Joined", "Checkpoint", "Left"]
        assert verify(in_order(records)) == []
        await assert_reported(hub)


def stranger(placement: str, record_name: str, slot: object = 1) -> Object:
    """Return a record that a tenant wrote, named for what it says."""
    named = Standing(Destination("c", "l", "t", "u"), 1, 3)
    joined = Decision("Joined", (named,), Reason("Selected"), to=3)
    [obj] = records_of(
        [joined], Subject(placement, "uid"), Maker("me"), follows=5, head=None,
        now=datetime(2020, 1, 1, tzinfo=UTC),
    )  # fmt: skip
    obj["destinations"]["named"][0]["slot"] = slot
    name = f"{record_name}-000000000005-0000-{_content(obj)}"
    return {**obj, "metadata": {"name": name}}


@virtual
async def test_a_history_that_cannot_be_kept_keeps_no_other_from_its_checkpoint() -> None:
    hub = Hub(1)
    async with hub.running("imw1", "a"), hub.controlled("edge-scheduler", "history"):
        await hub.target("root:imw1", "t", {})
        await hub.locate("root:imw1", "l", {}, {})
        # Its checkpoint gets a name that no object has: the hub refuses it.
        await hub.at("root:a").create(DECISION_RECORDS, stranger("NO/NAME", "a"))
        # No placement comes to such a slot; where a schema does not say so, its reader does.
        with pytest.raises(Invalid, match="slot"):
            await hub.at("root:a").create(DECISION_RECORDS, stranger("b", "b", -1))
        await hub.place("root:a", "web", {})
        await asyncio.sleep(90_000)
        records = [
            each["change"]
            for found in (await recorded(hub)).values()
            for each in in_order(found)
            if each["placement"]["name"] == "web"
        ]
        assert records == ["Joined", "Checkpoint"]
