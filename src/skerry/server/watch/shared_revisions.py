"""What the processes of one group have answered for, in memory that they share.

A write that changes what a server does (a type, a role, a namespace) is answered once that server
knows of it. Another process of the group learns of it by its own watch, some milliseconds later;
the client's next request may meet that process, and must find what was written. So whoever answers
such a write notes its revision in a cell of its own, and every process looks at all cells before
it handles a request, and waits for what it has not observed yet.

There is no lock. Each cell has one writer, an aligned word is read and written in one step, and
revisions only grow. A process that is killed between its commit and its note has not answered.
"""

from __future__ import annotations

from typing import Protocol

from skerry.kit.shared_words import shared_words


class Acknowledged(Protocol):
    """The revisions that somebody was given an answer for."""

    def note(self, revision: int) -> None:
        """Say that *revision* is about to be answered for."""

    def newest(self) -> int:
        """Return the newest revision that any process answered for."""


class _Alone:
    """For a server that is the only process of its group: what it answered for it knows."""

    def note(self, revision: int) -> None:
        """Nobody else needs to know."""

    def newest(self) -> int:
        return 0


ALONE = _Alone()


class SharedRevisions:
    """The cells of a group of processes; made before they are forked."""

    def __init__(self, processes: int) -> None:
        self._cells = shared_words(processes)

    def of(self, process: int) -> ProcessRevisions:
        """Return the cells as one process uses them."""
        return ProcessRevisions(self._cells, process)


class ProcessRevisions:
    """All cells to read, and one to write."""

    __slots__ = ("_cells", "_own")

    def __init__(self, cells: memoryview, own: int) -> None:
        self._cells = cells
        self._own = own

    def note(self, revision: int) -> None:
        # Answers may overtake each other; what was promised stays promised.
        self._cells[self._own] = max(self._cells[self._own], revision)

    def newest(self) -> int:
        return max(self._cells)
