"""The algebra of pruning, defaulting and validation, over generated schemas and values."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.api.schema import Schema
from skerry.logic.machinery.schema import apply_defaults, prune, validate, validate_update
from tests.kit.machinery.schemas import json_values, schemas, values_of

fitting = schemas.flatmap(lambda raw: st.tuples(st.just(raw), values_of(raw)))


@settings(max_examples=60, deadline=None)
@given(fitting)
def test_a_value_generated_to_fit_a_schema_is_valid(pair: tuple[dict[str, Any], Any]) -> None:
    raw, value = pair
    assert validate(Schema(raw), value) == []


@settings(max_examples=60, deadline=None)
@given(fitting)
def test_pruning_leaves_a_fitting_value_as_it_is(pair: tuple[dict[str, Any], Any]) -> None:
    raw, value = pair
    before = copy.deepcopy(value)
    assert prune(Schema(raw), value) == []
    assert value == before


@settings(max_examples=60, deadline=None)
@given(schemas, json_values)
def test_pruning_twice_is_pruning_once(raw: dict[str, Any], value: Any) -> None:
    schema = Schema(raw)
    prune(schema, value)
    once = copy.deepcopy(value)
    assert prune(schema, value) == []
    assert value == once


@settings(max_examples=60, deadline=None)
@given(schemas, json_values)
def test_defaulting_twice_is_defaulting_once(raw: dict[str, Any], value: Any) -> None:
    schema = Schema(raw)
    apply_defaults(schema, value)
    once = copy.deepcopy(value)
    apply_defaults(schema, value)
    assert value == once


@settings(max_examples=60, deadline=None)
@given(fitting)
def test_a_pruned_and_defaulted_fitting_value_is_valid(pair: tuple[dict[str, Any], Any]) -> None:
    raw, value = pair
    schema = Schema(raw)
    value["unknown"] = {"x": 1}
    assert prune(schema, value) == ["unknown"]
    apply_defaults(schema, value)
    assert validate(schema, value) == []


@settings(max_examples=60, deadline=None)
@given(schemas, json_values)
def test_an_update_that_changes_nothing_is_always_forgiven(raw: dict[str, Any], value: Any) -> None:
    assert validate_update(Schema(raw), value, copy.deepcopy(value)) == []


@settings(max_examples=60, deadline=None)
@given(schemas, json_values, json_values)
def test_an_update_is_refused_for_no_more_than_a_create(
    raw: dict[str, Any], new: Any, old: Any
) -> None:
    schema = Schema(raw)
    created = validate(schema, new)
    assert all(error in created for error in validate_update(schema, new, old))
