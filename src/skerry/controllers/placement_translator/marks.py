"""What in which mailbox needs a look.

A mailbox waits in the queue once; what in it is to be looked at waits here. Marks taken for a
look stay known until they are settled, so a failure half way loses none: the next look takes
them again. Marks that must wait for something to be read first are put aside until it has been.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from skerry.api.edge import Mailbox
from skerry.api.kinds import GroupResource
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.translation.configs import CONFIG_NAME, CONFIG_TYPE

CONFIG = ObjectRef("", *CONFIG_TYPE, "", CONFIG_NAME)


class Marks:
    """Marked items by mailbox."""

    def __init__(self, wake: Callable[[Mailbox], None]) -> None:
        self._wake = wake
        self._marked: dict[Mailbox, set[ObjectRef]] = {}
        self._taken: dict[Mailbox, set[ObjectRef]] = {}
        self._aside: dict[Mailbox, set[ObjectRef]] = {}

    def mark(self, mailbox: Mailbox, items: Iterable[ObjectRef]) -> None:
        """Have *items* looked at in *mailbox*."""
        found = set(items)
        if found:
            self._marked.setdefault(mailbox, set()).update(found)
            self._wake(mailbox)

    def take(self, mailbox: Mailbox) -> list[ObjectRef]:
        """Return what is to be looked at, in a fixed order; each is to be settled or put aside."""
        items = self._marked.pop(mailbox, set()) | self._taken.pop(mailbox, set())
        if items:
            self._taken[mailbox] = items
            # This look decides anew whether there is something to wait for.
            self._aside.get(mailbox, set()).difference_update(items)
        return sorted(items)

    def settle(self, mailbox: Mailbox, item: ObjectRef) -> None:
        """Say that an item taken is as it should be."""
        taken = self._taken.get(mailbox)
        if taken is not None:
            taken.discard(item)
            if not taken:
                del self._taken[mailbox]

    def put_aside(self, mailbox: Mailbox, item: ObjectRef) -> None:
        """Look at an item again when more has been read."""
        self.settle(mailbox, item)
        self._aside.setdefault(mailbox, set()).add(item)

    def waits(self, mailbox: Mailbox) -> bool:
        """Tell whether something of a mailbox waits for more to be read."""
        return bool(self._aside.get(mailbox))

    def bring_back(self, types: Collection[GroupResource] | None = None) -> None:
        """More has been read: look again at what was put aside, all of it or some *types*."""
        aside, self._aside = self._aside, {}
        for mailbox, items in aside.items():
            back = {item for item in items if types is None or item.group_resource in types}
            if items - back:
                self._aside[mailbox] = items - back
            self.mark(mailbox, back)

    def wake_all(self) -> None:
        """Wake every mailbox with marks: whoever was at work on them may have been stopped."""
        for mailbox in sorted(self._marked.keys() | self._taken.keys()):
            self._wake(mailbox)

    def forget(self, mailbox: Mailbox) -> None:
        """Drop everything about a mailbox that is not there."""
        for table in (self._marked, self._taken, self._aside):
            table.pop(mailbox, None)

    @property
    def waiting(self) -> int:
        """How many items wait, for a look or for more to be read."""
        tables = (self._marked, self._taken, self._aside)
        return sum(len(items) for table in tables for items in table.values())
