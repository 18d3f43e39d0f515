"""What would be held is known before anything is done."""

from __future__ import annotations

from datetime import UTC, datetime

from skerry.api.edge import edge_placement_ref
from skerry.api.refs import CLUSTER_ANNOTATION
from skerry.logic.fleet.guards.foresight import would_hold
from skerry.logic.fleet.guards.index import GuardIndex
from skerry.logic.fleet.guards.spec import guard_of
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.placement.whatif import Difference

NOW = datetime(2025, 6, 6, tzinfo=UTC)
WEB = edge_placement_ref("shop", "web")
PLACEMENTS = {WEB: {"metadata": {"name": "web", "uid": "u"}}}


def losing(count: int) -> Difference:
    gone = tuple(Destination("imw", f"l{n}", f"t{n}", f"u{n}") for n in range(count))
    return Difference(WEB, (), gone)


def held(count: int, guards: GuardIndex) -> list[str]:
    found = would_hold([losing(count)], guards, PLACEMENTS, lambda _: {}, lambda _: 100, NOW)
    assert all(ref == WEB for ref, _ in found)
    return [why for _, why in found]


def test_the_floor_and_guards_say_what_they_would_hold() -> None:
    guards = GuardIndex("espw")
    assert held(50, guards) == []
    assert "the built-in floor" in held(51, guards)[0]
    metadata = {"name": "fleet", "annotations": {CLUSTER_ANNOTATION: "espw"}}
    spec = {"budgets": [{"of": "DestinationsRemoved", "max": 2}]}
    guards.put(guard_of({"metadata": metadata, "spec": spec}))
    assert held(2, guards) == []
    [why] = held(3, guards)
    assert why.startswith("PlacementGuard fleet: removals would come to 3 of 100 destinations")


def test_a_placement_that_is_not_there_yet_loses_nothing() -> None:
    assert would_hold([losing(60)], GuardIndex(), {}, lambda _: {}, lambda _: 60, NOW) == []


def test_a_guard_is_asked_about_the_placements_whose_labels_it_selects() -> None:
    guards = GuardIndex("espw")
    metadata = {"name": "fleet", "annotations": {CLUSTER_ANNOTATION: "espw"}}
    spec = {
        "placements": {"selector": {"matchLabels": {"env": "prod"}}},
        "budgets": [{"of": "DestinationsRemoved", "max": 2}],
    }
    guards.put(guard_of({"metadata": metadata, "spec": spec}))
    assert held(3, guards) == []
    labelled = {WEB: {"metadata": {"name": "web", "uid": "u", "labels": {"env": "prod"}}}}
    found = would_hold([losing(3)], guards, labelled, lambda _: {}, lambda _: 100, NOW)
    assert [ref for ref, _ in found] == [WEB]


def test_what_only_gains_is_not_asked_about() -> None:
    gaining = Difference(WEB, losing(99).removed, ())
    nobody_knows = would_hold([gaining], GuardIndex(), PLACEMENTS, lambda _: {}, lambda _: 0, NOW)
    assert nobody_knows == []
