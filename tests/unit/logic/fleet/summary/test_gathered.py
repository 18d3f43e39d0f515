"""What tallies come to for a source, however they came to be."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.fleet.summary.gathered import gathered, united
from skerry.logic.fleet.summary.report import Report
from skerry.logic.fleet.summary.tally import Tally
from tests.kit.chain.aggregate_model import (
    CLUSTER,
    KINDS,
    There,
    detail,
    details,
    gathered_plainly,
    places,
    specs,
)


@st.composite
def moments(draw: st.DrawFn) -> list[list[There]]:
    kind = draw(st.sampled_from(KINDS))
    spec = draw(specs(kind))
    return draw(st.lists(places(kind, spec), min_size=1, max_size=4))


@given(moments())
def test_a_tally_that_was_kept_up_gathers_what_a_pass_over_all_destinations_does(
    history: list[list[There]],
) -> None:
    tally = Tally()
    before: dict[str, object] = {}
    for found in history:
        now = dict(details(found))
        for uid in before.keys() - now.keys():
            tally.remove(uid, before[uid])  # type: ignore[arg-type]
        for uid, each in now.items():
            if uid not in before:
                tally.add(uid, each)
            else:
                tally.replace(uid, before[uid], each)  # type: ignore[arg-type]
        before = dict(now)
        assert gathered(tally, CLUSTER) == gathered_plainly(found)


@given(moments(), st.data())
def test_placements_that_share_destinations_count_each_once(
    history: list[list[There]], data: st.DataObject
) -> None:
    found = details(history[0])
    parts = [
        data.draw(st.lists(st.sampled_from(found), unique_by=lambda each: each[0])) if found else []
        for _ in range(2)
    ]
    whole = united([Tally(parts[0]), Tally(parts[1]), Tally(found)])
    assert gathered(whole, CLUSTER) == gathered(Tally(found), CLUSTER)


def test_one_tally_is_taken_as_it_is() -> None:
    tally = Tally()
    assert united([tally]) is tally


def test_a_copy_of_another_workspaces_object_is_of_no_generation() -> None:
    there = There(True, 3, Report(delivered=True))
    mine, other = detail(0, there), detail(1, there)
    assert gathered(Tally([("a", mine), ("b", other)]), CLUSTER).generation == 3
    foreign = other._replace(report=replace(other.report, origin=("rival", 9)))
    assert gathered(Tally([("a", mine), ("b", foreign)]), CLUSTER).generation == 0
    silent = other._replace(report=replace(other.report, origin=("", 0)))
    assert gathered(Tally([("a", mine), ("b", silent)]), CLUSTER).generation == 0
