"""What ``%(name)`` becomes, oddities included."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.fleet.customization.parameters import (
    expanded,
    expanded_text,
    location_values,
    missing_names,
)

VALUES = {"a": "X", "loc-name": "florin", "": "nothing", "dotted.io/key": "K"}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", ""),
        ("plain", "plain"),
        ("%(a)", "X"),
        ("<%(a)%(a)>", "<XX>"),
        ("site %(loc-name)!", "site florin!"),
        ("%(dotted.io/key)", "K"),
        ("%(unknown)", "%(unknown)"),
        ("%(unknown", "%(unknown"),
        ("%(a", "X"),
        ("100%", "100%"),
        ("%", "%"),
        ("%d %(a)", "%d X"),
        ("%%", "%%"),
        ("%%(a)", "%%(a)"),
        ("%%%(a)", "%%X"),
        ("%%%%(a)", "%%%%(a)"),
        ("%()", "nothing"),
        ("${a}", "${a}"),
        ("%(%(a))", "%(%(a))"),
    ],
)
def test_text_expands_as_the_first_implementation_did(text: str, wanted: str) -> None:
    assert expanded_text(text, VALUES) == wanted


def test_labels_of_a_location_overrule_its_annotations() -> None:
    location = {"metadata": {"labels": {"a": "label"}, "annotations": {"a": "note", "b": "note"}}}
    assert location_values(location) == {"a": "label", "b": "note"}
    assert location_values({"metadata": {"name": "bare"}}) == {}


def test_values_are_expanded_but_names_of_members_are_not() -> None:
    before = {"%(a)": ["%(a)", 1, None, True, {"k": "%(a)%(a)"}]}
    assert expanded(before, VALUES) == {"%(a)": ["X", 1, None, True, {"k": "XX"}]}
    assert before == {"%(a)": ["%(a)", 1, None, True, {"k": "%(a)%(a)"}]}


def test_what_a_value_brings_in_is_not_expanded_again() -> None:
    assert expanded_text("%(a)", {"a": "%(b)", "b": "no"}) == "%(b)"


@given(st.text(alphabet="%()ab ", max_size=30))
def test_without_known_parameters_every_text_stays_as_it_is(text: str) -> None:
    assert expanded_text(text, {}) == text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=10,
)


@given(JSON)
def test_expansion_keeps_the_shape_of_a_document(document: Any) -> None:
    assert expanded(document, {}) == document


def test_the_parameters_nobody_gives_are_named_once_in_order() -> None:
    text = "%(b) %(a) %(b) %%(c) %(known)"
    assert missing_names(text, {"known": "1"}) == ["b", "a"]
