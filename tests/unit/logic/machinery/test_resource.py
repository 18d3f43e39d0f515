"""A type as the engine knows it: where it is stored, and where its rules come from."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skerry.api.kinds import GroupVersionKind, ResourceInfo, Subresource
from skerry.api.schema import ANY
from skerry.logic.machinery.resource import Family, Resource, as_is

KIND = GroupVersionKind("x.io", "v1", "Widget")


def resource(identity: str = "", storage_group: str | None = None, *below: str) -> Resource:
    info = ResourceInfo(
        "x.io", "v1", "widgets", "Widget", True,
        subresources=tuple(Subresource(name, KIND, ("get",)) for name in below),
    )  # fmt: skip
    return Resource(info, ANY, "v1", identity=identity, storage_group=storage_group)


@pytest.mark.parametrize(("below", "has"), [((), False), (("scale",), False), (("status",), True)])
def test_a_status_is_a_subresource_of_that_name(below: tuple[str, ...], has: bool) -> None:
    assert resource("", None, *below).has_status is has


def test_a_type_is_stored_by_its_own_group_unless_it_says() -> None:
    assert resource().stored_group == "x.io"
    # The core group has an empty name, which is a group all the same.
    assert resource(storage_group="").stored_group == ""


def test_types_of_two_exports_are_kept_apart() -> None:
    assert resource().storage_resource == "widgets"
    assert resource("abc").storage_resource == "widgets:abc"
    assert resource("abc").storage_resource != resource("abd").storage_resource


def test_where_a_type_is_stored_follows_a_copy_of_it() -> None:
    """It is worked out once for each; a copy must not keep what its original has."""
    moved = replace(resource("abc", "y.io"), identity="abd", storage_group=None)
    assert (moved.stored_group, moved.storage_resource) == ("x.io", "widgets:abd")
    assert resource("abc") == replace(resource(), identity="abc")


def test_a_type_without_rules_does_nothing_to_its_objects() -> None:
    found, obj = resource(), {"spec": {"a": 1}}
    found.default(obj)
    found.prepare_create(obj)
    found.prepare_update(obj, {})
    assert obj == {"spec": {"a": 1}}
    assert found.validate_create(obj) == found.validate_update(obj, {}) == []
    assert found.validate_status(obj, {}) == []
    assert list(found.warnings(obj)) == list(found.check_name("any/thing")) == []
    assert found.grace_seconds(obj) is None
    assert as_is(found) is found


def test_families_of_equal_content_have_equal_keys() -> None:
    one, same = Family("crd", {"a": 1, "c": "b"}), Family("crd", {"a": 1, "c": "b"})
    assert one.key == same.key
    assert one.key.startswith("crd:")
    assert one.key != Family("crd", {"a": 2}).key
    assert one.key != Family("other", {"a": 1, "c": "b"}).key
    assert one.text is one.text
