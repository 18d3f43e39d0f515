"""What there is to tell the owners of placements, and when it is news.

Before a mailbox has been looked at from end to end, nobody knows what there is to tell of it: that
there are no problems would be as wrong as the first of them alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from skerry.api.edge import Mailbox
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.customization.customize import Problem
from skerry.logic.fleet.translation.merging import Told

Where = tuple[Mailbox, ObjectRef]
# Refusals are told beside what merging tells of the same object.
_REFUSED = "refused"
_MERGED = "merged"


class Problems:
    """Problems by placement, each at the mailboxes it is met in."""

    def __init__(self, changed: Callable[[ObjectRef], None]) -> None:
        self._changed = changed
        self._told: dict[tuple[str, Where], tuple[Told, ...]] = {}
        self._by_placement: dict[ObjectRef, dict[tuple[str, Where], list[Problem]]] = {}
        self._complete: set[Mailbox] = set()
        self._waiting: dict[Mailbox, set[ObjectRef]] = {}

    def merged(self, mailbox: Mailbox, item: ObjectRef, told: Iterable[Told]) -> None:
        """Take what is to be told of one object in one mailbox, in place of what was."""
        self._put((_MERGED, (mailbox, item)), tuple(told))

    def refused(self, mailbox: Mailbox, item: ObjectRef, told: Iterable[Told]) -> None:
        """Take what the mailbox said of an attempt to write; nothing when it went well."""
        self._put((_REFUSED, (mailbox, item)), tuple(told))

    def complete(self, mailbox: Mailbox) -> None:
        """Take that everything in a mailbox has been looked at."""
        self._complete.add(mailbox)
        for placement in sorted(self._waiting.pop(mailbox, ())):
            self._changed(placement)

    def awaits(self, placement: ObjectRef, mailboxes: Iterable[Mailbox]) -> bool:
        """Tell whether some of *mailboxes* is still to be looked at; that it was, will be news."""
        pending = [mailbox for mailbox in mailboxes if mailbox not in self._complete]
        for mailbox in pending:
            self._waiting.setdefault(mailbox, set()).add(placement)
        return bool(pending)

    def of(self, placement: ObjectRef) -> dict[tuple[Problem, ObjectRef], list[Mailbox]]:
        """Return a placement's problems with the objects and mailboxes they are about."""
        found: dict[tuple[Problem, ObjectRef], list[Mailbox]] = {}
        for (_, (mailbox, item)), problems in self._by_placement.get(placement, {}).items():
            for problem in problems:
                found.setdefault((problem, item), []).append(mailbox)
        return found

    def forget_mailbox(self, mailbox: Mailbox) -> None:
        """Drop what is known of a mailbox that is not there any more."""
        self._complete.discard(mailbox)
        for placement in sorted(self._waiting.pop(mailbox, ())):
            self._changed(placement)
        for key in [key for key in self._told if key[1][0] == mailbox]:
            self._put(key, ())

    def _put(self, key: tuple[str, Where], told: tuple[Told, ...]) -> None:
        old = self._told.get(key, ())
        if old == told:
            return
        for placement in {each.placement for each in old}:
            known = self._by_placement[placement]
            del known[key]
            if not known:
                del self._by_placement[placement]
        for each in told:
            self._by_placement.setdefault(each.placement, {}).setdefault(key, []).append(
                each.problem
            )
        if told:
            self._told[key] = told
        else:
            self._told.pop(key, None)
        for placement in sorted({each.placement for each in (*old, *told)}):
            self._changed(placement)
