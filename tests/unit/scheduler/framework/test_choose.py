"""The framework schedules things that are not pods onto things that are not nodes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from skerry.scheduler.framework.choose import Offer, choose
from skerry.scheduler.framework.evaluation import Evaluator
from skerry.scheduler.framework.plugin import Scope
from skerry.scheduler.framework.profile import PluginRef, PluginSet, ProfileSpec, assemble
from skerry.scheduler.framework.registry import Registry
from skerry.scheduler.framework.runner import Framework
from skerry.scheduler.framework.status import Status, unresolvable
from tests.kit.scheduler.target_rows import TargetRows


@dataclass(frozen=True)
class Location:
    name: str
    healthy: bool
    speed: int


@dataclass(frozen=True)
class Placement:
    name: str
    least_speed: int


class Base:
    def __init__(self, args: Any, handle: Any) -> None:
        self.asked = 0


class Order(Base):
    name = "Order"

    def sort_key(self, item: Placement) -> str:
        return item.name


class Health(Base):
    name = "Health"
    scope = Scope.TARGET

    def signature(self, item: Placement) -> None:
        return None

    def filter(self, state: Any, item: Placement, target: Location) -> Status | None:
        self.asked += 1
        return None if target.healthy else unresolvable("location(s) were unhealthy")


class Speed(Base):
    name = "Speed"

    def filter(self, state: Any, item: Placement, target: Location) -> Status | None:
        return unresolvable("location(s) were slow") if target.speed < item.least_speed else None

    def score(self, state: Any, item: Placement, target: Location) -> int:
        return target.speed

    async def bind(self, state: Any, item: Placement, target: str) -> None:
        return None


def machine() -> tuple[TargetRows[Location], Evaluator[Placement, Location]]:
    table: TargetRows[Location] = TargetRows(capacity=2)
    registry = Registry({cls.name: cls for cls in (Order, Health, Speed)})
    names = tuple(PluginRef(name) for name in registry.names())
    spec = ProfileSpec("placement", {"multiPoint": PluginSet(names)})
    framework: Framework[Placement, Location] = Framework(assemble(spec, registry, None))
    return table, Evaluator(framework, table)


def feasible(
    table: TargetRows[Location], evaluator: Evaluator[Placement, Location], item: Placement
) -> dict[str, int]:
    evaluation, state, _ = evaluator.begin(item, evaluator.signature(item))
    evaluator.build(evaluation, state, item)
    rows = evaluator.feasible(evaluation, state, item).nonzero()[0]
    totals = evaluator.totals(evaluation, state, item, rows)
    return {table.target(r).name: t for r, t in zip(rows.tolist(), totals.tolist(), strict=True)}


def test_locations_are_filtered_scored_and_followed_as_they_change() -> None:
    table, evaluator = machine()
    for index in range(5):
        table.set(f"l{index}", Location(f"l{index}", index != 2, index * 10))
    wanted = Placement("web", 10)
    assert feasible(table, evaluator, wanted) == {"l1": 10, "l3": 30, "l4": 40}
    table.set("l2", Location("l2", True, 90))
    table.remove("l4")
    assert feasible(table, evaluator, wanted) == {"l1": 10, "l2": 90, "l3": 30}


def test_what_was_said_of_unchanged_targets_is_remembered() -> None:
    table, evaluator = machine()
    for index in range(20):
        table.set(f"l{index}", Location(f"l{index}", True, 50))
    feasible(table, evaluator, Placement("a", 0))
    health: Any = evaluator.framework.made["Health"]
    before = health.asked
    table.set("l3", Location("l3", False, 50))
    assert len(feasible(table, evaluator, Placement("b", 0))) == 19
    assert health.asked == before + 1


def offers(totals: dict[str, int], *, grouped: bool = True) -> list[Offer]:
    return [
        Offer.of(total, (name,), row, (name[0],) if grouped else ())
        for row, (name, total) in enumerate(totals.items())
    ]


def chosen(totals: dict[str, int], count: int, *skews: int, taken: str = "") -> list[str]:
    found = choose(
        offers(totals, grouped=bool(skews)), count, skews, [(domain,) for domain in taken]
    )
    return [list(totals)[row] for row in found]


def test_the_best_are_chosen_and_ties_go_by_name() -> None:
    assert chosen({"b": 1, "a": 1, "c": 5}, 2) == ["c", "a"]
    assert chosen({"a": 1}, 0) == []


def test_domains_share_before_any_is_ahead_by_more_than_the_skew() -> None:
    totals = {"a1": 9, "a2": 8, "a3": 7, "b1": 1}
    assert chosen(totals, 3, 1) == ["a1", "b1", "a2"]
    assert chosen(totals, 3, 2) == ["a1", "a2", "b1"]


def test_what_is_there_already_counts() -> None:
    assert chosen({"a1": 9, "b1": 1}, 1, 1, taken="a") == ["b1"]
    assert chosen({"a1": 9}, 1, 1, taken="aab") == ["a1"], "nobody waits elsewhere"


def test_skews_of_two_labels_may_leave_no_choice() -> None:
    there = [("x", "1")]
    waiting = [Offer.of(1, ("p",), 0, ("x", "2")), Offer.of(1, ("q",), 1, ("y", "1"))]
    assert choose(waiting, 2, (1, 1), there) == []


names = st.sampled_from([f"{group}{index}" for group in "abc" for index in range(4)])


@given(st.dictionaries(names, st.integers(0, 3)), st.integers(0, 12), st.integers(1, 3))
def test_spread_is_as_even_as_the_candidates_allow(
    totals: dict[str, int], count: int, skew: int
) -> None:
    found = chosen(totals, count, skew)
    assert len(found) == min(count, len(totals)) == len(set(found))
    taken, offered = Counter(name[0] for name in found), Counter(name[0] for name in totals)
    for number in taken.values():
        for other in offered:
            assert taken[other] == offered[other] or taken[other] >= number - skew
