"""Rows of ``difference`` that are to be evaluated: those that may differ, and those that wait.

The table itself is never stored: a mailbox times an item is a million rows, and nearly all of them
say "none". Kept are the keys that a change has touched, by mailbox, because a mailbox is reconciled
as a whole. Reading them changes nothing; each key carries the number of the change that touched it
last, and is only done when that number is still the same. So neither a failure half way nor a
change while a mailbox is being written to loses one.

A row that depends on what has not been read is parked: it is evaluated again when its scope is
complete (see ``tables.completeness``), and its mailbox *waits* until then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from skerry.api.edge import SYNCER_CONFIG_NAME, SYNCER_CONFIGS, Mailbox
from skerry.api.refs import ClusterName, ObjectRef
from skerry.logic.fleet.tables.completeness import Completeness
from skerry.logic.fleet.translation.workspaces import (
    CONTENT,
    REVISION,
    SELECTION,
    SERVING,
    Scope,
)

# The SyncerConfig of a mailbox is a row beside those of its copies.
CONFIG = ObjectRef("", *SYNCER_CONFIGS.group_resource, "", SYNCER_CONFIG_NAME)
_CLEAN: Mapping[ObjectRef, int] = {}
_ENDLESS = frozenset((SELECTION, SERVING, REVISION, CONTENT))


class DirtyRows:
    """The keys of ``difference`` to evaluate, and the scopes that pending ones wait for."""

    def __init__(self, enqueue: Callable[[Mailbox], None]) -> None:
        self._enqueue = enqueue
        self._dirty: dict[Mailbox, dict[ObjectRef, int]] = {}
        self._number = 0
        self.scopes: Completeness[Scope, tuple[Mailbox, Scope]] = Completeness()
        self._parked: dict[Mailbox, dict[Scope, set[ObjectRef]]] = {}

    def mark(self, mailbox: Mailbox, items: Iterable[ObjectRef]) -> None:
        """Have *items* evaluated in *mailbox*."""
        self._number += 1
        found = dict.fromkeys(items, self._number)
        if found:
            known = self._dirty.get(mailbox)
            if known is None:
                self._dirty[mailbox] = found
            else:
                known.update(found)
            self._enqueue(mailbox)

    def of(self, mailbox: Mailbox) -> Mapping[ObjectRef, int]:
        """Return what is to be evaluated, with the number of the change that said so."""
        return dict(self._dirty.get(mailbox, _CLEAN))

    def done(self, mailbox: Mailbox, item: ObjectRef, number: int) -> None:
        """Take that a row was evaluated as of *number*, and that nothing is left to do."""
        dirty = self._dirty.get(mailbox)
        if dirty is not None and dirty.get(item) == number:
            del dirty[item]
            if not dirty:
                del self._dirty[mailbox]

    def park(self, mailbox: Mailbox, item: ObjectRef, scope: Scope) -> None:
        """Have a row evaluated again when *scope* has been read."""
        if self.scopes.is_complete(scope):
            self.mark(mailbox, [item])  # it was read meanwhile
            return
        parked = self._parked.setdefault(mailbox, {})
        if scope not in parked:
            parked[scope] = set()
            self.scopes.park((mailbox, scope), scope)
        parked[scope].add(item)

    def unpark(self, mailbox: Mailbox, items: Iterable[ObjectRef]) -> None:
        """Take that rows are evaluated now, whatever they waited for."""
        parked = self._parked.get(mailbox)
        if parked is None:
            return
        evaluated = set(items)
        for scope in list(parked):
            parked[scope] -= evaluated
            if not parked[scope]:
                del parked[scope]
                self.scopes.unpark((mailbox, scope))
        if not parked:
            del self._parked[mailbox]

    def complete(self, scope: Scope) -> None:
        """Take that *scope* was read to the end: evaluate what waited for it."""
        for mailbox, _ in self.scopes.complete(scope):
            parked = self._parked[mailbox]
            items = parked.pop(scope)
            if not parked:
                del self._parked[mailbox]
            self.mark(mailbox, items)

    def incomplete(self, scope: Scope) -> None:
        """Take that *scope* is not known any more."""
        self.scopes.incomplete(scope)

    def drop(self, scope: Scope) -> None:
        """Take that nobody will read *scope* any more: evaluate what waited for it.

        It may not depend on it now. If it does, it is parked again, and the scope is followed.
        """
        self.complete(scope)
        self.incomplete(scope)

    def waits(self, mailbox: Mailbox) -> bool:
        """Tell whether rows of a mailbox wait for more to be read.

        One that waits for a malformed placement to be corrected, for a revision that is not
        there, or for a kind to be defined, may do so for ever; everything there is to read has
        been read.
        """
        return any(scope[0] not in _ENDLESS for scope in self._parked.get(mailbox, ()))

    def is_settled(self, cluster: ClusterName) -> bool:
        """Tell whether every row of an inventory workspace's mailboxes has been evaluated, as far
        as what there is to read has been read."""
        return not any(each.cluster == cluster for each in self._dirty) and not any(
            each.cluster == cluster and self.waits(each) for each in self._parked
        )

    def holds(self, mailbox: Mailbox, item: ObjectRef) -> bool:
        """Tell whether a row is to be evaluated, now or when what it waits for has been read."""
        parked = self._parked.get(mailbox, {}).values()
        return item in self._dirty.get(mailbox, ()) or any(item in items for items in parked)

    def unsettled(self, mailbox: Mailbox) -> set[ObjectRef]:
        """Return the objects of a mailbox that are to be evaluated, now or later."""
        parked = self._parked.get(mailbox, {}).values()
        return {*self._dirty.get(mailbox, ()), *(item for items in parked for item in items)} - {
            CONFIG
        }

    def forget(self, mailbox: Mailbox) -> None:
        """Drop everything about a mailbox that is not there."""
        self._dirty.pop(mailbox, None)
        for scope in self._parked.pop(mailbox, ()):
            self.scopes.unpark((mailbox, scope))

    def enqueue_all(self) -> None:
        """Enqueue every mailbox with rows: whoever was at work on them may have been stopped."""
        for mailbox in sorted(self._dirty):
            self._enqueue(mailbox)

    @property
    def waiting(self) -> int:
        """How many rows wait, for evaluation or for more to be read."""
        parked = (items for scopes in self._parked.values() for items in scopes.values())
        return sum(map(len, self._dirty.values())) + sum(map(len, parked))
