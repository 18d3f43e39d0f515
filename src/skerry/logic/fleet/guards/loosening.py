"""Whether a guard would be looser than it was.

Anybody who may write a guard may make it stricter. Who makes it looser takes a decision that the
guard exists to have taken by few, so it needs ``bypass`` of the guard as it was.
"""

from __future__ import annotations

from skerry.logic.fleet.guards.spec import Budget, Guard, strictest


def is_looser(old: Guard, new: Guard) -> bool:
    """Tell whether anything that *old* stops might pass *new*."""
    if old.enforces and not new.enforces:
        return True
    if (old.workspaces, old.placements) != (new.workspaces, new.placements):
        return True
    if not (old.users >= new.users and old.groups >= new.groups):
        return True
    kept = set(old.protections) <= set(new.protections) and set(old.freezes) <= set(new.freezes)
    return not kept or not all(
        any(_covers(each, budget) for each in new.budgets) for budget in old.budgets
    )


def stricter_measures(old: Guard, new: Guard) -> list[str]:
    """Return what *new* counts more loosely than *old*, which counts beside it."""
    return sorted(
        {
            budget.of
            for budget in old.budgets
            for each in new.budgets
            if old.enforces and each.of == budget.of and not _covers(each, budget)
        }
    )


def _covers(new: Budget, old: Budget) -> bool:
    """Tell whether everything that exceeds *old* exceeds *new* as well."""
    if new.of != old.of or strictest((new.action, old.action)) != new.action:
        return False
    if (new.max or 0) > (old.max or 0) or (new.percent or 0) > (old.percent or 0):
        return False
    if old.window is None:
        return True
    return new.window is not None and new.window >= old.window
