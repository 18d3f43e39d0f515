"""Budgets of PlacementGuards: which removals may happen now, and which are held for a person.

The one decision that all guards come down to. A *loss* is what an EdgePlacement is about to lose,
destinations or objects; a *hold* is a loss that awaits confirmation; the *book* has what was
removed lately, so that budgets with a window count it; the *floor* is the budget that applies where
no guard does.

*All or nothing*: a loss that exceeds a budget is held whole, so that a person who is asked sees all
of it. What has been charged within a window already (it went and came back, or a request for it was
admitted) counts once and goes. A hold does not end because time passes: windows are counted back
from when it began. It ends when somebody confirms exactly what is held, or when so much of it is
wanted again that the rest fits the budget. Deleting the guard that held it does not use up the
budgets of the others: what that guard would have let pass without asking is charged to them still.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from skerry.logic.fleet.guards.book import NOBODY, Book, Charge, Hold, Members
from skerry.logic.fleet.guards.spec import FLOOR, Budget, Guard
from skerry.logic.fleet.guards.token import hold_name
from skerry.logic.machinery.durations import format_duration

DESTINATIONS, OBJECTS = "destinations", "objects"


class Rule(NamedTuple):
    """A budget and whose it is; the empty name is the built-in floor's."""

    guard: str
    budget: Budget
    enforces: bool = True

    def __str__(self) -> str:
        return f"PlacementGuard {self.guard}" if self.guard else "the built-in floor"


FLOOR_RULE = Rule("", FLOOR)


def rules_of(guards: Iterable[Guard], measure: str, *, floor: bool) -> tuple[Rule, ...]:
    """Return what guards say about one measure, and the floor if it counts."""
    found = [
        Rule(guard.name, budget, guard.enforces)
        for guard in guards
        for budget in guard.budgets
        if budget.of == measure
    ]
    return (FLOOR_RULE, *found) if floor else tuple(found)


@dataclass(frozen=True, slots=True)
class Loss:
    """What one placement would lose; ``total`` is how many it has.

    ``protected`` has the members that guards protect, each with the guard and a sentence.
    """

    uid: str
    removed: Members
    total: int
    protected: Mapping[bytes, tuple[str, str]] = field(default_factory=dict)
    # What the members are, for people.
    what: str = DESTINATIONS


class Excess(NamedTuple):
    """A budget that a loss would exceed."""

    rule: Rule
    number: int
    total: int
    limit: int
    # How many would have gone unasked.
    free: int

    def text(self, what: str = DESTINATIONS) -> str:
        """Return a sentence for people."""
        window = self.rule.budget.window
        within = "in one decision" if window is None else f"within {format_duration(window)}"
        return (
            f"{self.rule}: removals would come to {self.number:,} of {self.total:,} {what} "
            f"{within} (budget {self.limit:,})"
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of a loss: ``held`` stays for now, everything else goes.

    ``book`` is to be written before anything goes. ``confirmed``: a person has, and the
    confirmation is used up. ``warnings`` are of budgets that warn or observe.
    """

    book: Book
    held: Members = NOBODY
    confirmed: bool = False
    warnings: tuple[Excess, ...] = ()


def excesses(
    loss: Members, total: int, rules: Iterable[Rule], book: Book, now: datetime
) -> list[Excess]:
    """Return the budgets that *loss*, on top of what was charged, would exceed."""
    found = []
    for rule in rules:
        window = rule.budget.window
        charged = NOBODY if window is None else book.charged(now - window)
        number, limit = len(charged | loss), rule.budget.limit(total)
        if number > limit:
            found.append(Excess(rule, number, total, limit, max(0, limit - len(charged))))
    return found


def judge(loss: Loss, rules: Sequence[Rule], book: Book, confirm: str, now: datetime) -> Verdict:
    """Decide what of *loss* may go; *confirm* is what a person has written."""
    hold = book.hold
    at = now if hold is None else min(now, hold.since)
    total = loss.total if hold is None or not hold.of else min(loss.total, hold.of)
    # What has been counted needs no budget. It may be protected since, and that asks for a person.
    counted = _counted(rules, book, at) - loss.protected.keys()
    fresh = loss.removed - book.paid(now) - counted
    if not fresh:
        return Verdict(Book(book.charges))
    exceeded = excesses(fresh, total, rules, book, at)
    stopping = [each for each in exceeded if each.rule.enforces and each.rule.budget.stops]
    warnings = tuple(each for each in exceeded if each not in stopping)
    held = _hold(loss, fresh, total, stopping, hold, rules, now)
    if held is None:
        return Verdict(_charged(book, fresh, rules, now), warnings=warnings)
    if confirm == held.name:
        return Verdict(Book(book.charges), confirmed=True, warnings=warnings)
    return Verdict(Book(book.charges, held), fresh, warnings=warnings)


def _counted(rules: Sequence[Rule], book: Book, at: datetime) -> Members:
    """Return what counts already in every window there is."""
    windows = [each.budget.window for each in rules if each.budget.window is not None]
    return book.charged(at - min(windows)) if windows else NOBODY


def _charged(book: Book, fresh: Members, rules: Sequence[Rule], now: datetime) -> Book:
    windows = [each.budget.window for each in rules if each.budget.window is not None]
    book = Book(book.charges)
    return book.with_charge(Charge(now, fresh), max(windows)) if windows else book


def _hold(
    loss: Loss,
    fresh: Members,
    total: int,
    stopping: Sequence[Excess],
    before: Hold | None,
    rules: Sequence[Rule],
    now: datetime,
) -> Hold | None:
    """Return what is to be held; None when everything may go."""
    protected = sorted({loss.protected[each] for each in fresh if each in loss.protected})
    orphaned = before is not None and _is_orphaned(before, rules) and len(fresh) > before.limit
    if not stopping and not protected and not orphaned:
        return None
    texts = [each.text(loss.what) for each in stopping] + [text for _, text in protected]
    guards = {each.rule.guard for each in stopping} | {guard for guard, _ in protected}
    limits = [each.free for each in stopping] + [0 for _ in protected]
    if orphaned and before is not None:
        # A guard that asked is gone; what it asked stays asked.
        texts = texts or [before.why]
        guards |= set(before.guards)
        limits.append(before.limit)
    return Hold(
        hold_name(loss.uid, fresh),
        len(fresh),
        min(limits),
        total,
        now if before is None else before.since,
        "; ".join(texts),
        tuple(sorted(guards - {""})),
    )


def _is_orphaned(hold: Hold, rules: Sequence[Rule]) -> bool:
    """Tell whether a guard that asked enforces no more, or has gone."""
    return not set(hold.guards) <= {each.guard for each in rules if each.enforces}
