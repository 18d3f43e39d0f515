"""Answers of plugins: which refuse, whose they are, and what several come to."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

from skerry.scheduler.framework.status import (
    Code,
    Status,
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
