"""Entries of managedFields: reading, writing, their order and their number."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.logic.machinery.apply.fieldset import FieldSet
from skerry.logic.machinery.apply.managed import (
    ANCIENT,
    APPLY,
    MAX_UPDATE_MANAGERS,
    UPDATE,
    Entry,
    Managed,
    capped,
    decoded,
    encoded,
    is_reset,
    manager_name,
    same_but_for_times,
)

FIELDS: FieldSet = {"f:data": {"f:a": {}}}


def raw_entry(**changes: Any) -> dict[str, Any]:
    entry = {
        "manager": "m",
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": FIELDS,
    }
    return {**entry, **changes}


def managed(*entries: Entry) -> Managed:
    return {entry.key: entry for entry in entries}


def test_entries_survive_reading_and_writing() -> None:
    entries = [raw_entry(), raw_entry(manager="n", subresource="status")]
    for trusted in (True, False):
        assert encoded(decoded(entries, trusted=trusted)) == entries
    assert list(encoded(decoded(entries, trusted=False))[1]) == [
        "manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource",
    ]  # fmt: skip


def test_entries_come_by_operation_then_time_then_manager() -> None:
    late, early = "2026-01-01T00:00:01Z", "2025-12-31T23:00:00-02:00"
    entries = managed(
        Entry("b", UPDATE, "v1", FIELDS, early),
        Entry("a", UPDATE, "v1", FIELDS, late),
        Entry("a", UPDATE, "v1", FIELDS, early, "status"),
        Entry("c", UPDATE, "v1", FIELDS, "nonsense"),
        Entry("z", APPLY, "v1", FIELDS, late),
    )
    order = [(entry["manager"], entry.get("time")) for entry in encoded(entries)]
    # 23:00 at two hours west of Greenwich is later than one second past midnight there.
    assert order == [("z", late), ("c", "nonsense"), ("a", late), ("a", early), ("b", early)]


def test_entries_that_own_nothing_are_not_written() -> None:
    assert encoded(managed(Entry("a", UPDATE, "v1", {}))) == []


def test_an_applier_has_one_entry_whatever_its_version() -> None:
    assert Entry("a", APPLY, "v1", {}).key == Entry("a", APPLY, "v2", {}).key
    assert Entry("a", UPDATE, "v1", {}).key != Entry("a", UPDATE, "v2", {}).key
    assert Entry("a", APPLY, "v1", {}).key != Entry("a", APPLY, "v1", {}, subresource="status").key


@pytest.mark.parametrize(
    ("entries", "why"),
    [
        ({}, "want a list"),
        ([1], "want an object"),
        ([raw_entry(operation="Patch")], "operation must be `Apply` or `Update`"),
        ([raw_entry(apiVersion="")], "apiVersion must not be empty"),
        ([raw_entry(fieldsType="")], "missing fieldsType in managed fields entry 0"),
        ([raw_entry(fieldsType="V2")], 'invalid fieldsType "V2" in managed fields entry 0'),
        ([raw_entry(manager=5)], "manager must be a string"),
        ([raw_entry(fieldsV1={"x": {}})], "path element"),
    ],
)
def test_what_is_no_entry_is_refused(entries: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        decoded(entries, trusted=False)


def test_no_entries_at_all_are_no_error() -> None:
    assert decoded(None, trusted=False) == {}


def test_resetting_is_an_empty_list_or_a_single_empty_entry() -> None:
    assert is_reset([])
    assert is_reset([{}])
    assert not is_reset(None)
    assert not is_reset([{}, {}])


def updaters(count: int, version: str = "v1") -> list[Entry]:
    return [
        Entry(f"m{i:02}", UPDATE, version, {f"f:x{i:02}": {}}, f"2026-01-01T00:00:{i:02}Z")
        for i in range(count)
    ]


def test_ten_update_managers_are_left_alone() -> None:
    entries = managed(*updaters(MAX_UPDATE_MANAGERS), Entry("a", APPLY, "v1", FIELDS))
    assert capped(entries) is entries


def test_the_oldest_update_managers_become_ancient() -> None:
    applier = Entry("a", APPLY, "v1", FIELDS)
    result = capped(managed(*updaters(12), applier))
    ancient = result[ANCIENT, UPDATE, "v1", ""]
    assert ancient.fields == {"f:x00": {}, "f:x01": {}, "f:x02": {}}
    assert ancient.time == "2026-01-01T00:00:02Z"
    assert len(result) == MAX_UPDATE_MANAGERS + 1
    assert applier in result.values()


def test_later_managers_join_the_ancient_ones() -> None:
    result = capped(managed(*updaters(11)))
    later = Entry("late", UPDATE, "v1", {"f:z": {}}, "2026-01-01T00:01:00Z")
    result = capped({**result, later.key: later})
    assert len(result) == MAX_UPDATE_MANAGERS
    assert set(result[ANCIENT, UPDATE, "v1", ""].fields) == {"f:x00", "f:x01", "f:x02"}


def test_ancient_entries_merge_with_an_older_one_too() -> None:
    ancient = Entry(ANCIENT, UPDATE, "v1", {"f:old": {}}, "2026-01-01T00:00:01Z")
    older = Entry("older", UPDATE, "v1", {"f:older": {}}, "2026-01-01T00:00:00Z")
    rest = [entry for entry in updaters(12) if entry.manager > "m02"]
    result = capped(managed(older, ancient, *rest))
    assert len(result) == MAX_UPDATE_MANAGERS
    assert result[ancient.key].fields == {"f:old": {}, "f:older": {}}


def test_versions_are_never_merged_with_each_other() -> None:
    result = capped(managed(*updaters(6, "v1"), *updaters(6, "v2")))
    assert len(result) == MAX_UPDATE_MANAGERS
    assert (ANCIENT, UPDATE, "v1", "") in result
    assert (ANCIENT, UPDATE, "v2", "") in result


def test_times_alone_make_no_difference() -> None:
    later = raw_entry(time="2026-02-02T00:00:00Z")
    assert same_but_for_times([raw_entry()], [later])
    assert not same_but_for_times([raw_entry()], [raw_entry(manager="x")])
    assert not same_but_for_times([raw_entry()], [])
    assert not same_but_for_times([raw_entry()], [raw_entry(fieldsV1={})])


@pytest.mark.parametrize(
    ("field_manager", "user_agent", "expected"),
    [
        ("me", "kubectl/v1.32", "me"),
        ("", "kubectl/v1.32.0 (linux/amd64) kubernetes/70d3cc9", "kubectl"),
        ("", "py\x00thon", "python"),
        ("", "", "unknown"),
        ("", "x" * 200, "x" * 128),
        ("", "ü" * 100, "ü" * 64),
    ],
)
def test_a_manager_is_named_by_itself_or_by_its_program(
    field_manager: str, user_agent: str, expected: str
) -> None:
    assert manager_name(field_manager, user_agent) == expected
