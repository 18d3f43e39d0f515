"""Destinations become slices and come back the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.edge import SOURCE_PLACEMENT, SliceOwner, placement_of_slice, slice_owner
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.placement.slices import (
    base_names,
    corrected_metadata,
    destinations_in,
    label_for,
    lean_slice,
    member,
    metadata_is_right,
    new_slice,
    page_names,
    page_number,
    slice_as_written,
    unpacked_members,
)

OWNER = SliceOwner("web", "uid-1")


def destinations(count: int) -> list[Destination]:
    return [Destination("c", f"l{n:05}", f"t{n:05}", f"u{n}") for n in range(count)]


def nobody(_: str) -> bool:
    return False


@given(st.integers(0, 20))
def test_what_a_slice_holds_comes_back_in_order(count: int) -> None:
    assert destinations_in(new_slice("web", OWNER, destinations(count))) == destinations(count)


@given(st.integers(0, 20))
def test_members_are_those_of_the_destinations_in_order(count: int) -> None:
    packed = lean_slice(new_slice("web", OWNER, destinations(count)))["members"]
    assert list(unpacked_members(packed)) == [member(each) for each in destinations(count)]
    assert len(packed) == 8 * count
    assert len(set(unpacked_members(packed))) == count


def test_the_own_name_comes_first_and_further_ones_are_numbered() -> None:
    assert page_names("web", (), 0, nobody) == ["web"]
    assert page_names("web", (), 2, nobody) == ["web", "web-2", "web-3"]


def test_names_of_other_placements_are_left_out() -> None:
    taken = {"web-2", "web-4"}
    found = page_names("web", ["web", "web-2", "web-7", "other"], 2, taken.__contains__)
    assert found == ["web", "web-3", "web-5", "web-7"]


def test_without_its_own_name_a_placement_begins_with_another() -> None:
    assert page_names("web-2", ["web-2"], 0, {"web-2"}.__contains__) == ["web-2-2"]
    assert page_names("web-2", ["web-2-5"], 0, {"web-2"}.__contains__) == ["web-2-5"]


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("web", 1),
        ("web-2", 2),
        ("web-31", 31),
        ("web-1", None),
        ("web-02", None),
        ("web-x", None),
        ("other-2", None),
        ("web-2-2", None),
        ("web-" + "9" * 30, None),
    ],
)
def test_the_number_of_a_page_is_in_its_name(name: str, number: int | None) -> None:
    assert page_number("web", name) == number


def test_long_names_give_names_and_labels_that_fit() -> None:
    name = "a" * 252
    (_, second) = page_names(name, (), 1, nobody)
    assert len(second) <= 253
    assert second.endswith("-2")
    assert page_number(name, second) == 2
    assert len(label_for(name)) <= 63
    assert label_for(name) != label_for("a" * 251)
    assert label_for("web") == "web"


def test_only_numbered_names_have_a_base() -> None:
    assert list(base_names("web-2")) == ["web"]
    for name in ("web", "web-1", "web-x", "-2", "web-02", "2"):
        assert list(base_names(name)) == []


def test_only_further_slices_are_labelled() -> None:
    assert "labels" not in new_slice("web", OWNER, ())["metadata"]
    assert new_slice("web-2", OWNER, ())["metadata"]["labels"] == {SOURCE_PLACEMENT: "web"}


def test_a_slice_belongs_to_its_owner_or_else_to_its_namesake() -> None:
    obj = new_slice("web-2", OWNER, ())
    assert placement_of_slice(obj) == "web"
    assert slice_owner(obj["metadata"]) == OWNER
    orphan = {"metadata": {"name": "other", "ownerReferences": [{"kind": "Pod", "name": "p"}]}}
    assert placement_of_slice(orphan) == "other"


def test_correcting_keeps_what_others_wrote() -> None:
    stranger = {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "u"}
    metadata = {
        "name": "web",
        "uid": "x",
        "resourceVersion": "5",
        "labels": {"mine": "1", SOURCE_PLACEMENT: "wrong"},
        "ownerReferences": [stranger],
        "managedFields": [],
    }
    assert not metadata_is_right(metadata, OWNER)
    corrected = corrected_metadata(metadata, OWNER)
    assert corrected == {
        "name": "web",
        "uid": "x",
        "resourceVersion": "5",
        "labels": {"mine": "1"},
        "ownerReferences": [OWNER.reference(), stranger],
    }
    assert metadata_is_right(corrected, OWNER)


def test_an_owner_of_the_same_name_but_another_life_is_wrong() -> None:
    metadata = new_slice("web", SliceOwner("web", "uid-0"), ())["metadata"]
    assert not metadata_is_right(metadata, OWNER)


def test_what_is_cached_of_a_slice_names_its_members_without_holding_them() -> None:
    obj = new_slice("web", OWNER, destinations(3))
    obj["metadata"]["managedFields"] = [{}]
    lean = lean_slice(obj)
    assert lean.keys() == {"metadata", "members"}
    assert [*unpacked_members(lean["members"])] == [*map(member, destinations(3))]
    assert "managedFields" not in lean["metadata"]


def test_an_answer_without_destinations_is_kept_with_those_that_were_sent() -> None:
    sent = new_slice("web", OWNER, destinations(3))
    answer = {"metadata": {**sent["metadata"], "resourceVersion": "7"}}
    kept = slice_as_written(sent, answer)
    assert kept["members"] == lean_slice(sent)["members"]
    assert kept["metadata"]["resourceVersion"] == "7"


def test_an_entry_that_somebody_else_wrote_may_lack_names() -> None:
    obj = new_slice("web", OWNER, destinations(2))
    del obj["destinations"][1]["syncTargetUID"]
    first, second = destinations(2)
    partial = second._replace(uid="")
    assert destinations_in(obj) == [first, partial]
    assert [*unpacked_members(lean_slice(obj)["members"])] == [member(first), member(partial)]
