"""What plugins remember within one attempt.

A ``CycleState`` lives for one scheduling attempt of one item. It is cloned for trial runs
(nominated pods, preemption), where values with a ``clone`` method, those that change as
items come and go, are cloned with it.
"""

from __future__ import annotations

from typing import Any


class CycleState:
    """Key to value, plus which plugins asked to be left out of this attempt."""

    __slots__ = ("entries", "skip_filter", "skip_score")

    def __init__(self, entries: dict[str, Any] | None = None) -> None:
        self.entries: dict[str, Any] = entries if entries is not None else {}
        self.skip_filter: frozenset[str] = frozenset()
        self.skip_score: frozenset[str] = frozenset()

    def read(self, key: str) -> Any:
        """Return what was written under *key*, None when nothing was."""
        return self.entries.get(key)

    def write(self, key: str, value: object) -> None:
        self.entries[key] = value

    def clone(self) -> CycleState:
        """Return a state whose changes do not reach this one."""
        entries = dict(self.entries)
        for key, value in entries.items():
            clone = getattr(value, "clone", None)
            if clone is not None:
                entries[key] = clone()
        copy = CycleState(entries)
        copy.skip_filter = self.skip_filter
        copy.skip_score = self.skip_score
        return copy
