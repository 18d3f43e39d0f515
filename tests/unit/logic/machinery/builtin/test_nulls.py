"""Nulls of a client are read as a Go decoder reads them."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.objects import Object
from skerry.api.schema import Schema
from skerry.logic.machinery.builtin.nulls import without_nulls

TEXT = {"type": "string"}
SCHEMA = Schema(
    {
        "type": "object",
        "properties": {
            "name": TEXT,
            "labels": {"type": "object", "additionalProperties": TEXT},
            "limits": {
                "type": "object",
                "additionalProperties": {"format": "quantity", "type": "string"},
            },
            "ports": {
                "type": "object",
                "additionalProperties": {"x-kubernetes-int-or-string": True},
            },
            "words": {"type": "array", "items": TEXT},
            "counts": {"type": "array", "items": {"type": "integer"}},
            "parts": {
                "type": "array",
                "items": {"type": "object", "properties": {"inner": TEXT}},
            },
            "anything": {"type": "array", "items": {}},
        },
    }
)


def read(obj: Object) -> Object:
    without_nulls(lambda _: None, SCHEMA)(obj)
    return obj


@pytest.mark.parametrize(
    ("sent", "wanted"),
    [
        ({"name": None}, {}),
        ({"labels": {"a": None, "b": "x"}}, {"labels": {"a": "", "b": "x"}}),
        ({"limits": {"cpu": None}}, {"limits": {"cpu": "0"}}),
        ({"ports": {"http": None}}, {"ports": {"http": 0}}),
        ({"words": ["x", None]}, {"words": ["x", ""]}),
        ({"counts": [None, 3]}, {"counts": [0, 3]}),
        ({"parts": [None, {"inner": None}]}, {"parts": [{}, {}]}),
        ({"anything": [None, 1]}, {"anything": [None, 1]}),
        ({"unknown": None}, {"unknown": None}),
        ({"name": "null"}, {"name": "null"}),
    ],
)
def test_a_null_is_absent_or_the_empty_value_of_its_type(sent: Any, wanted: Any) -> None:
    assert read(sent) == wanted


def test_defaults_come_after_nulls() -> None:
    def default(obj: Object) -> None:
        obj.setdefault("name", "default")

    obj: Object = {"name": None}
    without_nulls(default, SCHEMA)(obj)
    assert obj == {"name": "default"}
