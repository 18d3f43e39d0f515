"""Which rows changed since a reader last looked; who is too far behind looks at all."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skerry.scheduler.table import ChangeLog


@given(st.lists(st.integers(0, 9), max_size=60), st.integers(0, 60), st.integers(2, 20))
def test_a_reader_gets_everything_after_its_position_or_hears_that_it_is_forgotten(
    rows: list[int], looked: int, limit: int
) -> None:
    log = ChangeLog(limit)
    position = None
    for index, row in enumerate(rows):
        if index == looked:
            position = log.position
        log.append(row)
    if position is None:
        assert log.since(log.position) == []
        return
    found = log.since(position)
    missed = rows[looked:]
    assert found == missed or (found is None and len(missed) > limit // 2)


def test_a_reader_that_knows_everything_gets_nothing() -> None:
    log = ChangeLog(4)
    for row in range(9):
        log.append(row)
    assert log.position == 9
    assert log.since(9) == []
    assert log.since(0) is None
