"""Warnings of fields that the matched kinds do not have."""

from __future__ import annotations

from typing import Any

import orjson

from skerry.logic.machinery.admission.type_checking import checked_types
from skerry.logic.machinery.builtin.resources import builtin_resources
from tests.kit.machinery.policies import policy

WIDGET = {
    "type": "object",
    "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}},
}


def checked(*expressions: str, group: str = "apps", resource: str = "deployments") -> Any:
    rule = {"operations": ["*"], "apiGroups": [group], "apiVersions": ["v1"]}
    match = {"resourceRules": [{**rule, "resources": [resource]}]}
    custom = {"x.io/v1/widgets": {"kind": "Widget", "schema": WIDGET}}
    return orjson.loads(
        checked_types(
            policy("p", *expressions, matchConstraints=match), builtin_resources(), custom
        )
    )


def test_a_field_the_kind_has_not_and_a_wrong_type_are_warned_of() -> None:
    found = checked("object.spec.foo == 1", "object.spec.replicas > '1'")
    assert found["expressionWarnings"] == [
        {
            "fieldRef": "spec.validations[0].expression",
            "warning": "apps/v1, Kind=Deployment: ERROR: <input>:1:12: undefined field 'foo'\n"
            " | object.spec.foo == 1\n | ...........^\n",
        },
        {
            "fieldRef": "spec.validations[1].expression",
            "warning": "apps/v1, Kind=Deployment: ERROR: <input>:1:22: found no matching overload "
            "for '_>_' applied to '(int, string)'\n"
            " | object.spec.replicas > '1'\n | .....................^\n",
        },
    ]


def test_what_the_kind_has_is_not_warned_of() -> None:
    assert checked("object.metadata.labels['a'] == 'b' && object.spec.replicas > 1") == {}


def test_a_custom_kind_is_checked_by_its_own_schema() -> None:
    found = checked(
        "object.spec.size > 1", "object.spec.sise > 1", group="x.io", resource="widgets"
    )
    (warning,) = found["expressionWarnings"]
    assert warning["fieldRef"] == "spec.validations[1].expression"
    assert warning["warning"].startswith("x.io/v1, Kind=Widget: ERROR: <input>:1:12:")


def test_wildcards_and_unknown_types_are_not_checked() -> None:
    assert checked("object.spec.foo == 1", resource="*") == {}
    assert checked("object.spec.foo == 1", group="nope.io") == {}


def test_a_kind_whose_schema_contains_itself_is_not_checked() -> None:
    kind = {"group": "apiextensions.k8s.io", "resource": "customresourcedefinitions"}
    assert checked("object.spec.foo == 1", **kind) == {}
