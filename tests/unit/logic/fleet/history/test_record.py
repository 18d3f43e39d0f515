"""A record is named for what was decided, and says it again when it is read."""

from __future__ import annotations

import copy
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.kcp import edge
from skerry.logic.fleet.history.packing import Corrupt, Standing
from skerry.logic.fleet.history.record import (
    MAX_READABLE,
    Cause,
    Decision,
    Head,
    Item,
    Order,
    Place,
    Reason,
    _content,
    checkpoint_of,
    digest,
    head_of,
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


def standings(count: int, *, slots: bool = False) -> tuple[Standing, ...]:
    return tuple(
        Standing(destination(n), n + 1, 4) if slots else Standing(destination(n))
        for n in range(count)
    )


def chained(*found: dict[str, Any]) -> bool:
    """Tell whether each record has the digest of the one before."""
    return all(after.get("previous") == digest(before) for before, after in pairwise(found))


def test_records_are_chained_to_the_head_and_to_each_other() -> None:
    first = made(joined(1), joined(2))
    assert "previous" not in first[0]
    assert chained(*first)
    head = head_of(first[-1])
    later = made(joined(3), head=head, follows=9)
    assert chained(*first, *later)


@pytest.mark.parametrize(
    ("follows", "order"),
    [
        # Of a later revision the counter begins anew; of the same, or an older one, it goes on.
        (8, (8, 0)),
        (7, (7, 4)),
        (5, (7, 4)),
    ],
)
def test_a_record_sorts_behind_the_head_whatever_it_follows_from(
    follows: int, order: tuple[int, int]
) -> None:
    head = Head(Order(7, 3, 0, "ffffffff"), "ab")
    [obj] = made(joined(1), head=head, follows=follows)
    found = order_of(str(obj["metadata"]["name"]))  # type: ignore[index]
    assert found is not None
    assert (found.revision, found.counter) == order
    assert obj["previous"] == "ab"


def test_what_is_no_part_of_a_decision_is_no_part_of_its_name() -> None:
    [plain] = made(joined(2))
    for more in ({"now": NOW + timedelta(days=1)}, {"store": "other"}):
        [other] = made(joined(2), **more)
        assert other["metadata"] == plain["metadata"]
        assert digest(other) != digest(plain)
    [caused] = made(Decision("Joined", standings(2), Reason("Granted"), (Cause("X", "y"),)))
    assert caused["metadata"] == plain["metadata"]


@pytest.mark.parametrize(
    "more",
    [
        {"start": 3},
        {"to": 4},
        {"item": Item("apps", "deployments", "shop", "web")},
        {"everybody": 3},
        {"count": 9},
    ],
)
def test_whatever_was_decided_is_part_of_the_name(more: dict[str, Any]) -> None:
    [plain] = made(Decision("Left", (), Reason("NotSelected")))
    [other] = made(Decision("Left", (), Reason("NotSelected"), **more))
    assert plain["metadata"] != other["metadata"]


def test_what_a_record_says_is_read_as_it_was_decided() -> None:
    item = Item("apps", "deployments", "shop", "web", "aa", "bb")
    decision = Decision(
        "Withheld", (), Reason("Cut", "Ann edited it"), (ANN,), start=3, to=4, item=item, count=12
    )
    [obj] = made(decision)
    found = read(obj)
    assert (found.change, found.start, found.to, found.count) == ("Withheld", 3, 4, 12)
    assert (found.uid, found.order, found.page, found.pages) == (
        "uid-web",
        order_of(found.name),
        1,
        1,
    )
    assert (found.slots, list(found.keys), found.named, found.everybody) == (None, [], (), False)
    assert obj["object"] == {
        "group": "apps", "resource": "deployments", "namespace": "shop", "name": "web",
        "from": "aa", "to": "bb",
    }  # fmt: skip
    assert obj["reason"] == {"code": "Cut", "text": "Ann edited it"}
    assert obj["by"] == {"controller": "edge-scheduler", "version": "1.0"}
    assert obj["cause"]["user"] == "ann"  # type: ignore[index]


def test_what_is_empty_of_an_item_or_a_cause_is_not_written() -> None:
    item = Item("", "configmaps", "shop", "page", to="bb")
    [obj] = made(Decision("Withheld", (), Reason("Cut"), (Cause("ConfigMap", "page"),), item=item))
    assert obj["object"] == {
        "resource": "configmaps",
        "namespace": "shop",
        "name": "page",
        "to": "bb",
    }
    assert obj["cause"] == {"kind": "ConfigMap", "name": "page"}
    assert not {"from", "to", "page", "store", "otherCauses", "causeCount"} & obj.keys()


def test_a_revision_of_zero_is_written_and_read() -> None:
    [obj] = made(Decision("Revised", standings(1, slots=True), Reason("WaveOpened"), start=0, to=0))
    assert (obj["from"], obj["to"]) == (0, 0)
    assert (read(obj).start, read(obj).to) == (0, 0)


def test_everybody_is_a_number_and_no_list() -> None:
    [obj] = made(Decision("Revised", standings(3), Reason("WaveOpened"), everybody=812))
    assert obj["destinations"] == {"count": 812, "all": True}
    found = read(obj)
    assert (found.everybody, found.count, found.named) == (True, 812, ())


@pytest.mark.parametrize("count", [1, MAX_READABLE, MAX_READABLE + 1, 200])
@pytest.mark.parametrize("slots", [False, True])
def test_who_left_is_known_by_slot_or_key_however_many_they_are(count: int, slots: bool) -> None:
    [obj] = made(Decision("Left", standings(count, slots=slots), Reason("NotSelected")))
    found = read(obj)
    assert found.count == count
    assert len(found.slots or ()) == (count if slots else 0)
    assert len(found.keys) == (0 if slots else count)
    assert len(found.named) == (count if count <= MAX_READABLE else 0)


def test_those_with_a_slot_and_those_without_are_kept_apart_in_one_record() -> None:
    both = (*standings(2, slots=True), *(Standing(destination(n)) for n in (7, 8, 9)))
    [obj] = made(Decision("Left", both, Reason("NotSelected")))
    found = read(obj)
    assert (list(found.slots or ()), len(found.keys), found.count) == ([1, 2], 3, 5)
    assert ["slot" in each for each in obj["destinations"]["named"]] == [True, True, *[False] * 3]  # type: ignore[index]


def test_slots_that_were_known_before_need_no_names() -> None:
    [fresh] = made(Decision("Revised", standings(30, slots=True), Reason("SlotAssigned"), to=4))
    [known] = made(
        Decision("Revised", standings(30, slots=True), Reason("WaveOpened"), start=3, to=4)
    )
    assert "state" in fresh["destinations"]  # type: ignore[operator]
    assert "state" not in known["destinations"]  # type: ignore[operator]
    assert len(read(fresh).named) == 30
    assert read(known).named == ()


def test_a_long_text_is_cut_where_a_field_ends() -> None:
    cause = Cause(
        "Location", "l", change="x" * 9999, user="y" * 9999, audit_id="z" * 99, manager="w" * 999
    )
    [obj] = made(Decision("Left", (), Reason("NotSelected", "t" * 9999), (cause,)))
    assert len(obj["reason"]["text"]) == 1024  # type: ignore[index]
    lengths = {name: len(obj["cause"][name]) for name in ("change", "user", "auditID", "manager")}  # type: ignore[index]
    assert lengths == {"change": 1024, "user": 1024, "auditID": 64, "manager": 128}


@pytest.mark.parametrize(
    ("causes", "counted", "written"),
    [(1, 0, None), (1, 1, None), (1, 2, 2), (2, 2, None), (20, 20, None), (21, 0, 21), (2, 9, 9)],
)
def test_causes_are_counted_only_where_not_all_are_there(
    causes: int, counted: int, written: int | None
) -> None:
    given_ = tuple(Cause("Location", f"l{n}") for n in range(causes))
    [obj] = made(Decision("Left", (), Reason("NotSelected"), given_, counted))
    assert obj.get("causeCount") == written


AFTER = Order(7, 3, 0, "ffffffff")


def checkpoint(count: int, **chains: str) -> list[dict[str, Any]]:
    return checkpoint_of(standings(count), SUBJECT, MAKER, after=AFTER, time=NOW, chains=chains)


def test_a_checkpoint_stands_behind_what_it_is_for_and_before_whatever_follows() -> None:
    pages = checkpoint(5001, scheduler="d1", translator="d2")
    assert [obj["page"] for obj in pages] == [{"number": 1, "of": 2}, {"number": 2, "of": 2}]
    names = [obj["metadata"]["name"] for obj in pages]
    before, behind = name_for("web", AFTER), name_for("web", Order(7, 4, 0, "00000000"))
    assert sorted([behind, *names, before]) == [before, *names, behind]
    assert pages[0]["chains"] == [
        {"controller": "scheduler", "digest": "d1"}, {"controller": "translator", "digest": "d2"},
    ]  # fmt: skip


def test_a_checkpoint_has_everybody_and_names_nobody() -> None:
    [obj] = checkpoint(3)
    found = read(obj)
    assert found.standings == list(standings(3))
    assert (found.named, found.slots, list(found.keys), found.count) == ((), None, [], 3)
    [nobody] = checkpoint(0)
    assert read(nobody).standings == []


def test_all_pages_of_a_checkpoint_have_one_place() -> None:
    folded = [read(obj).place for obj in checkpoint(5001)]
    assert folded == [Place("uid-web", 7, 3, True)] * 2
    begins = Decision("Checkpoint", standings(5001), Reason("Begins"))
    assert [read(obj).place for obj in made(begins)] == [Place("uid-web", 7, 0, False)] * 2


def test_a_digest_is_of_everything_that_never_changes_and_of_nothing_else() -> None:
    [obj] = made(joined(2))
    noted = copy.deepcopy(obj)
    noted["metadata"]["resourceVersion"] = "9"  # type: ignore[index]
    noted["apiVersion"] = "edge.kcp.io/v2"
    assert digest(noted) == digest(obj)
    for name in ("time", "reason", "by", "cause"):
        other = {key: value for key, value in obj.items() if key != name}
        assert digest(other) != digest(obj), name
    renamed = {**obj, "metadata": {"name": "other"}}
    assert digest(renamed) != digest(obj)


def test_the_order_of_decisions_is_that_of_their_numbers_and_strangers_come_last() -> None:
    orders = [Order(9, 0), Order(10, 0), Order(10, 2), Order(10, 10), Order(10**15, 0)]
    objects = [
        {"metadata": {"name": name_for("web", each._replace(content="0" * 8))}} for each in orders
    ]
    stranger = {"metadata": {"name": "a-stranger"}}
    assert in_order([stranger, *reversed(objects)]) == [*objects, stranger]
    assert head_of(stranger) is None


@pytest.mark.parametrize("placement", ["w-202611182107-0001", "w-000000000007-0000-z001"])
def test_a_placement_may_be_called_as_if_it_were_a_record(placement: str) -> None:
    [obj] = records_of(
        [joined(1)], SUBJECT._replace(name=placement), MAKER, follows=7, head=None, now=NOW
    )
    assert read(obj).order == Order(7, 0, 0, read(obj).order.content)


@given(
    st.integers(0, 999) | st.integers(0, 10**20 - 1),
    st.integers(0, 99) | st.integers(0, 10**9 - 1),
    st.integers(0, 999),
    st.from_regex("[0-9a-f]{8}", fullmatch=True),
    # Some are called as records are, as far as a name may say so.
    st.sampled_from(
        ["web", "w" * 253, "w-202611182107-0001", "w-000000000007-0000-z001", "7-000000000007"]
    ),
)  # fmt: skip
def test_every_name_says_its_order(
    revision: int, counter: int, page: int, content: str, placement: str
) -> None:
    order = Order(revision, counter, page, content)
    name = name_for(placement, order)
    assert order_of(name) == order
    assert len(name) <= 253


@pytest.mark.parametrize(
    "change",
    [
        {"change": "Exploded"},
        {"time": "yesterday"},
        {"placement": {"uid": "uid-web"}, "time": None},
        {"destinations": {"count": 3, "named": [{"cluster": "inv"}]}},
        {"destinations": {"count": 3, "state": "AAAA"}},
        {"destinations": ["l1"]},
        {"placement": None},
    ],
)
def test_a_record_that_is_named_right_and_says_nonsense_is_corrupt(change: dict[str, Any]) -> None:
    [obj] = made(joined(3))
    order = order_of(str(obj["metadata"]["name"]))  # type: ignore[index]
    assert order is not None
    body = {**obj, **change}
    name = name_for("web", order)
    try:
        content = _content(body)
    except (KeyError, TypeError):
        content = order.content
    body["metadata"] = {"name": name.removesuffix(order.content) + content}
    with pytest.raises(Corrupt, match="web-000000000007-0000-"):
        read(body)
