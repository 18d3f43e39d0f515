"""What somebody types to choose edges: words that must all hold.

| word | edges |
|---|---|
| ``key=value``, ``key!=value`` | with that label; without it, as Kubernetes reads ``!=`` |
| ``status:STATE`` | in one of the six states |
| ``reason:REASON`` | that stand so for that reason, as ``skerry fleet`` names it |
| ``placement:WORKSPACE/NAME`` | that a placement leads to |
| ``workspace:PATH`` | of an inventory workspace |
| anything else | with it in their name, or with a label of that key |

What is one of a few (a state, a reason) is refused when it is mistyped: an empty map would look
like good news. Anything else that is not there matches nothing: a label, a workspace, a placement.
There a refusal would answer whether something exists that this person may not see.

``!=`` is taken from the edges that are present. An edge that slices still name and that has no
SyncTarget has no labels here, so no word about labels holds of it, not even ``!=``. Before the
first colon, a name that is not in the table means nothing special: the whole word is looked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pyroaring import BitMap

from skerry.api.errors import BadRequest
from skerry.api.refs import ClusterName
from skerry.kit.text import shortened
from skerry.logic.fleet.console.edges import STATES, EdgeIndex

# A filter is evaluated again whenever the fleet changes, for as long as a tab shows it. Both are
# more than anybody types.
MAX_FILTER_LENGTH = 1024
MAX_WORDS = 32
_SHOWN = 64
_STATUS = "status:"
# The states of ``skerry fleet``, which are finer than those of the map: what is held and what is
# refused are both degraded.
_REASONS = ("Lost", "Held", "Refused", "Unhealthy", "Syncing", "NotJoined", "Ready")


@dataclass(frozen=True, slots=True)
class Sight:
    """Whose eyes: the edges somebody may see, and where placements lead, by workspace."""

    edges: BitMap
    may_see_destinations: Callable[[ClusterName], bool]
    # The cluster at the path of a workspace; empty where there is none.
    cluster_at: Callable[[str], ClusterName]


@dataclass(frozen=True, slots=True)
class Filter:
    """Words, read. No words match every edge that may be seen."""

    words: Sequence[str] = ()

    def matching(
        self, index: EdgeIndex, sight: Sight, states: NDArray[np.uint8] | None = None
    ) -> BitMap:
        """Return the edges that somebody may see and that every word holds of.

        *states*, by number, are what ``status:`` is about, where that is not the edge as a whole.
        The sets of the index are of edges as a whole, so those edges are looked at one by one.
        """
        found = BitMap(sight.edges)
        for word in self.words:
            if states is not None and word.startswith(_STATUS):
                state = STATES.index(word.removeprefix(_STATUS))
                found &= BitMap(number for number in found if states[number] == state)
            else:
                found &= _holding(word, index, sight)
        return found


def parse_filter(text: object) -> Filter:
    """Return a filter; BadRequest names what is wrong with it."""
    if text is None:
        return Filter()
    if not isinstance(text, str):
        raise BadRequest("q: want words, a string")
    if len(text) > MAX_FILTER_LENGTH:
        raise BadRequest(f"q: at most {MAX_FILTER_LENGTH} characters, found {len(text)}")
    words = text.split()
    if len(words) > MAX_WORDS:
        raise BadRequest(f"q: at most {MAX_WORDS} words, found {len(words)}")
    for word in words:
        name, found, value = word.partition(":")
        if found and name == "status" and value not in STATES:
            raise BadRequest(
                f"q: no state is called {_short(value)}; there are {', '.join(STATES)}"
            )
        if found and name == "placement" and not all(value.rpartition("/")):
            raise BadRequest(f"q: placement:{_short(value)}: want placement:WORKSPACE/NAME")
        if found and name == "reason" and value not in _REASONS:
            raise BadRequest(
                f"q: no reason is called {_short(value)}; there are {', '.join(_REASONS)}"
            )
    return Filter(tuple(words))


def _short(text: str) -> str:
    return repr(shortened(text, _SHOWN))


def _holding(word: str, index: EdgeIndex, sight: Sight) -> BitMap:
    """Return all edges that a word holds of, whoever may see them: the caller intersects."""
    name, found, value = word.partition(":")
    if found and name in _SPECIAL:
        return _SPECIAL[name](value, index, sight)
    key, found, value = word.partition("!=")
    if found:
        return index.present - index.by_label.get(key, {}).get(value, BitMap())
    key, found, value = word.partition("=")
    if found:
        # ``key==value`` is the same, as in the selectors of kubectl.
        return index.by_label.get(key, {}).get(value.removeprefix("="), BitMap())
    labelled = index.by_label.get(word, {}).values()
    return BitMap.union(index.named_like(word.lower()), *labelled)


def _status(value: str, index: EdgeIndex, _: Sight) -> BitMap:
    return index.by_state[STATES.index(value)]


def _reason(value: str, index: EdgeIndex, _: Sight) -> BitMap:
    return index.by_reason.get(value, BitMap())


def _workspace(value: str, index: EdgeIndex, sight: Sight) -> BitMap:
    return index.by_cluster.get(sight.cluster_at(value), BitMap())


def _placement(value: str, index: EdgeIndex, sight: Sight) -> BitMap:
    path, _, name = value.rpartition("/")
    cluster = sight.cluster_at(path)
    # What may not be seen is not there.
    if not cluster or not sight.may_see_destinations(cluster):
        return BitMap()
    return index.at_placement((cluster, name))


_SPECIAL: Mapping[str, Callable[[str, EdgeIndex, Sight], BitMap]] = {
    "status": _status,
    "reason": _reason,
    "workspace": _workspace,
    "placement": _placement,
}
