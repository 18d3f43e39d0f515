"""The schema of a whole object: what every object has is declared, and nothing is closed by it."""

from __future__ import annotations

from skerry.api.kinds import GroupVersionKind
from skerry.api.schema import Schema
from skerry.logic.machinery.apply.check import problems
from skerry.logic.machinery.apply.root import rooted
from skerry.logic.machinery.builtin.definitions import schema_of

SPEC = {"type": "object", "properties": {"n": {"type": "integer"}}}


def of(**properties: object) -> Schema:
    made = rooted(Schema({"type": "object", "properties": properties}))
    assert made is not None
    return made


def test_nothing_and_built_in_kinds_stay_as_they_are() -> None:
    pod = schema_of(GroupVersionKind("", "v1", "Pod"))
    assert rooted(None) is None
    assert rooted(pod) is pod


def test_finalizers_are_a_set_and_owners_are_known_by_uid() -> None:
    metadata = of(spec=SPEC).field("metadata")
    assert metadata is not None
    finalizers, owners = metadata.field("finalizers"), metadata.field("ownerReferences")
    assert finalizers is not None
    assert owners is not None
    assert finalizers.list_type == "set"
    assert (owners.list_type, owners.list_keys) == ("map", ("uid",))


def test_what_the_author_wrote_stays() -> None:
    made = of(spec=SPEC, metadata={"type": "object"})
    spec = made.field("spec")
    assert spec is not None
    assert set(spec.property_names) == {"n"}
    assert problems(
        {"apiVersion": "v1", "kind": "X", "metadata": {"name": "a"}, "odd": 1}, made
    ) == [".odd: field not declared in schema"]


def test_an_author_who_declared_all_of_metadata_is_believed() -> None:
    own = Schema(
        {"type": "object", "properties": {
            "metadata": {"type": "object", "properties": {"finalizers": {"type": "array"}}}}}
    )  # fmt: skip
    assert rooted(own) is own


def test_an_object_that_was_open_stays_open() -> None:
    made = rooted(Schema({"type": "object"}))
    assert made is not None
    assert problems({"anything": 1}, made) == []


def test_a_schema_is_rooted_once() -> None:
    schema = Schema({"type": "object", "properties": {"spec": SPEC}})
    assert rooted(schema) is rooted(schema)
