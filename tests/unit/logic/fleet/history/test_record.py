"""A record is named for what was decided, and says it again when it is read."""

from __future__ import annotations

import copy
from datetime import timedelta

import pytest

from skerry.api.kcp import edge
from skerry.logic.fleet.history.packing import Corrupt, Standing
from skerry.logic.fleet.history.record import (
    Cause,
    Decision,
    Order,
    Reason,
    in_order,
    name_for,
    order_of,
    read,
    records_of,
)
from skerry.logic.machinery import crd
from tests.kit.decisions import ANN, MAKER, NOW, SUBJECT, destination, random_history

_KIND = next(d for d in edge.definitions() if d["spec"]["names"]["kind"] == "DecisionRecord")
[_SERVED] = crd.resources_of(_KIND)


def joined(count: int, **more: object) -> Decision:
    standings = tuple(Standing(destination(n)) for n in range(count))
    return Decision("Joined", standings, Reason("Selected"), (ANN,), **more)  # type: ignore[arg-type]


def made(*decisions: Decision, follows: int = 7, **more: object) -> list[dict[str, object]]:
    given = {"head": None, "now": NOW, **more}
    return records_of(decisions, SUBJECT, MAKER, follows=follows, **given)  # type: ignore[arg-type]


def test_a_repeated_decision_has_the_same_name_whenever_it_is_repeated() -> None:
    [first] = made(joined(3))
    [again] = made(joined(3), now=NOW + timedelta(hours=1))
    [other] = made(joined(4))
    assert first["metadata"] == again["metadata"]
    assert first["metadata"] != other["metadata"]


def test_every_record_of_a_history_is_one_that_the_server_accepts() -> None:
    for seed in range(20):
        for obj in random_history(seed).records:
            assert _SERVED.validate_create(copy.deepcopy(obj)) == []


def test_many_newcomers_come_in_pages_that_a_store_takes() -> None:
    found = made(joined(10_007))
    assert [each["destinations"]["count"] for each in found] == [5000, 5000, 7]  # type: ignore[index]
    assert [each["page"] for each in found] == [{"number": n, "of": 3} for n in (1, 2, 3)]
    assert found == in_order(reversed(found))
    everybody = [each for obj in found for each in read(obj).named]
    assert everybody == sorted(Standing(destination(n)) for n in range(10_007))


@pytest.mark.parametrize(("count", "field"), [(20, "named"), (21, "state")])
def test_newcomers_are_named_in_words_if_they_are_few(count: int, field: str) -> None:
    standings = tuple(Standing(destination(n), n + 1, 4) for n in range(count))
    [obj] = made(Decision("Joined", standings, Reason("Selected"), to=4))
    assert {"named", "state"} & {*obj["destinations"]} == {field}  # type: ignore[misc]
    assert _SERVED.validate_create(copy.deepcopy(obj)) == []
    assert read(obj).named == tuple(sorted(standings))


def test_who_gets_a_slot_can_be_resolved_however_many_they_are() -> None:
    standings = tuple(Standing(destination(n), n + 1, 4) for n in range(30))
    [obj] = made(Decision("Revised", standings, Reason("SlotAssigned"), to=4))
    found = read(obj)
    assert found.named == tuple(sorted(standings))
    assert found.slots is not None
    assert [*found.slots] == [*range(1, 31)]


def test_many_causes_are_counted() -> None:
    causes = tuple(Cause("Location", f"l{n}") for n in range(30))
    [obj] = made(Decision("Left", (), Reason("NotSelected"), causes, 99))
    assert obj["cause"] == {"kind": "Location", "name": "l0"}
    assert len(obj["otherCauses"]) == 19  # type: ignore[arg-type]
    assert obj["causeCount"] == 99


def test_names_sort_in_the_order_of_decisions_and_checkpoints_behind_what_they_stand_for() -> None:
    orders = [
        Order(7, 0, 0, "ffffffff"),
        Order(7, 0, 1, "00000000"),
        Order(7, 0, 2, "00000000"),
        Order(7, 1, 0, "00000000"),
        Order(10, 0, 0, "00000000"),
    ]
    names = [name_for("web", each) for each in orders]
    assert names == sorted(names)
    assert [order_of(name) for name in names] == orders


@pytest.mark.parametrize("name", ["web", "web-1-2-x", "web-000000000007-0000-0000000g", ""])
def test_other_names_are_no_records(name: str) -> None:
    assert order_of(name) is None


def test_a_long_placement_name_is_cut() -> None:
    assert len(name_for("w" * 253, Order(7, 0, 0, "00000000"))) <= 253


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("change",), "Left"),
        (("destinations", "count"), 5),
        (("destinations", "keys"), "AAAA"),
        (("placement", "uid"), "other"),
        (("metadata", "name"), "web-000000000007-0000-00000000"),
    ],
)
def test_a_record_that_is_not_what_it_is_named_for_is_corrupt(
    path: tuple[str, ...], value: object
) -> None:
    [obj] = made(joined(3))
    inner: dict[str, object] = obj
    for step in path[:-1]:
        inner = inner[step]  # type: ignore[assignment]
    inner[path[-1]] = value
    with pytest.raises(Corrupt, match=str(obj["metadata"]["name"])):  # type: ignore[index]
        read(obj)
