"""Placements that have not been reconciled since we lead, though some Location refuses them.

Who holds what is found by reconciling placements. So a report of what is held waits for the first
reconcile of everybody who may hold something there, and is enqueued by it: no time is guessed. What
changes after that is reported as it comes.

They are counted when the first report asks, all at once: by then everything that grants depend on
has been read. A placement that a later change refuses has that change to be reconciled by. One
whose selector is invalid is passed over, and who waited for it goes on. One that never will be
reconciled, since it is going away and somebody else's finalizer keeps it, is waited for by
nobody, or its owner could stop every confirmation in other people's workspaces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pyroaring import BitMap

from skerry.api.refs import ObjectRef
from skerry.logic.fleet.placement.destination import DestinationTable


class Unreconciled:
    """Whom reports of inventory workspaces wait for, and which reports wait for whom."""

    def __init__(self, index: DestinationTable) -> None:
        self._index = index
        # Reconciled since we lead; kept until it is counted who was not.
        self._reconciled: set[ObjectRef] = set()
        # The others, with the Locations that refuse them; None before they are counted.
        self._pending: dict[ObjectRef, BitMap] | None = None
        self._awaiting: dict[ObjectRef, set[str]] = {}

    def begin(self) -> None:
        """Take that we lead from now on: another process may have let go what we think is held."""
        self._reconciled.clear()
        self._pending = None
        self._awaiting.clear()

    def waits(self, inventory: str, is_reconciled: Callable[[ObjectRef], bool]) -> bool:
        """Tell whether a report is to wait; then the first placement that it waits for returns it.

        *is_reconciled* tells whether a placement ever will be, as it is now.
        """
        if self._pending is None:
            self._pending = dict(self._counted())
            self._reconciled.clear()
        there = self._index.inventory.locations_in(inventory)
        for ref, locations in self._pending.items():
            # Asked anew of those that may matter: a grant or a selector may be another by now.
            if locations & there and is_reconciled(ref) and self._refusing(ref) & there:
                self._awaiting.setdefault(ref, set()).add(inventory)
                return True
        return False

    def reconciled(self, ref: ObjectRef) -> set[str]:
        """Take that a placement was reconciled; returns the inventories whose report waited."""
        if self._pending is None:
            self._reconciled.add(ref)
        else:
            self._pending.pop(ref, None)
        return self._awaiting.pop(ref, set())

    def abandoned(self, ref: ObjectRef) -> set[str]:
        """Take that a placement was passed over; returns the inventories whose report waited.

        As it is now, nobody waits for it. It stays pending: corrected, it may be refused again.
        """
        return self._awaiting.pop(ref, set())

    def forget(self, ref: ObjectRef) -> set[str]:
        """Take that a placement is gone; returns the inventories whose report waited."""
        found = self.reconciled(ref)
        self._reconciled.discard(ref)
        return found

    def _counted(self) -> Iterable[tuple[ObjectRef, BitMap]]:
        for placement in self._index.placements():
            if placement.ref not in self._reconciled:
                locations = self._refusing(placement.ref)
                if locations:
                    # Ten thousand placements that are refused everywhere cost next to nothing so.
                    locations.run_optimize()
                    yield placement.ref, locations

    def _refusing(self, ref: ObjectRef) -> BitMap:
        """Return the Locations that refuse a placement, or would if grants enforced."""
        found = self._index.consent.judge(ref.cluster, self._index.matching(ref))
        return found.refused | found.observed
