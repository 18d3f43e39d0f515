"""Quantities of resources: how they are written, and which a field takes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.machinery.builtin.amounts import (
    amount_errors,
    canonical,
    canonical_list,
    container_resource_errors,
    equal_amounts,
    is_extended,
    is_integer,
    overcommits,
    positive_errors,
    quantity_errors,
    quota_resource_errors,
    resource_name_errors,
)


@pytest.mark.parametrize(
    ("given_", "written"),
    [("0.5", "500m"), ("1000m", "1"), (2, "2"), ("1024Ki", "1Mi"), ("0.0001", "1m")],
)
def test_a_list_of_amounts_is_written_in_canonical_form_and_rounded_up(
    given_: object, written: str
) -> None:
    obj = {"requests": {"cpu": given_}}
    canonical_list(obj, "requests")
    assert obj["requests"]["cpu"] == written


def test_one_quantity_is_not_rounded_and_what_is_none_is_left_for_validation() -> None:
    obj = {"a": "0.0001", "b": "much", "c": "9" * 10_000, "d": None}
    for name in "abcde":
        canonical(obj, name)
    assert obj == {"a": "100u", "b": "much", "c": "9" * 10_000, "d": None}


@given(st.integers(0, 10**6), st.sampled_from(["", "m", "k", "Ki", "Mi"]))
def test_the_canonical_form_is_the_same_amount_and_stays_as_it_is(count: int, unit: str) -> None:
    obj = {"a": f"{count}{unit}"}
    canonical(obj, "a")
    assert equal_amounts(obj["a"], f"{count}{unit}")
    again = dict(obj)
    canonical(again, "a")
    assert again == obj


def test_negative_amounts_and_what_is_no_quantity_are_refused_with_their_field() -> None:
    assert quantity_errors("1", "spec.a") == []
    [negative] = quantity_errors("-1", "spec.a")
    assert (negative.field, "greater than or equal to 0" in negative.message) == ("spec.a", True)
    [wrong] = quantity_errors("much", "spec.a")
    assert (wrong.field, '"much"' in wrong.message) == ("spec.a", True)


def test_zero_is_an_amount_and_not_a_positive_one() -> None:
    assert quantity_errors("0", "a") == []
    [error] = positive_errors("0", "a")
    assert "greater than zero" in error.message
    assert positive_errors("1m", "a") == []
    assert positive_errors("x", "a")


def test_what_comes_in_pieces_has_no_fraction() -> None:
    assert amount_errors("cpu", "500m", "a") == []
    for resource in ("pods", "example.com/gpu"):
        assert amount_errors(resource, "2", "a") == []
        [error] = amount_errors(resource, "500m", "a")
        assert error.message.endswith("must be an integer")


@pytest.mark.parametrize(
    ("resource", "extended", "integer", "shared"),
    [
        ("cpu", False, False, True),
        ("pods", False, True, True),
        ("hugepages-2Mi", False, False, False),
        ("example.com/gpu", True, True, False),
        ("requests.example.com/gpu", False, False, False),
        ("kubernetes.io/thing", False, False, True),
    ],
)
def test_who_defines_a_resource_says_how_it_is_counted(
    resource: str, extended: bool, integer: bool, shared: bool
) -> None:
    assert is_extended(resource) is extended
    assert is_integer(resource) is integer
    assert overcommits(resource) is shared


@pytest.mark.parametrize(
    ("resource", "container", "quota"),
    [
        ("cpu", True, True),
        ("hugepages-2Mi", True, True),
        ("pods", False, True),
        ("storage", False, False),
        ("bananas", False, False),
        ("example.com/gpu", True, True),
        ("requests.cpu", False, True),
        ("not a name", False, False),
    ],
)
def test_containers_and_quotas_take_different_resources(
    resource: str, container: bool, quota: bool
) -> None:
    assert (not container_resource_errors(resource, "a")) is container
    assert (not quota_resource_errors(resource, "a")) is quota


def test_a_plain_name_must_be_one_of_kubernetes_own() -> None:
    [error] = resource_name_errors("bananas", "a")
    assert "standard resource type or fully qualified" in error.message
    assert resource_name_errors("example.com/bananas", "a") == []


def test_amounts_are_equal_as_numbers() -> None:
    assert equal_amounts("1", "1000m")
    assert not equal_amounts("1", "1001m")
    assert not equal_amounts("much", "1")
    assert not equal_amounts(None, "1")
    assert equal_amounts("much", "much")
