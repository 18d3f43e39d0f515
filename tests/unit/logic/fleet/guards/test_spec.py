"""PlacementGuards as they are read; what is wrong in one part leaves the others as they are."""

from __future__ import annotations

from typing import Any

from skerry.logic.fleet.guards.spec import FLOOR, Budget, Guard, guard_of, strictest


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
