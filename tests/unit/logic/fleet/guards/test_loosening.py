"""A guard may become stricter unasked, and looser only by those who bypass it."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.logic.fleet.guards.loosening import is_looser, stricter_measures
from skerry.logic.fleet.guards.spec import Guard, guard_of

_BUDGET = {"of": "DestinationsRemoved", "max": 50, "percent": 5, "window": "10m"}
_FREEZE = {"name": "f", "schedule": "0 18 * * 5", "duration": "60h", "stops": ["Leaving"]}
_PROTECT = {"kind": "Location", "names": ["hq"], "against": ["Delete"]}
_OLD: dict[str, Any] = {
    "budgets": [_BUDGET],
    "freezes": [_FREEZE],
    "protect": [_PROTECT],
    "bypass": [{"group": "commanders"}],
}


def guard(**spec: Any) -> Guard:
    return guard_of({"metadata": {"name": "g"}, "spec": {**_OLD, **spec}})


@pytest.mark.parametrize(
    "spec",
    [
        {"mode": "Observe"},
        {"budgets": []},
        {"budgets": [{**_BUDGET, "max": 51}]},
        {"budgets": [{**_BUDGET, "percent": 6}]},
        {"budgets": [{**_BUDGET, "window": "9m"}]},
        {"budgets": [{k: v for k, v in _BUDGET.items() if k != "window"}]},
        {"budgets": [{**_BUDGET, "action": "Warn"}]},
        {"budgets": [{**_BUDGET, "of": "ObjectsRemoved"}]},
        {"freezes": []},
        {"freezes": [{**_FREEZE, "duration": "59h"}]},
        {"protect": []},
        {"bypass": [{"group": "commanders"}, {"user": "ann"}]},
        {"placements": {"selector": {"matchLabels": {"a": "b"}}}},
    ],
)
def test_what_lets_more_pass_is_looser(spec: dict[str, Any]) -> None:
    assert is_looser(guard(), guard(**spec))


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"budgets": [{**_BUDGET, "max": 49}]},
        {"budgets": [_BUDGET, {"of": "ObjectsRemoved", "max": 1}]},
        {"budgets": [{**_BUDGET, "window": "1h"}]},
        {"budgets": [{**_BUDGET, "action": "Deny"}]},
        {"freezes": [_FREEZE, {**_FREEZE, "name": "g"}]},
        {"bypass": []},
    ],
)
def test_what_lets_no_more_pass_is_not_looser(spec: dict[str, Any]) -> None:
    assert not is_looser(guard(), guard(**spec))


def test_what_a_guard_for_all_counts_more_strictly_is_named_once() -> None:
    looser = guard(budgets=[{**_BUDGET, "max": 51}, {**_BUDGET, "window": "9m"}])
    assert stricter_measures(guard(), looser) == ["DestinationsRemoved"]
    assert stricter_measures(guard(), guard()) == []
    assert stricter_measures(guard(), guard(budgets=[{"of": "ObjectsRemoved", "max": 9}])) == []
    assert stricter_measures(guard(mode="Observe"), looser) == []
