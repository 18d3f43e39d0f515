"""Parts of an object that may be anything, and resourceVersions as numbers."""

from __future__ import annotations

import pytest

from skerry.api.objects import revision_of, section_of, section_of_any


@pytest.mark.parametrize(
    ("version", "revision"), [("12", 12), (12, 12), ("", 0), (None, 0), ("x1", 0), ("-1", 0)]
)
def test_what_is_no_number_is_older_than_everything(version: object, revision: int) -> None:
    assert revision_of(version) == revision


@pytest.mark.parametrize("found", [None, [], "text", 1])
def test_what_is_no_mapping_is_an_empty_section(found: object) -> None:
    obj = {"status": {"a": 1}, "spec": found}
    assert section_of(obj, "status") == section_of_any(obj, "status") == {"a": 1}
    assert section_of(obj, "spec") == section_of_any(obj, "spec") == {}
    assert section_of(obj, "absent") == section_of_any(found, "absent") == {}
