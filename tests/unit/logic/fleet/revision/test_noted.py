"""A mailbox tells which revisions it is at."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skerry.api.edge import REVISIONS, edge_placement_ref
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.revision.noted import noted_revisions, noted_text

_refs = st.builds(edge_placement_ref, st.sampled_from(["c1", "c2"]), st.sampled_from(["web", "db"]))


@given(st.dictionaries(_refs, st.integers(1, 10**9)))
def test_what_is_noted_comes_back(found: dict[ObjectRef, int]) -> None:
    assert noted_revisions({"annotations": {REVISIONS: noted_text(found)}}) == found


def test_what_is_malformed_says_nothing() -> None:
    text = "web=1,c/db=x,c/web=²,c/ok=3,=,/"
    assert noted_revisions({"annotations": {REVISIONS: text}}) == {edge_placement_ref("c", "ok"): 3}
    assert noted_revisions({}) == {}
