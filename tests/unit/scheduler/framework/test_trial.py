"""Room that is promised counts as taken, and what a trial found stays true until it may not."""

from __future__ import annotations

from skerry.scheduler.cache.pod import PodInfo
from skerry.scheduler.framework.state import CycleState
from skerry.scheduler.framework.trial import (
    Trials,
    filter_with_nominated,
    promised_on,
    recall,
    remember,
)
from tests.kit.scheduler.fixtures import Bench, node, pod


def bench() -> Bench:
    return Bench().nodes(node("a", allocatable={"cpu": "1"}))


def read(place: Bench, name: str, cpu: str = "600m", priority: int = 0) -> PodInfo:
    return place.cluster.reader.read(pod(name, requests={"cpu": cpu}, priority=priority))


def refused(place: Bench, info: PodInfo) -> bool:
    state = CycleState()
    place.framework.run_pre_filter(state, info)
    target = place.cluster.table.target(0)
    nominations = place.handle.nominations
    return filter_with_nominated(place.framework, nominations, state, info, target) is not None


def test_those_of_equal_or_higher_priority_are_left_room_for() -> None:
    place = bench()
    nominations = place.handle.nominations
    mine = read(place, "mine", priority=5)
    for name, priority in (("lesser", 4), ("equal", 5), ("higher", 6), ("mine", 5)):
        nominations.nominate(read(place, name, priority=priority), "a")
    assert [each.name for each in promised_on(nominations, mine, "a")] == ["equal", "higher"]
    assert promised_on(nominations, mine, "elsewhere") == ()


def test_promised_room_is_taken() -> None:
    place = bench()
    mine = read(place, "mine")
    assert not refused(place, mine)
    place.handle.nominations.nominate(read(place, "other", priority=1), "a")
    assert refused(place, mine)
    assert place.cluster.table.target(0).pods == {}


def test_a_trial_is_recalled_until_the_node_or_the_promises_change() -> None:
    place, trials = bench(), Trials[str]()
    info, target = read(place, "p"), place.cluster.table.target(0)
    other = read(place, "other")
    known = trials.known(info)
    assert recall(known, target, ()) is None
    remember(known, target, (), "fits")
    found = recall(trials.known(read(place, "twin")), target, ())
    assert found is not None
    assert found.answer == "fits"
    assert recall(known, target, (other,)) is None
    place.place(pod("q"), "a")
    assert recall(known, target, ()) is None
    remember(known, target, (), "again")
    assert recall(known, target.copy(), ()) is None
    trials.clear()
    assert trials.known(info) == {}


def test_only_so_many_kinds_of_pods_are_kept_and_the_latest_used_stay() -> None:
    place, trials = bench(), Trials[str]()
    target = place.cluster.table.target(0)
    kept = read(place, "kept")
    remember(trials.known(kept), target, (), "kept")
    for n in range(40):
        remember(trials.known(read(place, f"p{n}", cpu=f"{n + 1}m")), target, (), "other")
        assert recall(trials.known(kept), target, ()) is not None
    assert recall(trials.known(read(place, "old", cpu="1m")), target, ()) is None
