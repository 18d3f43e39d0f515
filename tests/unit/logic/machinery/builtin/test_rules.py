"""The parts that the rules of many types share: reading, filling in, refusing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.objects import Object
from skerry.logic.machinery.builtin.rules import (
    Rules,
    absent,
    child,
    each,
    fresh_status,
    immutable,
    member,
    non_negative,
    number_at,
    one_of,
    text_at,
    truth_at,
    unsupported,
)

EMPTY: st.SearchStrategy[object] = st.sampled_from([None, "", 0, [], {}])


def test_a_way_that_ends_early_leads_to_nothing() -> None:
    obj: Object = {"a": {"b": {"c": 0}}, "n": None, "e": {}}
    assert member(obj, "a", "b", "c") == 0
    assert member(obj, "a", "x", "c") is None
    assert member(obj, "n", "b") is None
    assert member(obj, "e", "b", "c") is None
    assert member(obj) is obj


@pytest.mark.parametrize(
    ("value", "text"), [(None, ""), (True, "true"), (False, "false"), (7, "7"), ("x", "x")]
)
def test_field_selectors_compare_every_value_as_text(value: object, text: str) -> None:
    assert text_at("spec", "field")({"spec": {"field": value}}) == text


def test_absent_numbers_and_booleans_are_selected_by_their_zero_value() -> None:
    assert number_at("status", "n")({}) == "0"
    assert number_at("status", "n")({"status": {"n": 3}}) == "3"
    assert truth_at("spec", "b")({}) == "false"
    assert truth_at("spec", "b")({"spec": {"b": True}}) == "true"


def test_a_child_is_made_only_where_there_is_none() -> None:
    obj: Object = {"null": None, "kept": {"a": 1}}
    child(obj, "null")["b"] = 2
    child(obj, "new")["c"] = 3
    child(obj, "kept")["d"] = 4
    assert obj == {"null": {"b": 2}, "new": {"c": 3}, "kept": {"a": 1, "d": 4}}


def test_a_default_replaces_null_and_nothing_else() -> None:
    obj: Object = {"null": None, "zero": 0, "empty": ""}
    for name in ("null", "zero", "empty", "missing"):
        absent(obj, name, 9)
    assert obj == {"null": 9, "zero": 0, "empty": "", "missing": 9}


def test_a_client_cannot_claim_a_status_at_creation() -> None:
    obj: Object = {"status": {"ready": True}}
    fresh_status(obj)
    assert obj == {"status": {}}


@given(new=EMPTY, old=EMPTY)
def test_empty_null_and_absent_are_no_change(new: object, old: object) -> None:
    assert immutable(new, old, "f") == []


@pytest.mark.parametrize(("new", "old"), [("a", "b"), ("a", None), (None, "a"), (False, None)])
def test_any_other_change_of_an_immutable_field_is_refused(new: object, old: object) -> None:
    (error,) = immutable(new, old, "spec.f")
    assert (error.field, error.type) == ("spec.f", "FieldValueInvalid")
    assert error.message.endswith("field is immutable")


@given(st.integers())
def test_exactly_the_numbers_below_zero_are_refused(number: int) -> None:
    assert bool(non_negative(number, "f")) == (number < 0)


def test_an_absent_number_is_not_below_zero() -> None:
    assert non_negative(None, "f") == []


def test_every_complaint_becomes_one_refusal() -> None:
    assert [str(error) for error in each("f", "v", ["too short", "too odd"])] == [
        'f: Invalid value: "v": too short',
        'f: Invalid value: "v": too odd',
    ]


def test_a_closed_set_is_named_in_the_order_given() -> None:
    found = unsupported("f", "x", ("b", "a"))
    assert str(found) == 'f: Unsupported value: "x": supported values: "b", "a"'


def test_a_word_outside_a_closed_set_is_missing_or_unsupported() -> None:
    assert one_of("a", "f", ("a", "b")) == []
    assert [error.type for error in one_of("", "f", ("a",))] == ["FieldValueRequired"]
    assert [error.type for error in one_of(None, "f", ("a",))] == ["FieldValueRequired"]
    assert [error.type for error in one_of("x", "f", ("a",))] == ["FieldValueNotSupported"]


def test_a_type_without_rules_changes_and_refuses_nothing() -> None:
    rules, obj = Rules(), {"spec": {"a": 1}}
    rules.default(obj)
    rules.prepare_create(obj)
    rules.prepare_update(obj, {})
    assert obj == {"spec": {"a": 1}}
    assert rules.validate_create(obj) == []
    assert rules.validate_update(obj, {}) == rules.validate_status(obj, {}) == []
    assert list(rules.warnings(obj)) == []
    assert rules.grace_seconds(obj) is None
