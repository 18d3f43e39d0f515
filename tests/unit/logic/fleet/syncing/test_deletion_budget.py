"""How much may be deleted before a person is asked."""

from __future__ import annotations

from skerry.logic.fleet.syncing.deletion_budget import Budget, verdict


def test_the_budget_holds_what_is_too_much_and_lets_go_exactly_what_was_approved() -> None:
    budget = Budget(count=2, percent=10)
    pending = [f"configmaps/n/c{i}" for i in range(5)]
    assert verdict(budget, placed=100, recent=0, pending=pending, approved="").allowed
    held = verdict(budget, placed=20, recent=0, pending=pending, approved="")
    assert not held.allowed
    assert held.name in held.message
    assert verdict(budget, placed=20, recent=0, pending=pending, approved=held.name).allowed
    more = [*pending, "configmaps/n/another"]
    assert not verdict(budget, placed=20, recent=0, pending=more, approved=held.name).allowed
