"""Whether a Location has a live SyncTarget."""

from __future__ import annotations

import pytest

from skerry.logic.fleet.placement.strategy import Strategy
from skerry.scheduler.framework.state import CycleState
from skerry.scheduler.placement.plugins.location_ready import LocationReady
from skerry.scheduler.placement.wish import Wish
from tests.kit.scheduler.locations import WISHES, assert_many_as_each, table


@pytest.mark.parametrize("wish", WISHES, ids=str)
def test_many_are_judged_as_each(wish: Wish) -> None:
    assert_many_as_each(LocationReady, wish)


def test_who_is_not_ready_is_refused_only_where_that_is_asked_for() -> None:
    rows, state = table(), CycleState()
    plugin = LocationReady({}, rows)

    def passes(strategy: Strategy) -> list[int]:
        wish = Wish(strategy)
        every = rows.rows().tolist()
        return [r for r in every if plugin.filter(state, wish, rows.target(r)) is None]

    assert passes(Strategy()) == [0, 1, 2, 3]
    assert passes(Strategy(only_ready=True)) == [0, 2]
    assert plugin.filter_all(state, Wish(Strategy()), rows.rows()) is None
    scores = plugin.score_all(state, Wish(Strategy()), rows.rows()).tolist()
    assert scores == [100, 0, 100, 0], "who is ready is preferred"


def test_answers_are_shared_by_all_that_ask_alike() -> None:
    plugin = LocationReady({}, table())
    assert plugin.signature(Wish(Strategy(1))) == plugin.signature(Wish(Strategy(2), held=True))
    assert plugin.signature(Wish(Strategy())) != plugin.signature(Wish(Strategy(only_ready=True)))
