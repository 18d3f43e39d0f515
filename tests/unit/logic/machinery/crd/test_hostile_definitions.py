"""Definitions and objects of any shape are answered, never crashed on."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.api.objects import Object
from skerry.logic.machinery.crd import default_crd, establish, resources_of, validate_crd
from skerry.logic.machinery.schema import prune
from tests.kit.machinery.crds import NOW, cron_tab, schema_of, version_of
from tests.kit.machinery.schemas import json_values

_KEYWORDS = [
    "type", "properties", "items", "additionalProperties", "required", "enum", "default",
    "nullable", "format", "pattern", "minimum", "maxLength", "maxItems", "multipleOf", "allOf",
    "anyOf", "oneOf", "not", "$ref", "definitions", "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys", "x-kubernetes-map-type", "x-kubernetes-int-or-string",
    "x-kubernetes-embedded-resource", "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
]  # fmt: skip
_types = st.sampled_from(["object", "array", "string", "integer", "number", "boolean", "null"])
_rules = st.lists(
    st.fixed_dictionaries(
        {"rule": st.sampled_from(["self == oldSelf", "self.a > 1", "size(self) > 1", "self.", ""])}
    ),
    max_size=2,
)
_schemas: st.SearchStrategy[Any] = st.recursive(
    st.fixed_dictionaries({"type": _types}) | json_values,
    lambda inner: (
        st.dictionaries(
            st.sampled_from(_KEYWORDS),
            json_values | inner | st.lists(inner, max_size=2),
            max_size=3,
        )
        | st.fixed_dictionaries(
            {"type": _types},
            optional={
                "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
                "items": inner,
                "additionalProperties": inner,
                "default": json_values,
                "x-kubernetes-validations": _rules,
                "x-kubernetes-list-type": st.sampled_from(["set", "map", "atomic"]),
            },
        )
    ),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None)
@given(_schemas)
def test_any_schema_is_judged_and_one_that_passes_can_be_served(spec: Any) -> None:
    crd = cron_tab()
    schema_of(crd)["properties"]["spec"] = spec
    version_of(crd).pop("selectableFields")
    if validate_crd(crd) == []:
        (resource,) = resources_of(crd)
        resource.validate_create({"spec": {}})


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_part_of_a_definition_may_be_nonsense(data: st.DataObject) -> None:
    crd = cron_tab()
    at: Any = crd
    for depth in range(data.draw(st.integers(1, 7)), -1, -1):
        key = data.draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
        if not depth or not isinstance(at[key], dict | list) or not at[key]:
            at[key] = data.draw(json_values)
            break
        at = at[key]
    if not isinstance(crd.get("metadata"), dict):
        crd["metadata"] = {}
    default_crd(crd)
    validate_crd(crd)
    validate_crd(crd, cron_tab())
    establish(crd, [cron_tab()], NOW)


@settings(max_examples=60, deadline=None)
@given(json_values, json_values)
def test_objects_of_any_shape_are_pruned_defaulted_and_validated(new: Any, old: Any) -> None:
    (resource,) = resources_of(cron_tab())
    made: Object = {"spec": new, "status": copy.deepcopy(old)}
    former: Object = {"spec": old}
    prune(resource.schema, made)
    resource.default(made)
    resource.validate_create(made)
    resource.validate_update(made, former)
