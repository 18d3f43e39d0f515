"""Resources inside resources: what they need, and what their metadata may say."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.logic.machinery.schema.embedded import embedded_rule
from skerry.logic.machinery.schema.findings import Finding


def wrong(**change: Any) -> list[str]:
    value = {"apiVersion": "apps/v1", "kind": "Deployment", **change}
    found: list[Finding] = []
    embedded_rule({k: v for k, v in value.items() if v != "absent"}, (None, "spec"), found)
    return [str(finding.error) for finding in found]


def test_an_embedded_object_has_a_version_and_a_kind() -> None:
    assert wrong() == wrong(metadata={"name": "a"}) == wrong(metadata=None) == []
    assert wrong(apiVersion="absent", kind="absent") == [
        "spec.apiVersion: Required value",
        "spec.kind: Required value",
    ]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"apiVersion": 1}, "spec.apiVersion: Invalid value: 1: must be a string"),
        ({"apiVersion": ""}, 'spec.apiVersion: Invalid value: "": must not be empty'),
        (
            {"apiVersion": "a/b/c"},
            'spec.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c',
        ),
        ({"kind": []}, "spec.kind: Invalid value: []: must be a string"),
        ({"kind": ""}, 'spec.kind: Invalid value: "": must not be empty'),
        ({"metadata": "x"}, 'spec.metadata: Invalid value: "x": must be an object'),
        ({"metadata": {"name": 1}}, "spec.metadata.name: Invalid value: 1: must be a string"),
        (
            {"metadata": {"labels": []}},
            "spec.metadata.labels: Invalid value: []: must be an object",
        ),
        (
            {"metadata": {"annotations": {"a": 1}}},
            "spec.metadata.annotations[a]: Invalid value: 1: must be a string",
        ),
    ],
)
def test_each_part_has_its_form(change: dict[str, Any], text: str) -> None:
    assert wrong(**change) == [text]


def test_a_kind_may_have_mixed_case_and_nothing_else_a_label_may_not() -> None:
    (text,) = wrong(kind="My_Kind")
    assert "may have mixed case, but should otherwise match" in text


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        ({"name": "a/b"}, "name"),
        ({"labels": {"a b": "c"}}, "labels"),
        ({"labels": {"a": "b c"}}, "labels"),
        ({"annotations": {"a b": "anything at all"}}, "annotations"),
    ],
)
def test_names_and_labels_are_such_as_an_object_could_have(
    metadata: dict[str, Any], field: str
) -> None:
    (text,) = wrong(metadata=metadata)
    assert text.startswith(f"spec.metadata.{field}: Invalid value")


def test_keys_of_annotations_may_have_capitals() -> None:
    assert wrong(metadata={"annotations": {"A.Com/B": "x y"}}) == []


def test_of_a_metadata_with_wrong_types_no_name_is_judged() -> None:
    assert len(wrong(metadata={"uid": 1, "name": "a/b"})) == 1
