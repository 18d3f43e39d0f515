"""One label over all nodes, as small numbers.

Values are interned: what is asked of a label (a selector, a topology domain) is worked out once per
distinct value and then gathered by number, whatever the number of nodes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skerry.logic.machinery.selectors import Requirement, Selector
from skerry.scheduler.table import Rows

Bools = NDArray[np.bool_]


class LabelColumn:
    """One label key over all rows: ``codes[row]`` numbers the value, -1 where absent.

    The last element of any per-value array stands for absence, so that -1 indexes it.
    """

    def __init__(self, key: str, capacity: int) -> None:
        self.key = key
        self.values: list[str] = []
        self.index: dict[str, int] = {}
        self.codes: NDArray[np.int32] = np.full(capacity, -1, np.int32)
        # How many live rows have each value; by value number.
        self.population: list[int] = []
        # Rows with the label, values that several rows share, live rows without the label.
        self.labelled = 0
        self._shared = 0
        self.unlabelled = 0

    def set(self, row: int, value: str | None) -> None:
        old = int(self.codes[row])
        if old >= 0:
            self.population[old] -= 1
            self.labelled -= 1
            self._shared -= self.population[old] == 1
        code = -1
        if value is not None:
            code = self.index.get(value, -1)
            if code < 0:
                code = self.index[value] = len(self.values)
                self.values.append(value)
                self.population.append(0)
            self.population[code] += 1
            self.labelled += 1
            self._shared += self.population[code] == 2
        self.codes[row] = code

    @property
    def one_to_one(self) -> bool:
        """Tell whether every live row has the label, each with a value of its own."""
        return self._shared == 0 and self.unlabelled == 0

    def grow(self, capacity: int) -> None:
        codes = np.full(capacity, -1, np.int32)
        codes[: len(self.codes)] = self.codes
        self.codes = codes

    def mask(self, requirement: Requirement, rows: Rows) -> Bools:
        """Return which rows satisfy a requirement on this key."""
        selector = Selector([requirement])
        verdicts = [selector.matches({self.key: value}) for value in self.values]
        lookup = np.array([*verdicts, selector.matches({})], np.bool_)
        found: Bools = lookup[self.codes[rows]]
        return found
