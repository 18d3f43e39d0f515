"""What a manager no longer applies goes, unless somebody else owns it."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from skerry.api.objects import Object
from skerry.api.schema import Schema
from skerry.logic.machinery.apply.fieldset import FieldSet
from skerry.logic.machinery.apply.managed import Entry
from skerry.logic.machinery.apply.prune import pruned, with_declared

SCHEMA = Schema(
    {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "a": {"type": "string"},
                    "b": {"type": "string"},
                    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                    "list": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["name"],
                        "items": {
                            "type": "object",
                            "properties": {"name": {"type": "string"}, "n": {"type": "integer"}},
                        },
                    },
                },
            }
        },
    }
)
ITEM = 'k:{"name":"x"}'


def entry(manager: str, fields: FieldSet, version: str = "v1") -> Entry:
    return Entry(manager, "Apply", version, fields)


def after(merged: Object, last: FieldSet, *owners: FieldSet) -> Object:
    """Return *merged* once its manager, who owned *last*, has applied without it."""
    before = deepcopy(merged)
    found = pruned(
        merged,
        entry("me", last),
        [entry(f"owner-{n}", fields) for n, fields in enumerate(owners)],
        lambda obj, _: obj,
        lambda _: SCHEMA,
    )
    assert merged == before, "what was merged is not changed in place"
    return found.object


def spec(**fields: Any) -> Object:
    return {"apiVersion": "v1", "spec": fields}


def test_what_nobody_else_owns_goes() -> None:
    other: FieldSet = {"f:spec": {"f:b": {}}}
    assert after(spec(a="1", b="2"), {"f:spec": {"f:a": {}}}, other) == spec(b="2")


def test_what_another_owns_stays() -> None:
    mine: FieldSet = {"f:spec": {"f:a": {}, "f:b": {}}}
    assert after(spec(a="1", b="2"), mine, {"f:spec": {"f:a": {}}}) == spec(a="1")


def test_what_is_applied_again_stays() -> None:
    last: FieldSet = {"f:spec": {"f:a": {}}}
    merged = spec(a="1")
    assert after(merged, last, last) is merged


def test_what_was_never_owned_goes_with_what_holds_it() -> None:
    assert after(spec(a="1", b="2"), {"f:spec": {"f:a": {}}}) == {"apiVersion": "v1"}


def test_a_container_left_empty_goes_with_its_content() -> None:
    assert after(spec(a="1"), {"f:spec": {"f:a": {}}}) == {"apiVersion": "v1"}


def test_an_item_of_a_list_goes_and_takes_along_what_nobody_owns() -> None:
    merged = spec(list=[{"name": "x", "n": 1}, {"name": "y"}])
    mine: FieldSet = {"f:spec": {"f:list": {ITEM: {".": {}, "f:name": {}, "f:n": {}}}}}
    other: FieldSet = {"f:spec": {"f:list": {'k:{"name":"y"}': {".": {}, "f:name": {}}}}}
    assert after(merged, mine, other) == spec(list=[{"name": "y"}])


def test_an_item_that_another_applies_too_stays() -> None:
    merged = spec(list=[{"name": "x", "n": 1}])
    mine: FieldSet = {"f:spec": {"f:list": {ITEM: {".": {}, "f:name": {}}}}}
    other: FieldSet = {"f:spec": {"f:list": {ITEM: {".": {}, "f:name": {}, "f:n": {}}}}}
    assert after(merged, mine, other) == spec(list=[{"name": "x", "n": 1}])


def test_an_item_into_which_another_only_wrote_goes() -> None:
    # As in Kubernetes: who changes a field of an item does not own the item.
    merged = spec(list=[{"name": "x", "n": 1}], b="2")
    mine: FieldSet = {"f:spec": {"f:list": {ITEM: {".": {}, "f:name": {}}}}}
    other: FieldSet = {"f:spec": {"f:list": {ITEM: {"f:n": {}}}, "f:b": {}}}
    assert after(merged, mine, other) == spec(b="2")


def test_a_version_that_is_served_no_more_prunes_nothing() -> None:
    merged = spec(a="1")
    last = entry("me", {"f:spec": {"f:a": {}}}, "gone")
    found = pruned(
        merged, last, [], lambda obj, version: None if version == "gone" else obj, lambda _: SCHEMA
    )
    assert found.object is merged
    assert found.seen is merged


def test_ownership_sees_what_was_only_emptied() -> None:
    merged = spec(labels={"a": "1"}, b="2")
    last = entry("me", {"f:spec": {"f:labels": {"f:a": {}}}})
    other = entry("other", {"f:spec": {"f:labels": {".": {}}, "f:b": {}}})
    found = pruned(merged, last, [other], lambda obj, _: obj, lambda _: SCHEMA)
    assert found.object["spec"]["b"] == "2"
    assert "labels" in found.seen["spec"]


def test_removal_is_made_at_the_version_that_was_applied() -> None:
    def at(obj: Object, version: str) -> Object:
        """Version v2 calls ``a`` by the name of ``b``."""
        fields = dict(obj.get("spec") or {})
        if obj["apiVersion"] != version:
            old, new = ("a", "b") if version == "v2" else ("b", "a")
            if old in fields:
                fields[new] = fields.pop(old)
        return {"apiVersion": version, "spec": fields}

    merged = spec(a="1", labels={"k": "v"})
    last = entry("me", {"f:spec": {"f:b": {}}}, "v2")
    other = entry("other", {"f:spec": {"f:labels": {"f:k": {}}}})
    found = pruned(merged, last, [other], at, lambda _: SCHEMA)
    assert found.object == spec(labels={"k": "v"})


def test_declared_fields_count_as_members_where_anything_below_them_does() -> None:
    fields: FieldSet = {"f:spec": {"f:labels": {"f:a": {}}, "f:list": {ITEM: {"f:n": {}}}}}
    assert with_declared(fields, SCHEMA) == {
        "f:spec": {
            ".": {},
            "f:labels": {".": {}, "f:a": {}},
            "f:list": {".": {}, ITEM: {"f:n": {}}},
        }
    }
    assert with_declared(fields, None) == fields
