"""Totals kept one change at a time equal totals computed from scratch."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.api.refs import ObjectRef
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.summary.freshness import lapsed
from skerry.logic.fleet.summary.health import Health
from skerry.logic.fleet.summary.report import ABSENT, Report
from skerry.logic.fleet.summary.standing import Detail, ItemCount, Items, Worst
from skerry.logic.fleet.summary.tally import DeliveredCopies, Tally, total

ITEM = ObjectRef("", "networking.k8s.io", "networkpolicies", "shop", "deny")
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
) | st.sampled_from(["", "2030-01-01T00:00:00Z"]).map(lambda heard: lapsed(heard).report)
steps = st.lists(
    st.tuples(st.sampled_from(UIDS), st.none() | reports, st.sampled_from(["", "moved"])),
    max_size=40,
)


@given(steps, st.integers(0, 4))
@settings(max_examples=150, deadline=None)
def test_any_history_gives_the_totals_of_what_is_left(
    history: list[tuple[str, Report | None, str]], max_details: int
) -> None:
    tally, copies, held = Tally(), DeliveredCopies(), dict[str, Detail]()
    for uid, report, location in history:
        old = held.pop(uid, None)
        new = None if report is None else Detail(destination(uid, location), report)
        for fold in (tally, copies):
            if old is not None and new is not None:
                fold.replace(uid, old, new)
            elif old is not None:
                fold.remove(uid, old)
            elif new is not None:
                fold.add(uid, new)
        if new is not None:
            held[uid] = new
        expected = total(held.values(), max_details)
        assert tally.totals(max_details) == expected
        assert copies.delivered_copies == tally.delivered == expected.delivered
        assert len(tally) == len(held)
    assert Tally(held.items()).totals(max_details) == tally.totals(max_details)
    assert DeliveredCopies(held.items()).delivered_copies == copies.delivered_copies


def tally_of(**reports: Report) -> Tally:
    return Tally((uid, Detail(destination(uid), each)) for uid, each in reports.items())


def test_the_unhealthy_come_first_then_the_unknown_then_the_undelivered() -> None:
    tally = tally_of(
        a=Report(delivered=True, reported=True, health=Health("True")),
        b=Report(delivered=False, reported=True, health=Health("True")),
        c=ABSENT,
        d=Report(delivered=True, reported=True, health=Health("False", "Unavailable")),
    )

    order = [detail.destination.uid for detail in tally.totals(10).details]

    assert order == ["d", "c", "b", "a"]


def test_of_equals_details_go_by_location_then_cluster() -> None:
    found = [
        Destination("two", "here", "st", "u1"),
        Destination("one", "there", "st", "u2"),
        Destination("one", "here", "st", "u3"),
    ]
    tally = Tally((each.uid, Detail(each, ABSENT)) for each in found)

    assert [d.destination.uid for d in tally.totals(10).details] == ["u3", "u1", "u2"]


def test_decimal_sums_do_not_drift() -> None:
    values = {uid: Report(numbers=(("load", value),)) for uid, value in SUMMANDS.items()}
    tally = tally_of(**values)

    tally.remove("a", Detail(destination("a"), values["a"]))

    (load,) = tally.totals(0).numbers
    assert load.sum == 0.1 + 0.2


SUMMANDS = {"a": 1e16, "b": 0.1, "c": 0.2}


def test_the_only_destination_is_reported_when_there_is_just_one() -> None:
    assert tally_of().only() is None
    assert tally_of(a=ABSENT).only() == Detail(destination("a"), ABSENT)
    assert tally_of(a=ABSENT, b=ABSENT).only() is None


def test_a_field_nobody_reports_any_more_is_gone() -> None:
    before = Report(numbers=(("replicas", 1),), conditions=(("Ready", "True"),), time="t")
    tally = tally_of(a=before)

    tally.replace("a", Detail(destination("a"), before), Detail(destination("a"), Report()))

    totals = tally.totals(1)
    assert (totals.numbers, totals.conditions, totals.newest) == ((), (), "")


def test_of_a_kind_without_status_a_refusal_goes_before_what_has_no_effect() -> None:
    inert = Report(delivered=True, health=Health("Unknown", "NotEnforced", "not filtered"))
    refused = Report(health=Health("False", "Forbidden", "no right"))
    copies = DeliveredCopies()
    copies.add("a", Detail(destination("a"), inert))
    copies.add("b", Detail(destination("b"), Report(delivered=True)))
    assert copies.item_count() == ItemCount(2, "loc-a", inert.health)
    copies.add("c", Detail(destination("c"), refused))
    assert copies.item_count() == ItemCount(2, "loc-c", refused.health)
    items = Items()
    key = (ITEM, ITEM)
    items.add(key, ItemCount(1, "loc-a", inert.health))
    assert (items.worst(), items.inert()) == (None, Worst(ITEM, "loc-a", inert.health))
    items.replace(key, ItemCount(1, "loc-a", inert.health), ItemCount(1))
    assert items.inert() is None
    copies.remove("c", Detail(destination("c"), refused))
    copies.remove("a", Detail(destination("a"), inert))
    assert copies.item_count() == ItemCount(1)
