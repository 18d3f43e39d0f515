"""Totals kept one change at a time equal totals computed from scratch."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.api.refs import ObjectRef
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.summary.freshness import LIVE, lapsed
from skerry.logic.fleet.summary.health import HEALTHY, NO_HEALTH, NOT_REPORTED, Health
from skerry.logic.fleet.summary.report import ABSENT, Origin, Report
from skerry.logic.fleet.summary.standing import Detail, ItemCount, Items, Worst
from skerry.logic.fleet.summary.tally import DeliveredCopies, Tally, Totals, reference, total

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


ILL = Health("False", "CrashLoopBackOff")
WELL = Report(delivered=True, reported=True, health=HEALTHY)
SILENT = lapsed("2030-01-01T00:00:00Z").report or Report()


@given(st.lists(reports, max_size=8), st.randoms(use_true_random=False))
def test_in_whatever_order_reports_come_they_come_to_the_same(
    found: list[Report], order: random.Random
) -> None:
    details = [(f"u{n}", Detail(destination(f"u{n}"), each)) for n, each in enumerate(found)]
    first = Tally(details)
    order.shuffle(details)
    second = Tally()
    for uid, detail in details:
        second.add(uid, detail)
    assert first.totals(3) == second.totals(3)
    assert list(first.details()) == list(second.details())


@given(reports, reports)
def test_replacing_is_taking_out_and_putting_in(before: Report, after: Report) -> None:
    others = [("z", Detail(destination("z"), WELL)), ("y", Detail(destination("y"), ABSENT))]
    old, new = Detail(destination("a"), before), Detail(destination("a"), after)
    one, other = Tally([*others, ("a", old)]), Tally([*others, ("a", old)])
    one.replace("a", old, new)
    other.remove("a", old)
    other.add("a", new)
    assert one.totals(5) == other.totals(5)
    one.replace("a", new, old)
    assert one.totals(5) == Tally([*others, ("a", old)]).totals(5)


@given(st.lists(reports, max_size=8))
def test_the_ready_are_those_of_which_nothing_is_to_be_said(found: list[Report]) -> None:
    tally = tally_of(**{f"u{n}": each for n, each in enumerate(found)})
    heard = [each for each in found if each.last_heard is None]
    ready = [each for each in heard if each.delivered and each.health.status == "True"]
    assert tally.ready() == len(ready)
    first = tally.first_unready()
    assert (first is None) == (len(ready) == len(heard))
    if first is not None:
        assert first.report in heard
        assert first.report not in ready


@pytest.mark.parametrize(
    ("found", "ready", "first"),
    [
        ({"a": WELL, "b": WELL}, 2, None),
        ({"a": WELL, "b": Report(delivered=True, health=NO_HEALTH)}, 2, None),
        ({"a": Report(health=NO_HEALTH), "b": WELL}, 1, "a"),
        ({"a": Report(delivered=True, health=NOT_REPORTED), "b": ABSENT}, 0, "b"),
        ({"a": SILENT, "b": WELL}, 1, None),
        ({"a": SILENT, "b": ABSENT}, 0, "b"),
        ({"a": SILENT, "b": ABSENT, "c": Report(delivered=True, health=ILL)}, 0, "c"),
        ({}, 0, None),
    ],
)
def test_the_first_that_is_not_ready_is_the_worst_that_was_heard_of(
    found: dict[str, Report], ready: int, first: str | None
) -> None:
    tally = tally_of(**found)
    worst = tally.first_unready()
    assert tally.ready() == ready
    assert (None if worst is None else worst.destination.uid) == first


def test_where_an_object_is_unhealthy_first_is_named_and_only_then() -> None:
    assert tally_of(a=WELL, b=ABSENT, c=SILENT).item_count() is None
    tally = tally_of(c=Report(health=ILL), b=Report(delivered=True, health=ILL), a=WELL)
    assert tally.item_count() == ItemCount(0, "loc-c", ILL), "the undelivered before the delivered"


def test_every_detail_is_found_under_the_uid_of_its_destination() -> None:
    found = {"a": WELL, "b": ABSENT, "c": SILENT}
    details = dict(tally_of(**found).details())
    assert details == {uid: Detail(destination(uid), each) for uid, each in found.items()}


@pytest.mark.parametrize(
    ("values", "ranges"),
    [
        ({"a": 3, "b": 5}, (3, 5)),
        # A count of zero is not written: who was heard of and left it out has none.
        ({"a": 3, "b": None}, (0, 3)),
        ({"a": -3, "b": None}, (-3, 0)),
        ({"a": 3, "b": 5, "lost": ...}, (3, 5)),
    ],
)
def test_who_leaves_a_number_out_has_none_of_it_unless_nothing_is_known_of_it(
    values: dict[str, object], ranges: tuple[int, int]
) -> None:
    found = {
        uid: SILENT
        if value is ...
        else Report(numbers=(("readyReplicas", value),) if isinstance(value, int) else ())
        for uid, value in values.items()
    }
    assert list(tally_of(**found).ranges()) == [("readyReplicas", *ranges)]


def test_numbers_that_appear_and_disappear_change_no_other_number() -> None:
    fields = [
        (("a", 1), ("b", 2), ("c", 3)), (("b", 2), ("c", 4)), (("a", 5),), (), (("c", 1), ("d", 2)),
    ]  # fmt: skip
    tally, old = tally_of(z=Report(numbers=(("b", 10),))), Detail(destination("a"), Report())
    tally.add("a", old)
    for found in fields:
        new = Detail(destination("a"), Report(numbers=found))
        tally.replace("a", old, new)
        old = new
        sums = {each.field: each.sum for each in tally.totals(0).numbers}
        wanted = dict(found) | {"b": dict(found).get("b", 0) + 10}
        assert sums == wanted


def made_of(origin: Origin, **more: object) -> Report:
    return Report(delivered=True, origin=origin, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("origins", "oldest"),
    [
        ([("wmw", 3), ("wmw", 2)], 2),
        ([("wmw", 3), ("other", 2)], 0),
        ([("other", 3)], 0),
        ([("wmw", 3), ("", 0)], 0),
        ([], 0),
    ],
)
def test_the_oldest_generation_counts_only_if_all_copies_are_of_the_workspaces_object(
    origins: list[Origin], oldest: int
) -> None:
    tally = tally_of(**{f"u{n}": made_of(origin) for n, origin in enumerate(origins)})
    assert tally.oldest_generation("wmw") == oldest


def test_a_destination_that_is_not_heard_of_holds_no_generation_back() -> None:
    tally = tally_of(a=made_of(("wmw", 3)), b=SILENT)
    assert tally.oldest_generation("wmw") == 3
    late = Detail(destination("a"), made_of(("wmw", 4)))
    tally.replace("a", Detail(destination("a"), made_of(("wmw", 3))), late)
    assert tally.oldest_generation("wmw") == 4
    tally.remove("a", late)
    assert tally.oldest_generation("wmw") == 0


def test_of_those_that_refuse_the_first_by_location_is_named() -> None:
    refused = Report(health=Health("False", "Forbidden"))
    copies = DeliveredCopies((uid, Detail(destination(uid), refused)) for uid in ("c", "a", "b"))
    assert copies.item_count() == ItemCount(0, "loc-a", refused.health)
    copies.replace("a", Detail(destination("a"), refused), Detail(destination("a"), WELL))
    assert copies.item_count() == ItemCount(1, "loc-b", refused.health)


def test_of_an_object_that_went_nowhere_yet_there_is_nothing_to_say() -> None:
    copies = DeliveredCopies([("a", Detail(destination("a"), ABSENT))])
    assert copies.item_count() is None
    assert copies.delivered_copies == 0


def test_from_scratch_every_placement_has_its_own_destinations() -> None:
    one, other = ITEM._replace(name="one"), ITEM._replace(name="other")
    where = {
        (one, "a"): destination("a"),
        (one, "b"): destination("b"),
        (other, "c"): destination("c"),
    }
    found = {(ITEM, "a"): WELL, (ITEM, "b"): Report(delivered=True), (ITEM, "c"): WELL}
    leases = {"a": LIVE, "b": lapsed("t"), "c": LIVE}
    selected = {(one, ITEM): True, (other, ITEM): False}
    totals = reference(selected, where, found, leases, 0)
    assert totals[other, ITEM] == 1
    assert totals[one, ITEM] == Totals(
        destinations=2, delivered=1, reported=1, healthy=1, unknown=1
    )


def test_a_report_that_is_withheld_from_the_placements_workspace_is_no_delivery() -> None:
    placement = ITEM._replace(cluster="shop", name="p")
    taken = Report(delivered=True, reported=True, health=HEALTHY, withheld_from=("shop",))
    found = reference(
        {(placement, ITEM): True}, {(placement, "a"): destination("a")}, {(ITEM, "a"): taken},
        {"a": LIVE}, 1,
    )[placement, ITEM]  # fmt: skip
    assert isinstance(found, Totals)
    assert (found.delivered, found.unhealthy) == (0, 1)
    assert found.details[0].report.health.reason == "NameTaken"
