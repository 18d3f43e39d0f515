"""Which places a path means in a document, and what replacing does to the rest."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.fleet.customization.paths import Path, parse_path
from skerry.logic.fleet.customization.replacement import Place, UnreachablePath, _places, replaced

DOCUMENT = {"a": [{"n": 1}, {"n": 2}, {"n": 3}], "b": {"n": 4, "c": {"n": 5}}, "0": "zero"}


def found(document: Any, path: Path) -> list[Any]:
    return [place.value for place in _places(Place({"$": document}, "$"), path.steps)]


def _replaced(document: Any, path: str, value: Any = "X") -> Any:
    return replaced(copy.deepcopy(document), parse_path(path), value)


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("$.b.n", [4]),
        ("$.a[0].n", [1]),
        ("$.a.1.n", [2]),
        ("$.0", ["zero"]),
        ("$.a[0,2].n", [1, 3]),
        ("$.a[1:].n", [2, 3]),
        ("$.a[::2].n", [1, 3]),
        ("$.a[*].n", [1, 2, 3]),
        ("$.a[7]", []),
        ("$.missing.n", []),
        ("$.b['n','c']", [4, {"n": 5}]),
        ("$..n", [1, 2, 3, 4, 5]),
        ("$.b..", [{"n": 4, "c": {"n": 5}}, 4, {"n": 5}, 5]),
        ("$.b..*", [4, {"n": 5}, 5]),
        ("$.b.n[*]", []),
        ("$.b[0:]", []),
        ("$.b[0]", []),
    ],
)
def test_a_path_finds_its_values_parents_before_children(path: str, wanted: list[Any]) -> None:
    assert found(DOCUMENT, parse_path(path)) == wanted


@pytest.mark.parametrize(
    ("document", "path", "wanted"),
    [
        ({"a": 1}, "$.a", {"a": "X"}),
        ({"a": 1}, "$", "X"),
        ({}, "$.a", {"a": "X"}),
        ({}, "$.a.b.c", {"a": {"b": {"c": "X"}}}),
        ({"a": None}, "$.a.b", {"a": {"b": "X"}}),
        ({"a": [1, 2]}, "$.a[1]", {"a": [1, "X"]}),
        ({"a": [1]}, "$.a[1]", {"a": [1]}),
        ({"a": [1]}, "$.a.1", {"a": [1]}),
        ({}, "$.a[0].b", {}),
        ({}, "$.a.0.b", {}),
        ({"a": {}}, "$.a.b[0]", {"a": {}}),
        ({"a": [{}]}, "$.a[0].b.c", {"a": [{"b": {"c": "X"}}]}),
        ({"a": [None]}, "$.a[0].b", {"a": [{"b": "X"}]}),
        ({}, "$['x-y']", {"x-y": "X"}),
        ({}, "$['a','b']", {}),
        ({"a": 1}, "$['a','b']", {"a": "X"}),
        ({"a": 1, "b": [2]}, "$.*", {"a": "X", "b": "X"}),
        ({"a": {"a": 1}, "b": {"a": 2}}, "$..a", {"a": "X", "b": {"a": "X"}}),
        ({"a": 1}, "$..", "X"),
    ],
)
def test_replacing_makes_missing_maps_and_never_longer_lists(
    document: Any, path: str, wanted: Any
) -> None:
    assert _replaced(document, path) == wanted


def test_a_value_is_not_searched_for_the_path_that_brought_it() -> None:
    assert _replaced({"a": 1}, "$..a", {"a": 2}) == {"a": {"a": 2}}


def test_places_share_nothing_with_each_other_or_the_value() -> None:
    value: dict[str, Any] = {}
    document = _replaced({"a": 1, "b": 2}, "$.*", value)
    document["a"]["changed"] = True
    assert document["b"] == {} == value


@pytest.mark.parametrize(
    ("document", "path", "complaint"),
    [
        ({"a": "text"}, "$.a.b", "member 'b' cannot be found in 'text'"),
        ({"a": [1]}, "$.a.b", "member 'b' cannot be found in a list"),
        ({"a": {}}, "$.a[0]", "item 0 cannot be found in a map"),
        ({"a": 5}, "$.a[0]", "item 0 cannot be found in 5"),
        ({"a": {"b": 1}}, "$.a.0", "item 0 cannot be found in a map"),
    ],
)
def test_a_definite_path_through_the_wrong_kind_of_value_is_an_error_and_changes_nothing(
    document: Any, path: str, complaint: str
) -> None:
    kept = copy.deepcopy(document)
    with pytest.raises(UnreachablePath) as caught:
        replaced(document, parse_path(path), "X")
    assert complaint in str(caught.value)
    assert document == kept


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from("abc"),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=12,
)
STEPS = st.lists(
    st.sampled_from([".a", ".b", "[0]", ".1", ".*", "[*]", "['a','c']", "[0:2]", "..", "..a"]),
    max_size=4,
)


@given(JSON, STEPS)
def test_after_replacing_every_outermost_place_found_holds_the_value(
    document: Any, steps: list[str]
) -> None:
    path = parse_path("$" + "".join(steps))
    marker = "replaced"
    before = len(found(document, path))
    try:
        result = replaced(copy.deepcopy(document), path, marker)
    except UnreachablePath:
        assert before == 0
        return
    if not before:
        assert result == document or path.definite
    assert (marker in str(result)) or not before


@given(JSON, STEPS)
def test_replacing_twice_is_replacing_once(document: Any, steps: list[str]) -> None:
    path = parse_path("$" + "".join(steps))
    try:
        once = replaced(copy.deepcopy(document), path, 7)
    except UnreachablePath:
        return
    if path.definite and found(once, path):
        assert replaced(copy.deepcopy(once), path, 7) == once
