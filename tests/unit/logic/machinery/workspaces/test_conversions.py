"""Objects go from version to version and lose nothing they should keep."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.errors import InternalError
from skerry.api.schema import Schema
from skerry.logic.machinery.workspaces.conversions import PRESERVED, Conversions, compiled

_TEXT = {"type": "string"}


def _schema(**fields: Any) -> Schema:
    spec = {"type": "object", "properties": fields}
    metadata = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    common = {"apiVersion": _TEXT, "kind": _TEXT, "metadata": metadata}
    return Schema({"type": "object", "properties": {**common, "spec": spec}})


_NAME = {
    "type": "object",
    "properties": {"first": _TEXT, "last": _TEXT, "lastUpper": _TEXT},
}
SCHEMAS = {
    "v1": _schema(firstName=_TEXT, lastName=_TEXT, size={"type": "integer"}),
    "v2": _schema(name=_NAME, someNewField=_TEXT, size={"type": "integer"}),
}
RULES = [
    {
        "from": "v1",
        "to": "v2",
        "rules": [
            {"field": ".spec.firstName", "destination": ".spec.name.first"},
            {"field": "spec.lastName", "destination": "spec.name.last", "transformation": "self"},
            {
                "field": ".spec.lastName",
                "destination": ".spec.name.lastUpper",
                "transformation": "self.upperAscii()",
            },
        ],
    },
    {
        "from": "v2",
        "to": "v1",
        "rules": [
            {"field": ".spec.name.first", "destination": ".spec.firstName"},
            {"field": ".spec.name.last", "destination": ".spec.lastName"},
        ],
        "preserve": [".spec.someNewField"],
    },
]


def conversions(*rules: dict[str, Any]) -> Conversions:
    made, errors = compiled({"spec": {"conversions": list(rules or RULES)}}, "x.io", SCHEMAS)
    assert errors == []
    return made


def widget(version: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": f"x.io/{version}", "kind": "W", "metadata": {"name": "w"}, "spec": spec}


def test_fields_go_where_rules_say_and_what_is_unknown_there_is_dropped() -> None:
    made = conversions().convert(widget("v1", firstName="a", lastName="b", size=1), "v2")
    name = {"first": "a", "last": "b", "lastUpper": "B"}
    assert made == widget("v2", name=name, size=1)


def test_a_field_that_is_not_there_is_not_made() -> None:
    assert conversions().convert(widget("v1", firstName="a"), "v2") == widget(
        "v2", name={"first": "a"}
    )


def test_what_would_be_lost_travels_in_an_annotation() -> None:
    ways = conversions()
    there = ways.convert(widget("v2", name={"first": "a"}, someNewField="n"), "v1")
    assert there["spec"] == {"firstName": "a"}
    assert there["metadata"]["annotations"] == {f"{PRESERVED}v2": '{"spec.someNewField":"n"}'}
    assert ways.convert(there, "v2") == widget("v2", name={"first": "a"}, someNewField="n")


@given(
    first=st.none() | st.text(),
    last=st.none() | st.text(),
    new=st.none() | st.text(),
    annotations=st.dictionaries(st.sampled_from("ab"), st.text()),
)
def test_there_and_back_is_as_if_never_gone(
    first: str | None, last: str | None, new: str | None, annotations: dict[str, str]
) -> None:
    name = {k: v for k, v in (("first", first), ("last", last)) if v is not None}
    spec: dict[str, Any] = {} if new is None else {"someNewField": new}
    if name:
        spec["name"] = name
    obj = widget("v2", **spec)
    if annotations:
        obj["metadata"]["annotations"] = annotations
    ways = conversions()
    back = ways.convert(ways.convert(copy.deepcopy(obj), "v1"), "v2")
    # Only what v1 makes of it comes in addition.
    back["spec"].get("name", {}).pop("lastUpper", None)
    assert back == obj


def test_between_versions_without_rules_only_names_change() -> None:
    ways, errors = compiled({"spec": {"conversions": []}}, "x.io", SCHEMAS)
    assert not errors
    assert ways.convert(widget("v1", size=1, firstName="a"), "v2") == widget("v2", size=1)


def test_an_expression_that_fails_fails_the_request() -> None:
    rule = {"field": ".spec.size", "destination": ".spec.size", "transformation": "1 / self"}
    ways = conversions({"from": "v1", "to": "v2", "rules": [rule]})
    with pytest.raises(InternalError, match="error converting: division by zero"):
        ways.convert(widget("v1", size=0), "v2")


def test_nothing_is_put_below_what_is_no_object() -> None:
    rule = {"field": ".spec.firstName", "destination": ".spec.size.inner"}
    ways = conversions({"from": "v1", "to": "v2", "rules": [rule]})
    with pytest.raises(InternalError, match="below what is no object"):
        ways.convert(widget("v1", size=0, firstName="a"), "v2")


@pytest.mark.parametrize(
    ("change", "where", "why"),
    [
        ({"from": "v3"}, "spec.conversions[0].from", "unable to find structural schema"),
        ({"to": "v3"}, "spec.conversions[0].to", "unable to find structural schema"),
        ({"field": ".spec.no"}, "spec.conversions[0].rules[0].field", 'field "spec.no" doesn'),
        (
            {"field": ".spec.size.no"},
            "spec.conversions[0].rules[0].field",
            'expected field "spec.size" to be an object',
        ),
        (
            {"transformation": "self +"},
            "spec.conversions[0].rules[0].transformation",
            "error compiling CEL program",
        ),
        (
            {"transformation": "other"},
            "spec.conversions[0].rules[0].transformation",
            "undeclared reference",
        ),
    ],
)
def test_what_makes_no_sense_is_reported(change: dict[str, str], where: str, why: str) -> None:
    rule: dict[str, Any] = {"field": ".spec.size", "destination": ".spec.size"}
    whole: dict[str, Any] = {"from": "v1", "to": "v2", "rules": [rule]}
    for name, value in change.items():
        target: dict[str, Any] = whole if name in whole else rule
        target[name] = value
    _, (error,) = compiled({"spec": {"conversions": [whole]}}, "x.io", SCHEMAS)
    assert error.field == where
    assert why in error.message
