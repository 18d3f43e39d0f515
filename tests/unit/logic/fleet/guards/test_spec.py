"""PlacementGuards as they are read; what is wrong in one part leaves the others as they are."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from skerry.logic.fleet.guards.spec import (
    FLOOR,
    Budget,
    Guard,
    guard_errors,
    guard_of,
    guard_warnings,
    strictest,
)


def guard(**spec: Any) -> Guard:
    return guard_of({"metadata": {"name": "g"}, "spec": spec})


def test_a_budget_is_exceeded_above_both_numbers() -> None:
    assert Budget("DestinationsRemoved", max=50, percent=5).limit(100) == 50
    assert Budget("DestinationsRemoved", max=50, percent=5).limit(9_900) == 495
    assert Budget("DestinationsRemoved", max=50).limit(9_900) == 50
    assert Budget("DestinationsRemoved", percent=5).limit(100) == 5
    assert FLOOR.limit(51) == 50
    assert FLOOR.limit(1_000) == 500


def test_a_guard_without_selectors_concerns_every_placement() -> None:
    assert guard().concerns({}, {})
    prod = guard(placements={"workspaces": {"matchLabels": {"env": "prod"}}})
    assert prod.concerns({"env": "prod"}, {})
    assert not prod.concerns({}, {"env": "prod"})
    web = guard(placements={"selector": {"matchLabels": {"app": "web"}}})
    assert web.concerns({}, {"app": "web"})
    assert not web.concerns({"app": "web"}, {})


def test_users_and_groups_that_bypass_are_let_pass() -> None:
    found = guard(bypass=[{"group": "commanders"}, {"user": "ann"}])
    assert found.lets_pass("ann", [])
    assert found.lets_pass("bob", ["x", "commanders"])
    assert not found.lets_pass("commanders", ["ann"])


def test_a_part_that_is_wrong_is_an_error_and_the_others_guard() -> None:
    found = guard(
        budgets=[{"of": "DestinationsRemoved", "max": 5}, {"of": "DestinationsAdded"}],
        freezes=[{"name": "f", "schedule": "soon", "duration": "1h", "stops": ["Leaving"]}],
    )
    assert [each.of for each in found.budgets] == ["DestinationsRemoved"]
    assert found.freezes == ()
    assert len(found.errors) == 2
    assert "spec.budgets[1]" in found.errors[0]
    assert "spec.freezes[0].schedule" in found.errors[1]


def test_what_is_no_guard_at_all_is_an_error_and_no_exception() -> None:
    found = guard_of({"metadata": {"name": "g"}, "spec": {"budgets": ["a"]}})
    assert "not a PlacementGuard" in found.errors[0]


def test_protected_are_those_named_and_those_selected() -> None:
    [found] = guard(
        protect=[
            {
                "kind": "Location",
                "names": ["hq"],
                "selector": {"matchLabels": {"c": "y"}},
                "against": ["Delete"],
            }
        ]
    ).protections
    assert found.covers("hq", None)
    assert found.covers("oslo", {"c": "y"})
    assert not found.covers("oslo", {})
    assert not found.covers("oslo", None)


def test_of_several_actions_the_strictest_counts() -> None:
    assert strictest(["Warn", "Deny", "Confirm"]) == "Deny"
    assert strictest([]) == ""


FREEZE = {"name": "f", "schedule": "0 20 * * *", "duration": "1h", "stops": ["Leaving"]}
BUDGET = {"of": "DestinationsRemoved", "max": 5}


@pytest.mark.parametrize(
    ("spec", "field", "words"),
    [
        ({"budgets": [{**BUDGET, "window": "500ms"}]}, "spec.budgets[0].window", "1s to 168h"),
        ({"budgets": [{**BUDGET, "window": "169h"}]}, "spec.budgets[0].window", "1s to 168h"),
        ({"budgets": [{"of": "DestinationsRemoved"}]}, "spec.budgets[0]", "max, percent or both"),
        ({"freezes": [{**FREEZE, "timeZone": "Atlantis"}]}, "spec.freezes[0].timeZone", "unknown"),
        ({"freezes": [{**FREEZE, "duration": "0s"}]}, "spec.freezes[0].duration", "more than"),
        ({"freezes": [{**FREEZE, "duration": "25h"}]}, "spec.freezes[0].duration", "longer than"),
        ({"freezes": [{**FREEZE, "duration": "soon"}]}, "spec.freezes[0].duration", "duration"),
        ({"freezes": [{**FREEZE, "schedule": "x"}]}, "spec.freezes[0].schedule", "x"),
    ],
)
def test_what_a_schema_cannot_find_names_its_field_and_what_was_wanted(
    spec: dict[str, Any], field: str, words: str
) -> None:
    error = guard_errors({"metadata": {"name": "g"}, "spec": spec})[0]
    assert error.field == field
    assert words in str(error)
    assert not guard(**spec).budgets
    assert not guard(**spec).freezes


@pytest.mark.parametrize("text", ["abc", "", "5", "1h x"])
def test_a_malformed_duration_is_one_error(text: str) -> None:
    found = guard(
        budgets=[{**BUDGET, "window": text}], freezes=[{**FREEZE, "duration": text}, FREEZE]
    )
    window, duration = found.errors
    assert window.startswith("spec.budgets[0].window: Invalid value")
    assert duration.startswith("spec.freezes[0].duration: Invalid value")
    assert "duration" in window
    assert "want" not in window + duration
    assert (found.budgets, len(found.freezes)) == ((), 1)


def test_a_freeze_of_less_than_no_time_is_an_error() -> None:
    found = guard(freezes=[{**FREEZE, "duration": "-1h"}])
    assert found.freezes == ()
    assert "want more than nothing" in found.errors[0]


def test_a_selector_that_cannot_be_read_concerns_no_placement() -> None:
    broken = {"matchExpressions": [{"key": "a", "operator": "In"}]}
    found = guard(placements={"workspaces": broken})
    assert not found.concerns({"a": "b"}, {})
    assert found.errors[0].startswith("spec.placements.workspaces")


def test_a_window_and_a_freeze_at_their_limits_are_read() -> None:
    found = guard(
        budgets=[{**BUDGET, "window": "1s"}, {**BUDGET, "window": "168h"}],
        freezes=[{**FREEZE, "duration": "24h", "timeZone": "Europe/Oslo"}, FREEZE],
    )
    assert [each.window for each in found.budgets] == [timedelta(seconds=1), timedelta(hours=168)]
    assert [each.zone for each in found.freezes] == ["Europe/Oslo", "UTC"]
    assert found.errors == ()


def test_a_guard_that_guards_nothing_or_lets_nearly_everybody_pass_is_warned_of() -> None:
    assert guard_warnings({"spec": {"budgets": [BUDGET]}}) == ()
    [nothing] = guard_warnings({})
    assert nothing.startswith("spec: no budgets")
    everybody = {
        "budgets": [BUDGET],
        "bypass": [{"user": "ann"}, {"group": "system:authenticated"}],
    }
    [pass_] = guard_warnings({"spec": everybody})
    assert pass_.startswith("spec.bypass[1].group: system:authenticated")
