"""Views of edges: their differences are small, and lead from one to the other."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from skerry.api.errors import BadRequest
from skerry.logic.fleet.console.edges import STATES, EdgeIndex
from skerry.logic.fleet.console.view import (
    MAX_GROUPS,
    MAX_LABELS,
    MAX_TEXT_BYTES,
    Window,
    cell_at,
    groups_of,
    keys_of,
    map_order,
    parse_window,
    patch,
    sentence,
    shown_labels,
    text,
)
from tests.kit.chain.console_objects import sync_target

CELLS = st.binary(max_size=60).map(lambda raw: base64.b64encode(raw).decode())
ROWS = st.lists(st.dictionaries(st.sampled_from("ab"), st.integers(0, 2)), max_size=4)
VIEWS = st.fixed_dictionaries(
    {"cells": CELLS, "rows": ROWS, "groups": ROWS, "total": st.integers(0, 3)},
    optional={"at": st.just("then"), "facets": st.just({})},
)


def applied(view: dict[str, Any], difference: dict[str, Any]) -> dict[str, Any]:
    """Lay a patch over a view, as the page does."""
    after = dict(view)
    for key, value in difference.items():
        if value is None:
            del after[key]
        elif key == "cells" and isinstance(value, list):
            raw = bytearray(base64.b64decode(view["cells"]))
            for at, state in value:
                raw[at] = state
            after["cells"] = base64.b64encode(bytes(raw)).decode()
        elif key in ("rows", "groups") and isinstance(value, dict):
            after[key] = list(view[key])
            for at, entry in value.items():
                after[key][int(at) : int(at) + 1] = [entry]
        else:
            after[key] = value
    return after


@given(VIEWS, VIEWS)
def test_a_patch_leads_from_one_view_to_the_other(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    assert applied(before, patch(before, after)) == after
    assert patch(after, after) == {}


def test_a_hundred_changed_edges_of_ten_thousand_are_a_small_patch() -> None:
    before = bytes(10_000)
    after = bytes(4 if at % 100 == 0 else 0 for at in range(10_000))
    views = [{"cells": base64.b64encode(raw).decode(), "rows": []} for raw in (before, after)]
    difference = patch(views[0], views[1])
    assert len(difference["cells"]) == 100
    assert len(str(difference)) < 2000


@given(st.text(max_size=600))
def test_text_is_one_bounded_line(value: str) -> None:
    shown = text(value)
    assert len(shown.encode("utf-8", "replace")) <= MAX_TEXT_BYTES
    assert shown.isprintable()


def test_the_sentence_says_what_needs_attention() -> None:
    none = dict.fromkeys(("healthy", "progressing", "degraded", "unhealthy", "away", "unknown"), 0)
    assert sentence(none, filtered=False) == "no edges yet"
    assert sentence(none, filtered=True) == "no edge matches"
    assert sentence({**none, "healthy": 1}, filtered=False) == "the only 1 edge is healthy"
    assert sentence({**none, "healthy": 9871}, filtered=False) == "all 9,871 edges are healthy"
    busy = {**none, "healthy": 1, "progressing": 2}
    assert sentence(busy, filtered=False) == "1 of 3 edges is healthy; 2 progressing"
    bad = {**none, "healthy": 9, "away": 1}
    assert sentence(bad, filtered=True) == "1 of 10 matching edges needs attention: 1 away"


@pytest.mark.parametrize(
    ("view", "words"),
    [
        ({"by": 7}, "by: want the key of a label"),
        ({"by": "x" * 400}, "by: want the key of a label"),
        ({"rows": "0-50"}, "rows: want"),
        ({"rows": [0]}, "rows: want"),
        ({"rows": [0, True]}, "rows: want"),
        ({"rows": [-1, 5]}, "rows: want"),
        ({"rows": [5, 4]}, "rows: want"),
        ({"rows": [0, 201]}, "at most 200 at once, found 201"),
    ],
)
def test_a_window_that_makes_no_sense_is_refused_by_name(view: dict[str, Any], words: str) -> None:
    with pytest.raises(BadRequest, match=words):
        parse_window(view)


def test_a_window_is_the_first_rows_unless_others_are_asked_for() -> None:
    assert parse_window({}) == Window("", 0, 50)
    assert parse_window({"by": "env", "rows": [10, 210]}) == Window("env", 10, 210)
    assert parse_window({"by": None, "rows": [3, 3]}) == Window("", 3, 3)


@pytest.mark.parametrize(
    ("counts", "line"),
    [
        ({}, "no edges yet"),
        ({"healthy": 1}, "the only 1 edge is healthy"),
        ({"healthy": 1200}, "all 1,200 edges are healthy"),
        ({"healthy": 1, "unknown": 2}, "1 of 3 edges is healthy; 2 unknown"),
        ({"progressing": 1, "unknown": 1}, "0 of 2 edges are healthy; 1 progressing, 1 unknown"),
        ({"away": 1}, "1 of 1 edge needs attention: 1 away"),
        (
            {"healthy": 5, "away": 1, "unhealthy": 2, "degraded": 3, "unknown": 4},
            "6 of 15 edges need attention: 1 away, 2 unhealthy, 3 degraded",
        ),
    ],
)
def test_a_sentence_says_what_is_worst_and_how_many(counts: dict[str, int], line: str) -> None:
    every = dict.fromkeys(STATES, 0) | counts
    assert sentence(every, filtered=False) == line


def test_a_filter_without_a_match_is_not_taken_for_an_empty_fleet() -> None:
    nobody = dict.fromkeys(STATES, 0)
    assert sentence(nobody, filtered=True) == "no edge matches"
    some = nobody | {"healthy": 2}
    assert sentence(some, filtered=True) == "all 2 matching edges are healthy"


def _fleet(labels: Iterable[Mapping[str, str]]) -> EdgeIndex:
    """One edge for each of *labels*, in this order by name."""
    index = EdgeIndex()
    for number, each in enumerate(labels):
        index.put_sync_target(sync_target("imw", f"e{number:04}", each))
    return index


def test_beyond_many_groups_the_smallest_are_one_and_stand_before_those_without_the_label() -> None:
    several = [{"zone": f"z{number:03}"} for number in range(MAX_GROUPS)]
    few = [{"zone": f"a{number}"} for number in range(5)]
    index = _fleet([*several, *several, *few, {}, {}])
    found = groups_of(index, index.present, "zone")
    assert len(found) == MAX_GROUPS + 2
    assert [group.value for group in found[:-2]] == sorted(each["zone"] for each in several)
    others, without = found[-2:]
    assert (others.value, len(others.members)) == ("…", 5)
    assert (without.value, len(without.members)) == ("", 2)
    whole = BitMap.union(*(group.members for group in found))
    assert whole == index.present
    assert sum(len(group.members) for group in found) == len(whole), "nobody is in two groups"


def test_without_a_label_to_group_by_all_are_one_group_and_nobody_is_none() -> None:
    index = _fleet([{}, {}])
    [group] = groups_of(index, index.present, "")
    assert (group.value, len(group.members)) == ("", 2)
    assert groups_of(index, BitMap(), "") == []
    assert groups_of(index, BitMap(), "zone") == []


def test_a_cell_of_the_map_is_the_edge_at_that_place_and_none_beyond() -> None:
    index = _fleet([{"zone": "b"}, {"zone": "a"}, {}, {"zone": "a"}])
    everything = index.present
    order = [int(number) for number in map_order(index, groups_of(index, everything, "zone"))]
    assert [cell_at(index, everything, "zone", at) for at in range(4)] == order
    assert cell_at(index, everything, "zone", 4) is None
    assert cell_at(index, everything, "zone", -1) is None
    assert cell_at(index, BitMap(), "zone", 0) is None


def test_only_keys_of_edges_that_somebody_may_see_are_offered() -> None:
    index = _fleet([{"zone": "a"}, {"secret": "x"}])
    first = index.number_of(("imw", "e0000"))
    assert first is not None
    assert keys_of(index, BitMap([first])) == ["zone"]
    assert keys_of(index, index.present) == ["secret", "zone"]
    assert keys_of(index, BitMap()) == []


def test_labels_are_shown_in_order_each_bounded_and_not_without_end() -> None:
    labels = {f"k{number:03}": "x" * 1000 for number in range(2 * MAX_LABELS)}
    shown = shown_labels(labels)
    assert list(shown) == sorted(labels)[:MAX_LABELS]
    assert all(len(value.encode()) <= MAX_TEXT_BYTES for value in shown.values())
    assert shown_labels({"b": "1", "a": "two\nlines"}) == {"a": "two lines", "b": "1"}
