"""Copies record which generation of their source they are of, where that is asked for."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.kinds import GroupResource
from skerry.logic.fleet.tables.completeness import Verdict
from skerry.logic.fleet.translation.copies import copied, digest, labelled, replacement
from skerry.logic.fleet.translation.source_generation import recorded_generation, with_generation
from tests.kit.chain.translation_objects import GO, There

MAPS = GroupResource("", "configmaps")
COPY: dict[str, Any] = {"metadata": {"name": "n", "annotations": {"a": "b"}}, "data": {"k": "v"}}


@given(st.integers(1, 2**62), st.integers(1, 2**62))
def test_what_is_recorded_is_read_back_and_is_no_content(first: int, then: int) -> None:
    one, other = with_generation(COPY, first), with_generation(COPY, then)
    assert recorded_generation(one) == first
    assert recorded_generation(replacement(MAPS, one, other)) == then
    assert digest(MAPS, one) == digest(MAPS, other) == digest(MAPS, COPY)


@pytest.mark.parametrize("text", [None, "", "-1", "x", "\u0663", "9" * 400])
def test_what_is_no_generation_is_none(text: str | None) -> None:
    notes = {"edge.kcp.io/source-generation": text}
    assert recorded_generation({"metadata": {"annotations": notes}}) == 0


def test_nobody_forges_the_record_on_a_source() -> None:
    forged = with_generation(COPY, 99)
    assert recorded_generation(labelled(copied(MAPS, forged))) == 0


def asked(there: There, generation: int, **copy: Any) -> Verdict:
    there.placed(meta={"generation": generation}, rv=str(generation))
    there.place("one", namespaceSelector=GO, reportedState="Aggregate")
    if copy:
        there.copy(**copy)
    row = there.diff()
    if row.render is not None:
        assert recorded_generation(row.render()) == generation
    return row.verdict


def test_a_copy_is_written_for_the_record_only_where_that_is_asked_for() -> None:
    there = There()
    there.placed(meta={"generation": 3})
    there.copy()
    assert there.diff().verdict is Verdict.NONE
    assert asked(there, 3) is Verdict.UPDATE
    recorded = {"edge.kcp.io/source-generation": "3"}
    assert asked(there, 3, notes=recorded, rv="2") is Verdict.NONE
    assert asked(there, 4) is Verdict.UPDATE
    # Nobody asks any more: what is recorded stays, and nothing is written for it.
    there.place("one", namespaceSelector=GO)
    assert there.diff().verdict is Verdict.NONE


def test_a_kind_that_counts_no_generations_records_none() -> None:
    there = There()
    there.placed()
    there.place("one", namespaceSelector=GO, reportedState="Aggregate")
    there.copy()
    assert there.diff().verdict is Verdict.NONE
