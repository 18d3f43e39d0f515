"""What strategies, taints and tolerations are read as."""

from __future__ import annotations

from skerry.logic.fleet.placement.strategy import Spread, Strategy, strategy_of, taints_of
from skerry.logic.machinery.taints import Taint, Toleration


def test_a_strategy_is_read_with_its_defaults() -> None:
    assert strategy_of(None) is None
    assert strategy_of({}) is None
    read = strategy_of(
        {
            "numberOfLocations": 3,
            "spread": [{"topologyKey": "region"}],
            "tolerations": [{"key": "k", "value": "v"}],
            "onlyReady": True,
        }
    )
    expected = Strategy(3, (Spread("region", 1),), (Toleration("k", "", "v", ""),), True)
    assert read == expected


def test_what_is_no_taint_is_passed_over() -> None:
    text = "a=b:NoSchedule, c:NoExecute,nonsense,:NoSchedule,d=e:Unknown,"
    assert taints_of(text) == (Taint("a", "b", "NoSchedule"), Taint("c", "", "NoExecute"))
