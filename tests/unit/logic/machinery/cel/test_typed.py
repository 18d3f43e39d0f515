"""What a run may spend, and how large values can be."""

from __future__ import annotations

import pytest

from skerry.logic.machinery.cel.typed import COST, UNKNOWN_SIZE, CostExceeded, charge, size_of
from skerry.logic.machinery.cel.types import BOOL, DYN, INT, STRING, CelType, list_of, map_of


def test_a_run_may_spend_all_it_has_and_no_more() -> None:
    scope = {COST: 10.0}
    charge(scope, 4)
    charge(scope, 6)
    assert scope[COST] == 0
    with pytest.raises(CostExceeded):
        charge(scope, 0.1)


@pytest.mark.parametrize(
    ("kind", "size"),
    [
        (CelType("string", size=7), 7),
        (STRING, UNKNOWN_SIZE),
        (list_of(INT), UNKNOWN_SIZE),
        (list_of(INT, 3), 3),
        (map_of(STRING, INT, 0), 0),
        (INT, 1),
        (BOOL, 1),
        (DYN, 1),
    ],
)
def test_what_nobody_bounds_may_be_as_large_as_a_request(kind: CelType, size: int) -> None:
    assert size_of(kind) == size
