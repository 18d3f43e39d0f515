"""Whether a schema is structural: the spine, its types, and what is said beside it."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.logic.machinery.crd.structural import structural_errors


def wrong(**raw: Any) -> list[str]:
    return [str(error) for error in structural_errors({"type": "object", **raw}, "s")]


def of_field(**raw: Any) -> list[str]:
    return wrong(properties={"f": raw})


AT = "s.properties[f]"


def test_a_spine_with_types_everywhere_is_structural() -> None:
    assert of_field(type="array", items={"type": "string"}) == []
    assert of_field(type="object", additionalProperties={"type": "integer"}) == []
    assert of_field(type="object", additionalProperties=True) == []


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ({}, f"{AT}.type: Required value: must not be empty for specified object fields"),
        ({"type": "array"}, f"{AT}.items: Required value: must be specified"),
        (
            {"type": "array", "items": {}},
            f"{AT}.items.type: Required value: must not be empty for specified array items",
        ),
        (
            {"type": "object", "additionalProperties": {}},
            (
                f"{AT}.additionalProperties.type: Required value: must not be empty for specified "
                "object fields"
            ),
        ),
        (
            {"type": "string", "pattern": "("},
            None,
        ),
    ],
)
def test_what_lacks_a_type_is_named(raw: dict[str, Any], text: str | None) -> None:
    (found,) = of_field(**raw)
    assert found == text or (text is None and "must be a valid regular expression" in found)


def test_the_root_is_an_object_with_declared_fields() -> None:
    assert [str(e) for e in structural_errors({}, "s")] == [
        "s.type: Required value: must not be empty at the root"
    ]
    assert wrong(type="array", items={"type": "string"}) == [
        's.type: Invalid value: "array": must be object at the root'
    ]
    assert wrong(additionalProperties={"type": "string"}) == [
        "s.additionalProperties: Forbidden: must not be used at the root"
    ]


@pytest.mark.parametrize(
    "extension", ["x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields"]
)
def test_some_extensions_stand_for_a_type(extension: str) -> None:
    assert of_field(**{extension: True}) == []


def test_a_number_or_text_keeps_nothing_unknown() -> None:
    found = of_field(**{"x-kubernetes-int-or-string": True,
                        "x-kubernetes-preserve-unknown-fields": True})  # fmt: skip
    assert len(found) == 1
    assert "must be false if x-kubernetes-int-or-string is true" in found[0]


def test_an_embedded_resource_is_an_object_that_says_what_it_holds() -> None:
    embedded = {"x-kubernetes-embedded-resource": True}
    spec = {"spec": {"type": "string"}}
    assert of_field(type="object", properties=spec, **embedded) == []
    assert (
        of_field(type="object", **embedded, **{"x-kubernetes-preserve-unknown-fields": True}) == []
    )
    assert len(of_field(type="object", **embedded)) == 1
    assert of_field(type="string", properties=spec, **embedded)[0].startswith(f"{AT}.type: Invalid")
    assert of_field(properties=spec, **embedded)[0].startswith(f"{AT}.type: Required")
    found = of_field(
        type="object", properties=spec, additionalProperties={"type": "string"}, **embedded
    )
    assert any("must not be used if x-kubernetes-embedded-resource is set" in t for t in found)


@pytest.mark.parametrize(
    ("properties", "good"),
    [
        ({"kind": {"type": "string"}}, True),
        ({"kind": {"type": "integer"}}, False),
        ({"metadata": {"type": "object"}}, True),
        ({"metadata": {"type": "string"}}, False),
        ({"metadata": {"type": "object", "properties": {"name": {"type": "string"}}}}, True),
        ({"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}, False),
        ({"metadata": {"type": "object", "maxProperties": 3}}, False),
    ],
)
def test_what_every_object_has_may_only_be_restricted_by_name(
    properties: dict[str, Any], good: bool
) -> None:
    assert (wrong(properties=properties) == []) is good


@pytest.mark.parametrize("key", ["allOf", "anyOf", "oneOf"])
@pytest.mark.parametrize(
    "said",
    [
        {"type": "string"},
        {"description": "x"},
        {"default": ""},
        {"nullable": True},
        {"additionalProperties": False},
        {"x-kubernetes-list-type": "set"},
    ],
)
def test_beside_the_spine_only_values_are_restricted(key: str, said: dict[str, Any]) -> None:
    (found,) = of_field(type="string", **{key: [said]})
    assert found.startswith(f"{AT}.{key}[0].{next(iter(said))}: Forbidden: must be ")
    assert of_field(type="string", **{key: [{"minLength": 1}]}) == []


def test_a_negation_is_judged_like_the_others_at_any_depth() -> None:
    (found,) = of_field(type="string", **{"not": {"allOf": [{"type": "string"}]}})
    assert found.startswith(f"{AT}.not.allOf[0].type: Forbidden")


def test_what_is_said_of_a_field_is_declared_on_the_spine() -> None:
    rules = [{"properties": {"x": {"minLength": 1}}}]
    assert wrong(anyOf=rules) == [
        "s.properties[x]: Required value: because it is defined in s.anyOf[0].properties[x]"
    ]
    assert wrong(properties={"x": {"type": "string"}}, anyOf=rules) == []
    # As in Kubernetes, what stands below the root is not asked.
    assert of_field(type="object", anyOf=rules) == []
    (below,) = wrong(
        properties={"l": {"type": "array", "items": {"type": "object"}}},
        allOf=[{"properties": {"l": {"items": {"properties": {"y": {}}}}}}],
    )
    assert below.startswith("s.properties[l].items.properties[y]: Required value: because")


def test_the_one_union_of_types_that_kubernetes_itself_writes_is_excused() -> None:
    both = [{"type": "integer"}, {"type": "string"}]
    assert of_field(**{"x-kubernetes-int-or-string": True, "anyOf": both}) == []
    first = [{"anyOf": both}, {"pattern": "^a$"}]
    assert of_field(**{"x-kubernetes-int-or-string": True, "allOf": first}) == []
    assert of_field(**{"x-kubernetes-int-or-string": True, "oneOf": both})
