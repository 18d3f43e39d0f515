"""Where nothing was written lately, for watches that go on from before what is in memory.

Thousands of edges come back to a server that was away. Each goes on with some watches from where it
was, minutes ago at the most, and next to all that happened since happened elsewhere. Asking the
store for each of them costs more than all else about it. So of each place, a type in a cluster, it
is remembered when something was last written there: who had read that far has missed nothing.

What is remembered reaches back without a gap from where the memory of changes begins. It grows at
that end, as changes are dropped from memory, and once at the other, by what the store tells of the
time before this server. Of too many places nothing is remembered at all; then the store is asked.
"""

from __future__ import annotations

from collections.abc import Mapping

# A Lease of each of ten thousand edges, and as much again of anything else: some megabytes.
MAX_PLACES = 32_768


class Lately:
    """When each place was written to last, of all revisions above one."""

    def __init__(self, max_places: int = MAX_PLACES) -> None:
        self._max_places = max_places
        self._since = 0
        self._last: dict[str, int] = {}

    @property
    def since(self) -> int:
        """Of everything above this revision, up to what was noted, the place is known."""
        return self._since

    def begin(self, revision: int) -> None:
        """Forget everything; what is noted from now on lies above *revision*."""
        self._since = revision
        self._last.clear()

    def note(self, place: str, revision: int) -> None:
        """Take note of a write; each comes after the one before, and none is left out."""
        self._last[place] = revision
        if len(self._last) > self._max_places:
            self.begin(revision)

    def extend(self, since: int, before: Mapping[str, int]) -> None:
        """Take note of when places were written to above *since*, up to where this began."""
        last = {**before, **self._last}
        if len(last) <= self._max_places:
            self._since, self._last = since, last

    def is_silent(self, place: str, after: int) -> bool:
        """Tell whether it is known that nothing was written to a place above *after*."""
        return after >= self._since and self._last.get(place, 0) <= after
