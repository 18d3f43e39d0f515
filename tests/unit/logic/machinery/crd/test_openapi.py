"""What each node of a schema may say, and in what surroundings."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.schema import Schema
from skerry.logic.machinery.crd.openapi import OpenAPIChecks, Place
from skerry.logic.machinery.crd.rules import RuleChecks


def wrong(raw: dict[str, Any], *, root: bool = True, rules: RuleChecks | None = None) -> list[str]:
    found = OpenAPIChecks(rules=rules).check(raw, Schema(raw), Place("s", root=root))
    return [str(error) for error in found]


def of_field(**raw: Any) -> list[str]:
    return wrong({"type": "object", "properties": {"f": raw}})


AT = "s.properties[f]"


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        ({"type": "null"}, f"{AT}.type"),
        ({"type": "text"}, f"{AT}.type"),
        ({"type": "object", "definitions": {"a": {}}}, f"{AT}.definitions"),
        ({"type": "array", "items": {"type": "string"}, "uniqueItems": True}, f"{AT}.uniqueItems"),
        (
            {"type": "object", "properties": {"a": {"type": "string"}},
             "additionalProperties": {"type": "string"}},
            f"{AT}.additionalProperties",
        ),
        (
            {"type": "object", "x-kubernetes-preserve-unknown-fields": False},
            f"{AT}.x-kubernetes-preserve-unknown-fields",
        ),
    ],
)  # fmt: skip
def test_what_no_schema_of_a_definition_says(raw: dict[str, Any], field: str) -> None:
    assert [text.split(": ")[0] for text in of_field(**raw)] == [field]


def test_nothing_refers_away() -> None:
    # Of such a schema none is built: there is nothing that it could refer to.
    found = OpenAPIChecks(rules=None).check({"$ref": "#/x"}, None, Place("s"))
    assert [str(error) for error in found] == ["s.$ref: Forbidden: $ref is not supported"]


def test_no_default_stands_in_what_every_object_has() -> None:
    raw = {"type": "object", "properties": {"metadata": {"type": "object", "default": {}}}}
    assert wrong(raw) == [
        "s.properties[metadata].default: Forbidden: must not be set in top-level metadata"
    ]
    assert of_field(type="string", default="x") == []


def test_a_resource_is_not_embedded_in_the_metadata_of_another() -> None:
    inner = {"type": "object", "x-kubernetes-embedded-resource": True}
    raw = {"type": "object", "properties": {"metadata": inner}}
    assert any("must not be used inside of resource meta" in text for text in wrong(raw))


@pytest.mark.parametrize(
    ("rule", "field"),
    [
        ({}, "rule"),
        ({"rule": "  "}, "rule"),
        ({"rule": "true", "message": " "}, "message"),
        ({"rule": "true", "message": "a\nb"}, "message"),
        ({"rule": "true\n&& true"}, "message"),
        ({"rule": "true\n&& true", "message": "m"}, ""),
        ({"rule": "true", "messageExpression": " "}, "messageExpression"),
        ({"rule": "true", "reason": "Because"}, "reason"),
        ({"rule": "true", "reason": "FieldValueInvalid"}, ""),
        ({"rule": "true", "fieldPath": ".nowhere"}, "fieldPath"),
    ],
)
def test_the_form_of_a_rule(rule: dict[str, Any], field: str) -> None:
    found = [text.split(": ")[0] for text in of_field(type="object", **rules_of(rule))]
    assert found == [f"{AT}.x-kubernetes-validations[0].{field}"] * bool(field)


def rules_of(*rules: dict[str, Any]) -> dict[str, Any]:
    return {"x-kubernetes-validations": list(rules)}


def test_rules_are_compiled_only_where_nothing_else_is_wrong_below_them() -> None:
    bad = rules_of({"rule": "self.nowhere == 1"})
    compiled = RuleChecks()
    wrong({"type": "object", **bad}, rules=compiled)
    assert len(compiled.errors) == 1
    skipped = RuleChecks()
    broken = {"type": "object", "properties": {"f": {"type": "null"}}, **bad}
    assert wrong(broken, rules=skipped)
    assert skipped.errors == []


@pytest.mark.parametrize(
    ("raw", "within"),
    [
        ({"type": "array", "maxItems": 2}, "s.properties[f]"),
        ({"type": "array", "maxItems": 2, "x-kubernetes-list-type": "map",
          "x-kubernetes-list-map-keys": ["k"]}, ""),
    ],
)  # fmt: skip
def test_former_items_are_found_by_key_alone(raw: dict[str, Any], within: str) -> None:
    item = {"type": "object", "required": ["k"],
            "properties": {"k": {"type": "string", "maxLength": 9}},
            **rules_of({"rule": "self == oldSelf"})}  # fmt: skip
    compiled = RuleChecks()
    whole = {"type": "object", "properties": {"f": {**raw, "items": item}}}
    assert wrong(whole, rules=compiled) == []
    assert [str(error).endswith(f"within {within}") for error in compiled.errors] == [True] * bool(
        within
    )


def test_how_often_a_node_occurs_multiplies_until_nobody_knows() -> None:
    place = Place("s")
    bounded = place.below(".x", cardinality=3)
    assert (bounded.path, bounded.cardinality, bounded.root) == ("s.x", 3, False)
    assert Place("s", root=True).below(".y").root is False
