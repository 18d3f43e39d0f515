"""A destination counts as the same only while it pairs the same Location and SyncTarget."""

from __future__ import annotations

import pytest

from skerry.logic.fleet.placement.slice_guard import destination_entries

DESTINATION = {
    "cluster": "imw",
    "locationName": "eu",
    "syncTargetName": "us",
    "syncTargetUID": "0f6ac5a4",
}


def entries(**changed: str) -> frozenset[tuple[str, ...]]:
    return destination_entries({"destinations": [{**DESTINATION, **changed}]})


@pytest.mark.parametrize("field", sorted(DESTINATION))
def test_another_pairing_is_another_entry(field: str) -> None:
    assert not entries(**{field: "other"}) <= entries()


def test_what_says_nothing_of_the_pairing_changes_no_entry() -> None:
    assert entries(note="x") == entries()


def test_a_slice_without_destinations_has_no_entries() -> None:
    assert destination_entries({}) == destination_entries({"destinations": None}) == frozenset()
