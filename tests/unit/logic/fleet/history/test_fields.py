"""Each field of a record is of its type and within its limits, or the record is not read."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.objects import Object
from skerry.logic.fleet.history.fields import check_fields, named_in, time_of, whole_number
from skerry.logic.fleet.history.packing import NUMBER_LIMIT, SLOT_LIMIT, Standing, packed_state
from tests.kit.decisions import destination

REFUSED = (TypeError, ValueError, KeyError)
STANDINGS = (Standing(destination(1), 1, 3), Standing(destination(2), 2, 3))


def record(**fields: Any) -> Object:
    placement = {"name": "web", "uid": "u", "generation": 2}
    return {"placement": placement, "by": {"controller": "edge-scheduler"}, **fields}


def named(number: int, **fields: Any) -> Object:
    found = destination(number)
    return {
        "cluster": found.cluster, "location": found.location, "syncTarget": found.sync_target,
        "uid": found.uid, **fields,
    }  # fmt: skip


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"reason": {"code": "Selected", "text": "it matches"}, "previous": "abc"},
        {"cause": {"kind": "Rollout", "name": "web"}, "causeCount": 1, "from": 1, "to": 2},
        {"otherCauses": [{"user": "ann"}], "chains": [{"controller": "a", "digest": "b"}]},
    ],
)
def test_a_record_as_it_should_be_is_read(fields: Object) -> None:
    check_fields(record(**fields))


@pytest.mark.parametrize(
    "fields",
    [
        {"placement": {"name": "web"}},
        {"placement": {"name": "web", "uid": 7}},
        {"placement": {"name": "web", "uid": "u", "generation": -1}},
        {"placement": {"name": "web", "uid": "u", "generation": NUMBER_LIMIT}},
        {"placement": ["web"]},
        {"by": {}},
        {"by": None},
        {"reason": {"code": 1}},
        {"object": {"name": None}},
        {"cause": "ann"},
        {"otherCauses": {"user": "ann"}},
        {"otherCauses": ["ann"]},
        {"chains": [{"controller": "a"}]},
        {"previous": 1},
        {"to": True},
        {"to": "2"},
        {"from": 1.5},
        {"causeCount": -1},
    ],
)
def test_a_field_that_readers_would_stumble_over_is_refused(fields: Object) -> None:
    with pytest.raises(REFUSED):
        check_fields(record(**fields))


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "noon", ""])
def test_a_time_that_is_none_in_some_zone_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        time_of({"time": text})


def test_a_time_is_read() -> None:
    assert time_of({"time": "2026-11-01T10:00:00Z"}).hour == 10


def test_a_whole_number_has_a_default_and_limits() -> None:
    assert whole_number({}, "parts", 1, minimum=1) == 1
    assert whole_number({"parts": 3}, "parts", 1) == 3
    for wrong in (0, True, "3", None, 2.0, NUMBER_LIMIT):
        with pytest.raises(ValueError, match="parts: found"):
            whole_number({"parts": wrong}, "parts", 1, minimum=1)


def test_destinations_are_read_one_by_one_or_packed_and_have_the_revision_of_the_record() -> None:
    one_by_one = {"named": [named(1, slot=1), named(2, slot=2)]}
    assert named_in(one_by_one, "Joined", 3) == STANDINGS
    packed = {"state": packed_state(STANDINGS)}
    assert named_in(packed, "Joined", 3) == STANDINGS
    assert named_in(packed, "Checkpoint", 3) == (), "its state is read by whoever folds"
    assert named_in({}, "Joined", None) == ()


@pytest.mark.parametrize("slot", [-1, SLOT_LIMIT, 1 << 40, True, "1", 1.5])
def test_a_slot_that_no_placement_comes_to_is_refused(slot: object) -> None:
    with pytest.raises(REFUSED):
        named_in({"named": [named(1, slot=slot)]}, "Joined", None)


@pytest.mark.parametrize("member", ["cluster", "location", "syncTarget", "uid"])
def test_a_destination_without_all_of_its_names_is_refused(member: str) -> None:
    for wrong in (None, 7, ["a"]):
        with pytest.raises(REFUSED):
            named_in({"named": [named(1, **{member: wrong})]}, "Joined", None)
    missing = {name: value for name, value in named(1).items() if name != member}
    with pytest.raises(KeyError):
        named_in({"named": [missing]}, "Joined", None)
