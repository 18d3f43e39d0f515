"""Who lacks a label that is spread over is in no domain."""

from __future__ import annotations

from skerry.logic.fleet.placement.strategy import Spread, Strategy
from skerry.scheduler.framework.state import CycleState
from skerry.scheduler.framework.status import SKIP
from skerry.scheduler.placement.plugins.location_spread import LocationSpread
from skerry.scheduler.placement.wish import Wish
from tests.kit.scheduler.locations import table


def test_only_newcomers_to_a_number_of_locations_need_the_labels_of_the_spread() -> None:
    rows = table()
    plugin, state = LocationSpread({}, rows), CycleState()
    spread = Strategy(2, (Spread("region", 1),))
    assert plugin.pre_filter(state, Wish(spread)) == (None, None)
    assert plugin.pre_filter(state, Wish(spread, held=True)) == (None, SKIP)
    assert plugin.pre_filter(state, Wish(Strategy(None, spread.spread))) == (None, SKIP)
    refused = plugin.filter(state, Wish(spread), rows.target(0))
    assert refused is not None
    assert refused.message == "location(s) had no label region"
    assert plugin.filter(state, Wish(spread), rows.target(1)) is None
