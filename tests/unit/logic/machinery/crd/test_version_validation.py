"""The rules of a version: subresources, columns, selectable fields, and what is shared."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.objects import Raw
from skerry.logic.machinery.crd.version_validation import (
    MAX_COLUMNS,
    MAX_SELECTABLE,
    Shared,
    schema_errors,
    version_errors,
    well_formed,
)

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                **{f"f{n}": {"type": "string"} for n in range(10)},
                "o": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            },
        },
    },
}


def version(name: str = "v1", **fields: Any) -> Raw:
    return {"name": name, "schema": {"openAPIV3Schema": SCHEMA}, **fields}


def wrong(*versions: Raw) -> list[str]:
    """Return what is wrong with *versions*, as one list: what they share, then each alone."""
    shared = Shared.of(list(versions))
    none = frozenset[str]()
    found = [*shared.errors(list(versions), none), *version_errors(list(versions), shared, none)]
    return [str(error) for error in found]


def fields(**parts: Any) -> list[str]:
    return [text.split(": ")[0] for text in wrong(version(**parts))]


def test_a_plain_version_is_fine() -> None:
    assert wrong(version()) == wrong() == []


def test_what_all_versions_say_alike_is_judged_once_at_its_old_place() -> None:
    scale = {"scale": {"specReplicasPath": "spec.n", "statusReplicasPath": ".status.n"}}
    alike = wrong(version("v1", subresources=scale), version("v2", subresources=scale))
    assert [text.split(": ")[0] for text in alike] == ["spec.subresources.scale.specReplicasPath"]
    apart = wrong(version("v1", subresources=scale), version("v2"))
    assert [text.split(": ")[0] for text in apart] == [
        "spec.versions[0].subresources.scale.specReplicasPath"
    ]


def test_every_version_has_a_name_and_a_schema() -> None:
    assert fields(name="1x") == ["spec.versions[0].name"]
    assert wrong(version(schema={})) == ["spec.versions[0].schema.openAPIV3Schema: Required value"]


@pytest.mark.parametrize(
    ("parts", "good"),
    [
        ({"deprecated": True, "deprecationWarning": "use v2"}, True),
        ({"deprecationWarning": "use v2"}, False),
        ({"deprecated": True, "deprecationWarning": ""}, False),
        ({"deprecated": True, "deprecationWarning": "x" * 257}, False),
        ({"deprecated": True, "deprecationWarning": "ä" * 129}, False),
        ({"deprecated": True, "deprecationWarning": "a\nb"}, False),
    ],
)
def test_a_warning_of_deprecation_is_short_and_printable(parts: dict[str, Any], good: bool) -> None:
    assert fields(**parts) == ([] if good else ["spec.versions[0].deprecationWarning"])


@pytest.mark.parametrize(
    ("scale", "found"),
    [
        ({"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}, []),
        ({}, ["specReplicasPath", "statusReplicasPath"]),
        (
            {"specReplicasPath": ".status.n", "statusReplicasPath": ".status.n"},
            ["specReplicasPath"],
        ),
        ({"specReplicasPath": ".spec.n", "statusReplicasPath": "status.n"}, ["statusReplicasPath"]),
        (
            {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n",
             "labelSelectorPath": ".metadata.x"},
            ["labelSelectorPath"],
        ),
        (
            {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n",
             "labelSelectorPath": "status.x"},
            ["labelSelectorPath"],
        ),
    ],
)  # fmt: skip
def test_numbers_of_a_scale_lie_in_spec_and_status(scale: dict[str, Any], found: list[str]) -> None:
    assert fields(subresources={"scale": scale}) == [
        f"spec.subresources.scale.{name}" for name in found
    ]


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({}, []),
        ({"name": ""}, ["name"]),
        ({"type": ""}, ["type"]),
        ({"type": "text"}, ["type"]),
        ({"format": "odd"}, ["format"]),
        ({"jsonPath": ""}, ["JSONPath"]),
        ({"jsonPath": "spec.a"}, ["JSONPath"]),
    ],
)
def test_columns_have_names_types_and_paths(change: dict[str, Any], found: list[str]) -> None:
    column = {"name": "A", "type": "string", "jsonPath": ".spec.a", **change}
    at = "spec.additionalPrinterColumns[0]"
    assert fields(additionalPrinterColumns=[column]) == [f"{at}.{name}" for name in found]


def test_columns_are_counted_before_they_are_read() -> None:
    assert wrong(version(additionalPrinterColumns=[{}] * (MAX_COLUMNS + 1))) == [
        (
            f"spec.additionalPrinterColumns: Too many: {MAX_COLUMNS + 1}: must have at most "
            f"{MAX_COLUMNS} items"
        )
    ]


@pytest.mark.parametrize(
    ("paths", "found"),
    [
        ([".spec.f1"], []),
        ([""], ["[0].jsonPath"]),
        ([".spec.nowhere"], ["[0].jsonPath"]),
        ([".spec.o"], ["[0].jsonPath"]),
        ([".spec.f1", ".spec.f1"], ["[1].jsonPath"]),
        ([f".spec.f{n}" for n in range(MAX_SELECTABLE + 1)], [""]),
    ],
)
def test_selectable_fields_are_few_and_simple(paths: list[str], found: list[str]) -> None:
    listed = [{"jsonPath": path} for path in paths]
    assert fields(selectableFields=listed) == [f"spec.selectableFields{name}" for name in found]


def test_metadata_is_selected_otherwise() -> None:
    raw = {**SCHEMA, "properties": {"metadata": {"type": "object", "properties": {
        "name": {"type": "string"}}}}}  # fmt: skip
    found = wrong(
        version(schema={"openAPIV3Schema": raw}, selectableFields=[{"jsonPath": ".metadata.name"}])
    )
    assert any("must not point to fields in metadata" in text for text in found)


def test_with_a_status_the_root_says_only_what_survives_without_it() -> None:
    def of(raw: dict[str, Any]) -> list[str]:
        whole = {"schema": {"openAPIV3Schema": raw}}
        return [str(e) for e in schema_errors(whole, "p", status=True, limit=True)]

    assert of(SCHEMA) == []
    assert any("only [Description Type" in t for t in of({**SCHEMA, "maxProperties": 5}))
    assert any('only "object" is allowed' in text for text in of({"type": "array"}))
    assert any("nullable cannot be true at the root" in t for t in of({**SCHEMA, "nullable": True}))


def test_patterns_together_have_a_limit() -> None:
    many = {f"p{n}": {"type": "string", "pattern": f"^[a-z]{{{900 + n}}}$"} for n in range(40)}
    raw = {"type": "object", "properties": {"spec": {"type": "object", "properties": many}}}
    whole = {"schema": {"openAPIV3Schema": raw}}
    (error,) = schema_errors(whole, "p", status=False, limit=True)
    assert "instructions: want at most" in error.message


@pytest.mark.parametrize(
    ("raw", "good"),
    [
        ({"type": "object", "properties": {"a": {"type": "string"}}}, True),
        ("text", False),
        ({"type": 1}, False),
        ({"$ref": "#/x"}, False),
        ({"required": ["a", 1]}, False),
        ({"properties": {"a": []}}, False),
        ({"allOf": [1]}, False),
        ({"items": {"minLength": "1"}}, False),
        ({"additionalProperties": {"nullable": 1}}, False),
        ({"additionalProperties": True, "maximum": 1.5}, True),
    ],
)
def test_parts_of_a_schema_have_the_types_they_must_have(raw: Any, good: bool) -> None:
    assert well_formed(raw) is good
