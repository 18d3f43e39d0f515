"""Field sets of an older schema under today's."""

from __future__ import annotations

from skerry.api.schema import Schema
from skerry.logic.machinery.apply.fieldset import FieldSet
from skerry.logic.machinery.apply.reconcile import reconciled

GRANULAR = Schema(
    {
        "type": "object",
        "properties": {
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
            "list": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string"},
                        "env": {"type": "object", "x-kubernetes-map-type": "atomic"},
                    },
                },
            },
            "text": {"type": "string"},
        },
    }
)
ATOMIC = Schema(
    {
        "type": "object",
        "properties": {
            "map": {"type": "object", "x-kubernetes-map-type": "atomic"},
            "list": {"type": "array", "items": {"type": "string"}},
        },
    }
)


def test_who_owned_something_inside_owns_the_whole_once_it_is_atomic() -> None:
    fields: FieldSet = {"f:map": {"f:a": {}}, "f:list": {'k:{"name":"x"}': {"f:name": {}}}}
    assert reconciled(fields, ATOMIC) == {"f:map": {}, "f:list": {}}


def test_deep_inside_a_list_too() -> None:
    inside: FieldSet = {'k:{"name":"x"}': {".": {}, "f:env": {"f:A": {}}, "f:name": {}}}
    found = reconciled({"f:list": inside}, GRANULAR)
    assert found == {"f:list": {'k:{"name":"x"}': {".": {}, "f:env": {}, "f:name": {}}}}


def test_a_set_that_is_right_is_the_very_same() -> None:
    fields: FieldSet = {"f:map": {".": {}, "f:a": {}}, "f:text": {}, "f:unknown": {"f:x": {}}}
    assert reconciled(fields, GRANULAR) is fields
    assert reconciled(fields, None) is fields


def test_what_was_owned_as_a_whole_stays_so() -> None:
    fields: FieldSet = {"f:map": {}}
    assert reconciled(fields, GRANULAR) is fields


def test_a_scalar_with_fields_is_left_alone() -> None:
    fields: FieldSet = {"f:text": {"f:x": {}}}
    assert reconciled(fields, GRANULAR) is fields
