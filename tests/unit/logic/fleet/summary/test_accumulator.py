"""Totals kept one change at a time equal totals computed from scratch."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.summary.accumulator import Accumulator, total
from skerry.logic.fleet.summary.extremes import Extremes
from skerry.logic.fleet.summary.health import Health
from skerry.logic.fleet.summary.report import ABSENT, Report

UIDS = [f"uid-{number}" for number in range(6)]


def destination(uid: str, location: str = "") -> Destination:
    return Destination("cluster", location or f"loc-{uid}", f"target-{uid}", uid)


numbers = st.dictionaries(
    st.sampled_from(["replicas", "readyReplicas", "load.average"]),
    st.integers(-(2**63), 2**63 - 1) | st.floats(-1e6, 1e6) | st.integers(0, 3),
    max_size=3,
)
conditions = st.dictionaries(
    st.sampled_from(["Ready", "Available"]), st.sampled_from(["True", "False", "Unknown"])
)
reports = st.builds(
    Report,
    delivered=st.booleans(),
    reported=st.booleans(),
    health=st.builds(Health, st.sampled_from(["True", "False", "Unknown"])),
    time=st.sampled_from(["", "2030-01-01T00:00:00Z", "2030-01-02T00:00:00Z"]),
    numbers=numbers.map(lambda found: tuple(sorted(found.items()))),
    conditions=conditions.map(lambda found: tuple(sorted(found.items()))),
)
steps = st.lists(
    st.tuples(st.sampled_from(UIDS), st.none() | reports, st.sampled_from(["", "moved"])),
    max_size=40,
)


@given(steps, st.integers(0, 4))
@settings(max_examples=200, deadline=None)
def test_any_history_gives_the_totals_of_what_is_left(
    history: list[tuple[str, Report | None, str]], most: int
) -> None:
    accumulator, held = Accumulator(), dict[str, tuple[Destination, Report]]()
    for uid, report, location in history:
        if report is None:
            assert accumulator.remove(uid) == (held.pop(uid, None) is not None)
        else:
            pair = (destination(uid, location), report)
            assert accumulator.put(*pair) == (held.get(uid) != pair)
            held[uid] = pair
        assert accumulator.totals(most) == total(dict(held.values()), most)
    assert Accumulator(held.values()).totals(most) == accumulator.totals(most)


@given(st.lists(st.tuples(st.booleans(), st.integers(-5, 5)), max_size=200))
@settings(max_examples=150, deadline=None)
def test_extremes_survive_any_removals(history: list[tuple[bool, int]]) -> None:
    extremes: Extremes[int] = Extremes()
    held: list[int] = []
    for adding, value in history:
        if adding:
            extremes.add(value)
            held.append(value)
        elif value in held:
            extremes.remove(value)
            held.remove(value)
        assert bool(extremes) == bool(held)
        if held:
            assert (extremes.least(), extremes.most()) == (min(held), max(held))


def test_extremes_do_not_keep_what_has_gone() -> None:
    extremes: Extremes[int] = Extremes()
    for value in range(10_000):
        extremes.add(value)
        extremes.remove(value)
    assert len(extremes._least) < 100
    assert len(extremes._most) < 100


def test_the_unhealthy_come_first_then_the_unknown_then_the_undelivered() -> None:
    well = Report(delivered=True, reported=True, health=Health("True"))
    old = Report(delivered=False, reported=True, health=Health("True"))
    ill = Report(delivered=True, reported=True, health=Health("False", "Unavailable"))
    accumulator = Accumulator(
        [
            (destination("a"), well),
            (destination("b"), old),
            (destination("c"), ABSENT),
            (destination("d"), ill),
        ]
    )
    order = [detail.destination.uid for detail in accumulator.totals(10).details]
    assert order == ["d", "c", "b", "a"]


def test_decimal_sums_do_not_drift() -> None:
    accumulator = Accumulator()
    for uid, value in (("a", 1e16), ("b", 0.1), ("c", 0.2)):
        accumulator.put(destination(uid), Report(numbers=(("load", value),)))
    accumulator.remove("a")
    (load,) = accumulator.totals(0).numbers
    assert load.sum == 0.1 + 0.2
