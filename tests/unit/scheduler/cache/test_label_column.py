"""A label over all rows: numbers for values, and which rows satisfy a requirement."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.machinery.selectors import (
    DOES_NOT_EXIST,
    EXISTS,
    IN,
    NOT_IN,
    Requirement,
    Selector,
)
from skerry.scheduler.cache.label_column import LabelColumn

ROWS = 6
SETTINGS = st.lists(
    st.tuples(st.integers(0, ROWS - 1), st.sampled_from([None, "a", "b", "c"])), max_size=25
)
REQUIREMENTS = st.sampled_from(
    [
        Requirement("zone", IN, ("a", "b")),
        Requirement("zone", NOT_IN, ("a",)),
        Requirement("zone", EXISTS, ()),
        Requirement("zone", DOES_NOT_EXIST, ()),
    ]
)


def column_of(settings: list[tuple[int, str | None]]) -> tuple[LabelColumn, dict[int, str]]:
    column, expected = LabelColumn("zone", ROWS), dict[int, str]()
    for row, value in settings:
        column.set(row, value)
        if value is None:
            expected.pop(row, None)
        else:
            expected[row] = value
    return column, expected


@given(SETTINGS, REQUIREMENTS)
def test_a_mask_says_of_each_row_what_the_selector_says_of_its_label(
    settings: list[tuple[int, str | None]], requirement: Requirement
) -> None:
    column, expected = column_of(settings)
    selector = Selector([requirement])
    labels = [{"zone": expected[row]} if row in expected else {} for row in range(ROWS)]
    assert column.mask(requirement, np.arange(ROWS)).tolist() == [
        selector.matches(each) for each in labels
    ]


@given(SETTINGS)
def test_numbers_of_rows_by_value_follow_every_change(
    settings: list[tuple[int, str | None]],
) -> None:
    column, expected = column_of(settings)
    held = list(expected.values())
    assert column.labelled == len(held)
    assert dict(zip(column.values, column.population, strict=True)) == {
        value: held.count(value) for value in column.values
    }
    assert column.one_to_one is (len(set(held)) == len(held))


def test_a_live_row_without_the_label_has_no_domain_of_its_own() -> None:
    column, _ = column_of([(0, "a"), (1, "b")])
    assert column.one_to_one
    column.unlabelled = 1
    assert not column.one_to_one


def test_rows_that_are_added_lack_the_label() -> None:
    column, _ = column_of([(0, "a")])
    column.grow(2 * ROWS)
    assert column.codes.tolist() == [0] + [-1] * (2 * ROWS - 1)
