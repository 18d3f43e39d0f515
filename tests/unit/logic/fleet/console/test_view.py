"""Views of edges: their differences are small, and lead from one to the other."""

from __future__ import annotations

import base64
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.fleet.console.view import MAX_TEXT_BYTES, patch, sentence, text

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
