"""Destinations become slices and come back the same."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.api.edge import SOURCE_PLACEMENT, SliceOwner, placement_of_slice, slice_owner
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.placement.slices import (
    DESTINATIONS_PER_SLICE,
    WantedSlice,
    base_names,
    corrected_metadata,
    destinations_in,
    digest_of,
    label_for,
    lean_slice,
    metadata_is_right,
    new_slice,
    slice_names,
    wanted_slices,
)

OWNER = SliceOwner("web", "uid-1")


def destinations(count: int) -> list[Destination]:
    return [Destination("c", f"l{n:05}", f"t{n:05}", f"u{n}") for n in range(count)]


def wanted(name: str = "web", count: int = 1) -> WantedSlice:
    return wanted_slices(name, destinations(count))[0]


def test_a_placement_without_destinations_has_one_empty_slice() -> None:
    (only,) = wanted_slices("web", [])
    assert (only.name, only.destinations, dict(only.labels)) == ("web", [], {})


def test_five_thousand_destinations_fit_one_slice_and_one_more_does_not() -> None:
    assert [s.name for s in wanted_slices("web", destinations(DESTINATIONS_PER_SLICE))] == ["web"]
    first, second = wanted_slices("web", destinations(DESTINATIONS_PER_SLICE + 1))
    assert (first.name, len(first.destinations)) == ("web", 5000)
    assert (second.name, len(second.destinations)) == ("web-2", 1)
    assert second.labels == {SOURCE_PLACEMENT: "web"}
    assert not first.labels


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 3 * DESTINATIONS_PER_SLICE))
def test_slices_read_together_give_every_destination_in_order(count: int) -> None:
    found = [
        each
        for piece in wanted_slices("web", destinations(count))
        for each in destinations_in(new_slice(piece, OWNER))
    ]
    assert found == destinations(count)


def test_names_of_other_placements_are_left_out() -> None:
    assert slice_names("web", 4, {"web-2", "web-4"}) == ["web", "web-3", "web-5", "web-6"]


def test_long_names_give_names_and_labels_that_fit() -> None:
    name = "a" * 252
    (_, second) = slice_names(name, 2, frozenset())
    assert len(second) <= 253
    assert second.endswith("-2")
    assert len(label_for(name)) <= 63
    assert label_for(name) != label_for("a" * 251)
    assert label_for("web") == "web"


def test_only_numbered_names_have_a_base() -> None:
    assert list(base_names("web-2")) == ["web"]
    for name in ("web", "web-1", "web-x", "-2", "web-02", "2"):
        assert list(base_names(name)) == []


@given(st.lists(st.dictionaries(st.sampled_from("ab"), st.text(max_size=3)), max_size=4))
def test_digests_are_equal_for_equal_lists_only(items: list[Any]) -> None:
    assert digest_of(items) == digest_of([dict(reversed(item.items())) for item in items])
    assert digest_of(items) != digest_of([*items, {"more": "x"}])


def test_a_slice_belongs_to_its_owner_or_else_to_its_namesake() -> None:
    obj = new_slice(wanted(), OWNER)
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
    assert not metadata_is_right(metadata, wanted(), OWNER)
    corrected = corrected_metadata(metadata, wanted(), OWNER)
    assert corrected == {
        "name": "web",
        "uid": "x",
        "resourceVersion": "5",
        "labels": {"mine": "1"},
        "ownerReferences": [OWNER.reference(), stranger],
    }
    assert metadata_is_right(corrected, wanted(), OWNER)


def test_an_owner_of_the_same_name_but_another_life_is_wrong() -> None:
    metadata = new_slice(wanted(), SliceOwner("web", "uid-0"))["metadata"]
    assert not metadata_is_right(metadata, wanted(), OWNER)


def test_what_is_cached_of_a_slice_tells_its_content_without_holding_it() -> None:
    obj = new_slice(wanted(count=3), OWNER)
    lean = lean_slice(obj)
    assert lean["digest"] == wanted(count=3).digest
    assert "destinations" not in lean
    assert slice_owner(lean["metadata"]) == OWNER
