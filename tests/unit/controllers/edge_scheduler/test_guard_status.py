"""What the status of a PlacementGuard says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.edge import EDGE_PLACEMENTS, PLACEMENT_GUARDS, edge_placement_ref
from skerry.api.kcp.resources import workspace_ref
from skerry.api.objects import Object
from skerry.api.refs import CLUSTER_ANNOTATION, ObjectRef
from skerry.controllers.edge_scheduler.guard_status import (
    GuardObserver,
    GuardReports,
    ObservedGuard,
    decide_guard,
)
from skerry.controllers.edge_scheduler.guards import GuardState
from skerry.logic.fleet.guards.book import Hold
from skerry.logic.fleet.guards.spec import Guard, guard_of
from skerry.logic.fleet.placement.destination import DestinationTable
from skerry.logic.fleet.placement.records import location_of, placement_of
from skerry.logic.machinery.plan import Plan, Update
from tests.kit.caches import cache
from tests.kit.chain import building

NOW = datetime(2025, 6, 6, tzinfo=UTC)
HOLD = Hold("7f21c0", 51, 0, 100, NOW, "too many", ("fleet",))


def made(cluster: str = "espw", name: str = "fleet", **spec: Any) -> Object:
    metadata = {"name": name, "annotations": {CLUSTER_ANNOTATION: cluster}, "generation": 2}
    return {"metadata": metadata, "spec": spec}


def status(obj: Object, *held: tuple[str, Hold], **more: Any) -> Object:
    [update] = decide_guard(ObservedGuard(guard_of(obj), obj, held, **more), NOW).actions
    found: Object = update.object["status"]  # type: ignore[union-attr]
    return found


def said(found: Object) -> dict[str, tuple[str, str]]:
    return {c["type"]: (c["status"], c["reason"]) for c in found["conditions"]}


def test_what_is_held_is_listed_by_the_names_people_know() -> None:
    found = status(made(), ("root:shop|web", HOLD))
    assert found["held"] == [
        {
            "placement": "root:shop|web",
            "name": "7f21c0",
            "removed": 51,
            "added": 0,
            "since": "2025-06-06T00:00:00Z",
            "why": "too many",
        }
    ]
    assert said(found) == {"Valid": ("True", "Valid"), "Holding": ("True", "RemovalsHeld")}
    again = {**made(), "status": found}
    assert not decide_guard(
        ObservedGuard(guard_of(again), again, (("root:shop|web", HOLD),)), NOW
    ).actions


def test_many_entries_are_counted() -> None:
    found = status(made(), *((f"root:shop|w{n}", HOLD) for n in range(60)))
    assert (len(found["held"]), found["heldOmitted"]) == (50, 10)
    assert "and 55 more" in found["conditions"][1]["message"]


def test_a_guard_that_cannot_do_what_it_says_is_not_valid() -> None:
    wrong = made(budgets=[{"of": "DestinationsRemoved"}])
    assert said(status(wrong))["Valid"] == ("False", "Invalid")
    unrolled = status(made(), without_rollout=("root:shop|web",))
    assert said(unrolled)["Valid"] == ("False", "NeedsRollout")
    assert "root:shop|web" in unrolled["conditions"][0]["message"]
    assert status(made(), unknown_zones=("x",))["conditions"][0]["message"] == "x"


def test_guards_hear_of_what_placements_say_they_hold() -> None:
    enqueued: list[ObjectRef] = []
    state = GuardState(DestinationTable(), lambda: NOW, "espw")
    reports = GuardReports(state, enqueued.append)
    fleet, other = guard_of(made()), guard_of(made("blog", "own"))
    state.guards.put(fleet)
    state.guards.put(other)
    web = edge_placement_ref("shop", "web")
    reports.placement_changed(web, {"status": {}})
    assert enqueued == []
    reports.placement_changed(web, {"status": {"removals": {"held": HOLD.written()}}})
    assert enqueued == [fleet.ref]
    assert reports.of(fleet) == [(web, HOLD)]
    assert reports.of(other) == []
    reports.placement_changed(web, None)
    assert enqueued == [fleet.ref] * 2
    assert reports.of(fleet) == []


# -- what is written, and when nothing is ----------------------------------------------------------


def plan_of(obj: Object, *held: tuple[str, Hold], **more: Any) -> Plan:
    return decide_guard(ObservedGuard(guard_of(obj), obj, held, **more), NOW)


@given(st.integers(0, 120))
def test_a_second_look_at_what_was_written_writes_nothing(count: int) -> None:
    held = [(f"root:shop|w{n:03}", HOLD) for n in range(count)]
    found = status(made(), *held)
    assert len(found.get("held", [])) == min(count, 50)
    assert found.get("heldOmitted", 0) == max(0, count - 50)
    assert not plan_of({**made(), "status": found}, *held).actions


def test_what_is_no_longer_held_is_taken_out_and_what_others_say_stays() -> None:
    before = status(made(), *((f"root:shop|w{n}", HOLD) for n in range(60)))
    before["other"] = "theirs"
    found = status({**made(), "status": before})
    assert "held" not in found
    assert "heldOmitted" not in found
    assert found["other"] == "theirs"
    assert said(found)["Holding"] == ("False", "NothingHeld")


@pytest.mark.parametrize(("generation", "seen"), [(7, 7), (None, 0), (0, 0)])
def test_a_status_is_of_the_generation_that_was_read(generation: int | None, seen: int) -> None:
    obj = made()
    obj["metadata"]["generation"] = generation
    assert status(obj)["observedGeneration"] == seen


def test_a_condition_keeps_the_time_of_its_last_change() -> None:
    first = status(made())
    later = NOW + timedelta(hours=1)
    obj = {**made(), "status": first}
    observed = ObservedGuard(guard_of(obj), obj, (("root:shop|web", HOLD),))
    [update] = decide_guard(observed, later).actions
    conditions = update.object["status"]["conditions"]  # type: ignore[union-attr]
    times = {each["type"]: each["lastTransitionTime"] for each in conditions}
    assert times == {"Valid": "2025-06-06T00:00:00Z", "Holding": "2025-06-06T01:00:00Z"}


def test_a_status_is_written_as_such_where_the_guard_is() -> None:
    [update] = plan_of(made("shop", "own")).actions
    assert isinstance(update, Update)
    assert (update.target.cluster, update.target.name) == ("shop", "own")
    assert (update.subresource, update.object["kind"]) == ("status", "PlacementGuard")
    assert update.object["spec"] == {}


@pytest.mark.parametrize(
    ("mode", "text"), [("Enforce", ""), ("Observe", "the guard only observes")]
)
def test_a_guard_that_holds_nothing_says_whether_it_ever_would(mode: str, text: str) -> None:
    assert status(made(mode=mode))["conditions"][1]["message"] == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(1, "p0"), (5, "p0, p1, p2, p3, p4"), (6, "p0, p1, p2, p3, p4 and 1 more")],
)
def test_a_message_names_five_and_counts_the_others(count: int, text: str) -> None:
    found = status(made(), without_rollout=tuple(f"p{n}" for n in range(count)))
    message = found["conditions"][0]["message"]
    assert message == f"without a Rollout content is not frozen: {text}"


def test_errors_are_said_before_anything_else_that_is_wrong() -> None:
    wrong = made(budgets=[{"of": "DestinationsRemoved"}])
    assert said(status(wrong, without_rollout=("p",)))["Valid"] == ("False", "Invalid")


# -- what placements say ---------------------------------------------------------------------------


class Reporting:
    """Guards, and what placements say that they hold."""

    def __init__(self) -> None:
        self.enqueued: list[ObjectRef] = []
        self.state = GuardState(DestinationTable(), lambda: NOW, "espw")
        self.reports = GuardReports(self.state, self.enqueued.append)

    def guard(self, cluster: str = "espw", name: str = "fleet", **spec: Any) -> Guard:
        self.state.guards.put(guard_of(made(cluster, name, **spec)))
        found = self.state.guards.get(guard_of(made(cluster, name)).ref)
        assert found is not None
        return found

    def say(self, placement: str, *holds: Hold, cluster: str = "shop") -> ObjectRef:
        ref = edge_placement_ref(cluster, placement)
        parts = zip(("held", "heldObjects"), holds, strict=False)
        removals = {part: hold.written() for part, hold in parts}
        self.reports.placement_changed(ref, {"status": {"removals": removals}})
        return ref


def test_a_guard_is_enqueued_by_news_alone() -> None:
    desk = Reporting()
    fleet = desk.guard()
    desk.say("web", HOLD)
    desk.say("web", HOLD)
    assert desk.enqueued == [fleet.ref]
    desk.say("web", HOLD._replace(name="abcdef"))
    assert desk.enqueued == [fleet.ref] * 2
    desk.say("web")
    assert desk.enqueued == [fleet.ref] * 3
    desk.say("web")
    assert desk.enqueued == [fleet.ref] * 3


def test_destinations_and_objects_are_held_apart_and_both_are_reported() -> None:
    desk = Reporting()
    fleet = desk.guard()
    objects = HOLD._replace(name="objects")
    web = desk.say("web", HOLD, objects)
    assert desk.reports.of(fleet) == [(web, HOLD), (web, objects)]


def test_a_guard_reports_what_it_holds_itself_in_the_order_of_placements() -> None:
    desk = Reporting()
    fleet, other = desk.guard(), desk.guard(name="other")
    beside = desk.guard("shop", "own")
    own = HOLD._replace(guards=("./own",))
    web, api = desk.say("web", HOLD), desk.say("api", HOLD, own)
    assert desk.reports.of(fleet) == [(api, HOLD), (web, HOLD)]
    assert desk.reports.of(other) == []
    assert desk.reports.of(beside) == [(api, own)]


def test_a_guard_beside_other_placements_is_none_of_theirs_whatever_its_name() -> None:
    desk = Reporting()
    elsewhere = desk.guard("blog", "own")
    desk.say("web", HOLD._replace(guards=("./own",)))
    assert desk.reports.of(elsewhere) == []
    assert desk.enqueued == []


@pytest.mark.parametrize("status", [None, {}, {"removals": None}, {"removals": {"held": None}}])
def test_a_placement_that_says_nothing_holds_nothing(status: Any) -> None:
    desk = Reporting()
    fleet = desk.guard()
    web = edge_placement_ref("shop", "web")
    desk.reports.placement_changed(web, {"status": status})
    assert (desk.enqueued, desk.reports.of(fleet)) == ([], [])


# -- observing -------------------------------------------------------------------------------------

FROZEN = {"name": "f", "schedule": "0 0 * * *", "duration": "1h"}


class Observing(Reporting):
    """An observer over caches that a test fills."""

    def __init__(self) -> None:
        super().__init__()
        self.index = DestinationTable()
        self.state = GuardState(self.index, lambda: NOW, "espw")
        self.reports = GuardReports(self.state, self.enqueued.append)
        self.rolled: set[ObjectRef] = set()
        self.ready = True
        self.guards, self.placements = cache(PLACEMENT_GUARDS), cache(EDGE_PLACEMENTS)
        self.index.put_workspace("shop", {}, workspace_ref("root", "shop"))
        self.observer = GuardObserver(
            self.reports,
            self.index,
            self.guards,
            self.placements,
            self.rolled.__contains__,
            lambda: self.ready,
        )

    def place(self, name: str, **labels: str) -> ObjectRef:
        obj = building.placement(name, {}, cluster="shop")
        obj["metadata"]["labels"] = labels
        self.placements.apply("ADDED", obj)
        self.index.put_placement(placement_of(obj))
        return edge_placement_ref("shop", name)

    async def observe(self, **spec: Any) -> ObservedGuard | None:
        guard = self.guard(**spec)
        self.guards.apply("ADDED", made(**spec))
        return await self.observer.observe(guard.ref)


async def test_a_guard_is_seen_with_what_it_holds_by_paths() -> None:
    desk = Observing()
    desk.say("web", HOLD)
    found = await desk.observe()
    assert found is not None
    assert found.held == (("root:shop|web", HOLD),)
    assert (found.object, found.without_rollout, found.unknown_zones) == (made(), (), ())


async def test_nothing_is_reported_before_paths_are_known_or_of_a_guard_that_is_gone() -> None:
    desk = Observing()
    desk.ready = False
    assert await desk.observe() is None
    desk.ready = True
    assert await desk.observe() is not None
    desk.state.guards.remove(guard_of(made()).ref)
    assert await desk.observer.observe(guard_of(made()).ref) is None
    unread = desk.guard(name="unread")
    assert await desk.observer.observe(unread.ref) is None, "its object is not in the cache"


async def test_placements_whose_content_would_be_frozen_without_a_rollout_are_named() -> None:
    desk = Observing()
    for name in ("web", "api", "rolled"):
        placed = desk.place(name, env="prod")
        if name == "rolled":
            desk.rolled.add(placed)
    desk.place("dev", env="dev")
    selector = {"selector": {"matchLabels": {"env": "prod"}}}
    content = {**FROZEN, "stops": ["Leaving", "Content"]}
    found = await desk.observe(placements=selector, freezes=[content, {**FROZEN, "stops": []}])
    assert found is not None
    assert found.without_rollout == ("root:shop|api", "root:shop|web")
    moves = await desk.observe(placements=selector, freezes=[{**FROZEN, "stops": ["Leaving"]}])
    assert moves is not None
    assert moves.without_rollout == (), "content is not stopped"


async def test_a_placement_that_is_not_cached_yet_is_not_named() -> None:
    desk = Observing()
    desk.index.put_placement(placement_of(building.placement("web", {}, cluster="shop")))
    found = await desk.observe(freezes=[{**FROZEN, "stops": ["Content"]}])
    assert found is not None
    assert found.without_rollout == ()


async def test_a_time_zone_that_a_location_has_wrong_is_said() -> None:
    desk = Observing()
    desk.index.put_location(location_of(building.location("florin", {"zone": "Nowhere"}, {})))
    zoned = {**FROZEN, "stops": ["Leaving"], "timeZone": "label:zone"}
    found = await desk.observe(freezes=[zoned])
    assert found is not None
    [text] = found.unknown_zones
    assert text.startswith("Location florin: label zone=Nowhere")
