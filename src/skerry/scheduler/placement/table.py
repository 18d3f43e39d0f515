"""Locations in rows: the inventory's own numbers are the row numbers.

Rows are read from the inventory when it says that they changed, and only then; beside the
candidates themselves there are two arrays for plugins that answer for many rows at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skerry.api.edge import location_ref
from skerry.logic.fleet.placement.inventory import Inventory
from skerry.logic.fleet.placement.strategy import Candidate
from skerry.logic.machinery.taints import Taint
from skerry.scheduler.table import ChangeLog, Rows


class LocationTable:
    """All Locations of an inventory; see ``framework.table.TargetTable``."""

    def __init__(self, inventory: Inventory) -> None:
        self.target_log = ChangeLog()
        self.placed_log = ChangeLog()
        self._inventory = inventory
        self._candidates: list[Candidate | None] = []
        self._count = 0
        self.live: NDArray[np.bool_] = np.zeros(0, np.bool_)
        self.available: NDArray[np.bool_] = np.zeros(0, np.bool_)
        # Locations have few distinct lists of taints; each is worked out once.
        self.taint_list: NDArray[np.int32] = np.zeros(0, np.int32)
        self.taint_lists: list[tuple[Taint, ...]] = []
        self._taint_numbers: dict[tuple[Taint, ...], int] = {}
        for location in inventory.locations():
            number = inventory.location_number(location.ref)
            if number is not None:
                self.read(number)

    def __len__(self) -> int:
        return self._count

    @property
    def capacity(self) -> int:
        return len(self._candidates)

    def rows(self) -> Rows:
        return np.flatnonzero(self.live)

    def target(self, row: int) -> Candidate:
        found = self._candidates[row]
        if found is None:
            raise LookupError(f"row {row} holds no Location")
        return found

    def row(self, name: str) -> int | None:
        """Return the row of the Location called ``cluster|name``."""
        cluster, _, location = name.rpartition("|")
        return self._inventory.location_number(location_ref(cluster, location))

    def read(self, row: int) -> None:
        """Have in *row* what the inventory has there now."""
        if row >= self.capacity:
            self._grow(row + 1)
        candidate = self._inventory.candidate(row)
        self._count += (candidate is not None) - (self._candidates[row] is not None)
        self._candidates[row] = candidate
        self.live[row] = candidate is not None
        if candidate is not None:
            self.available[row] = candidate.available
            self.taint_list[row] = self._taint_number(candidate.taints)
        self.target_log.append(row)

    def _taint_number(self, taints: tuple[Taint, ...]) -> int:
        number = self._taint_numbers.get(taints)
        if number is None:
            number = self._taint_numbers[taints] = len(self.taint_lists)
            self.taint_lists.append(taints)
        return number

    def _grow(self, wanted: int) -> None:
        more = max(wanted, 2 * self.capacity, 64) - self.capacity
        self._candidates.extend([None] * more)
        self.live = np.concatenate([self.live, np.zeros(more, np.bool_)])
        self.available = np.concatenate([self.available, np.zeros(more, np.bool_)])
        self.taint_list = np.concatenate([self.taint_list, np.zeros(more, np.int32)])
