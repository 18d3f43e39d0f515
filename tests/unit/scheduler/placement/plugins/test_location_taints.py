"""Whom the taints of a Location keep out, and drive out."""

from __future__ import annotations

import pytest

from skerry.logic.fleet.placement.strategy import Strategy
from skerry.scheduler.framework.state import CycleState
from skerry.scheduler.placement.plugins.location_taints import LocationTaints
from skerry.scheduler.placement.wish import Wish
from tests.kit.scheduler.locations import WISHES, assert_many_as_each, table


@pytest.mark.parametrize("wish", WISHES, ids=str)
def test_many_are_judged_as_each(wish: Wish) -> None:
    assert_many_as_each(LocationTaints, wish)


def test_who_holds_a_workload_is_driven_out_by_no_execute_only() -> None:
    rows = table()
    plugin, state = LocationTaints({}, rows), CycleState()

    def passes(*, held: bool) -> list[int]:
        wish = Wish(Strategy(), held)
        return [
            r for r in rows.rows().tolist() if plugin.filter(state, wish, rows.target(r)) is None
        ]

    assert passes(held=False) == [0, 3]
    assert passes(held=True) == [0, 1, 3]
