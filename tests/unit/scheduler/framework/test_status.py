"""Answers of plugins: which refuse, whose they are, and what several come to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.scheduler.framework.status import (
    Code,
    Status,
    error,
    merged,
    unresolvable,
    unschedulable,
)

STATUSES = st.lists(
    st.builds(Status, st.sampled_from(list(Code)), st.tuples(st.sampled_from("abc"))), max_size=5
)


@pytest.mark.parametrize("code", Code)
def test_only_refusals_turn_an_item_down(code: Code) -> None:
    refusals = (Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.PENDING)
    assert Status(code).rejected is (code in refusals)
    assert code.label


def test_an_answer_is_signed_once() -> None:
    signed = unschedulable("no").of("A")
    assert (signed.plugin, signed.of("B").plugin) == ("A", "A")


@given(STATUSES)
def test_several_answers_have_every_reason_in_order(found: list[Status]) -> None:
    result = merged(found)
    if not found:
        assert result is None
        return
    assert result is not None
    assert result.reasons == tuple(reason for each in found for reason in each.reasons)
    assert result.code in {each.code for each in found}


def test_the_gravest_answer_counts() -> None:
    found = [unschedulable("a"), error("b"), unresolvable("c")]
    assert merged(found) == Status(Code.ERROR, ("a", "b", "c"))
    without = merged([unschedulable("a"), unresolvable("c")])
    assert without is not None
    assert (without.code, without.message) == (Code.UNRESOLVABLE, "a, c")
    pending = merged([Status(Code.PENDING), unschedulable("a")])
    assert pending is not None
    assert pending.code is Code.PENDING
