"""Which lists may be sets or maps, and what is wrong with the others."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.logic.machinery.crd.list_types import list_type_errors

TEXT = {"type": "string"}
ROW = {"type": "object", "properties": {"k": TEXT, "v": TEXT}, "required": ["k"]}
KEYED = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["k"],
    "items": ROW,
}
SET = {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT}


def fields(raw: dict[str, Any]) -> list[str]:
    return [error.field.removeprefix("s.") for error in list_type_errors(raw, "s")]


@pytest.mark.parametrize(
    "raw",
    [
        {},
        TEXT,
        SET,
        KEYED,
        {**KEYED, "items": {**ROW, "required": [], "properties": {"k": {**TEXT, "default": ""}}}},
        {**SET, "items": {"type": "object", "x-kubernetes-map-type": "atomic"}},
        {**SET, "items": {"type": "array", "x-kubernetes-list-type": "atomic"}},
        {"type": "object", "x-kubernetes-map-type": "granular"},
    ],
)
def test_what_is_as_it_should_be_passes(raw: dict[str, Any]) -> None:
    assert fields(raw) == []


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        ({**SET, "type": "object"}, "type"),
        ({"x-kubernetes-list-type": "set"}, "type"),
        ({**SET, "x-kubernetes-list-type": "bag"}, "x-kubernetes-list-type"),
        ({**SET, "x-kubernetes-list-map-keys": ["k"]}, "x-kubernetes-list-type"),
        ({"type": "array", "x-kubernetes-list-map-keys": ["k"]}, "x-kubernetes-list-type"),
        ({**SET, "items": {"type": "object"}}, "items.x-kubernetes-map-type"),
        (
            {**SET, "items": {"type": "array", "x-kubernetes-list-type": "set"}},
            "items.x-kubernetes-list-type",
        ),
        ({**SET, "items": {**TEXT, "nullable": True}}, "items.nullable"),
        ({**KEYED, "x-kubernetes-list-map-keys": []}, "x-kubernetes-list-map-keys"),
        ({**KEYED, "x-kubernetes-list-map-keys": ["z"]}, "x-kubernetes-list-map-keys"),
        ({**KEYED, "x-kubernetes-list-map-keys": ["k", "k"]}, "x-kubernetes-list-map-keys"),
        ({**KEYED, "items": None}, "items"),
        ({**KEYED, "items": [ROW]}, "items"),
        ({**KEYED, "items": TEXT}, "items.type"),
        ({**KEYED, "items": {**ROW, "required": []}}, "items.properties[k].default"),
        (
            {**KEYED, "items": {**ROW, "properties": {"k": {**TEXT, "nullable": True}}}},
            "items.properties[k].nullable",
        ),
        (
            {**KEYED, "items": {**ROW, "properties": {"k": {"type": "object"}}}},
            "items.properties[k].type",
        ),
        ({"type": "object", "x-kubernetes-map-type": "loose"}, "x-kubernetes-map-type"),
        ({"type": "array", "x-kubernetes-map-type": "atomic"}, "type"),
    ],
)
def test_what_is_not_names_its_field(raw: dict[str, Any], field: str) -> None:
    assert fields(raw) == [field]
