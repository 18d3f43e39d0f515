"""What a tab shows of a set of edges: a sentence, counts, groups, the map, and a window of rows.

However many edges there are, a view is their counts, one byte for each that matches, and the rows
of the window. Differences between two views are smaller still (``patch``).

Map and list are two orders of the same edges. The map is in groups and by name, so that a cell
keeps its place while states change and the eye finds it again; only edges that come, go or are
relabelled move others. The list has the worst first, because nobody scrolls to what is wrong.

A cell has no name: it is the index of an edge in the order of the map, and ``cell_at`` computes the
same order to find out which edge was pointed at. Between the two the fleet may have changed. Then
the answer is about the cell as it is now, or there is no such cell any more.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from pyroaring import BitMap

from skerry.api.errors import BadRequest
from skerry.kit.text import one_line
from skerry.logic.fleet.console.edges import RANK, STATES, EdgeIndex

# What one view may cost, whoever wrote the labels and texts in it: a tab can open sixteen.
# Nobody reads more rows at once; nobody tells more groups apart.
MAX_ROWS: Final = 200
MAX_GROUPS: Final = 200
MAX_KEYS: Final = 100
MAX_TEXT_BYTES: Final = 256
MAX_LABELS: Final = 64
_MAX_LABEL_LENGTH = 317  # A prefix of 253, a slash and a name of 63.
_OTHERS = "…"

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Window:
    """Which rows are looked at, and by which label edges are grouped."""

    by: str = ""
    first: int = 0
    end: int = 50


def parse_window(view: Mapping[str, Any]) -> Window:
    """Return the window of a view; BadRequest names what is wrong with it."""
    by = view.get("by") or ""
    if not isinstance(by, str) or len(by) > _MAX_LABEL_LENGTH:
        raise BadRequest("by: want the key of a label")
    rows = view.get("rows", [0, 50])
    if (
        not isinstance(rows, list)
        or len(rows) != 2
        or any(type(each) is not int or each < 0 for each in rows)
        or rows[0] > rows[1]
    ):
        raise BadRequest("rows: want [FROM, TO], two whole numbers")
    if rows[1] - rows[0] > MAX_ROWS:
        raise BadRequest(f"rows: at most {MAX_ROWS} at once, found {rows[1] - rows[0]}")
    return Window(by, rows[0], rows[1])


@dataclass(frozen=True, slots=True)
class Group:
    """Edges that share the value of a label."""

    value: str
    members: BitMap


def groups_of(index: EdgeIndex, matching: BitMap, by: str) -> list[Group]:
    """Return *matching* by the value of a label, those without it last; one group without one.

    Every edge is in exactly one group, because a label has one value. Beyond ``MAX_GROUPS`` the
    smallest groups become one, ``…``, which stands before those without the label. A label may
    have the empty value: then the first group and the last are both called by an empty text.
    """
    if not by:
        return [Group("", matching)] if matching else []
    found = [
        Group(value, members)
        for value, labelled in index.by_label.get(by, {}).items()
        if (members := labelled & matching)
    ]
    found.sort(key=lambda group: group.value)
    rest = matching - BitMap.union(*(group.members for group in found), BitMap())
    if len(found) > MAX_GROUPS:
        chosen = sorted(found, key=lambda group: -len(group.members))[:MAX_GROUPS]
        kept = {group.value for group in chosen}
        others = BitMap.union(*(each.members for each in found if each.value not in kept))
        found = [*(each for each in found if each.value in kept), Group(_OTHERS, others)]
    return [*found, Group("", rest)] if rest else found


def map_order(index: EdgeIndex, groups: Sequence[Group]) -> Numbers:
    """Return the edges in the order of the map: group after group, by name within each."""
    ranks = index.name_ranks()
    parts = []
    for group in groups:
        numbers = np.fromiter(group.members, np.int64, len(group.members))
        parts.append(numbers[np.argsort(ranks[numbers], kind="stable")])
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def worst_first(index: EdgeIndex, states: NDArray[np.uint8], order: Numbers) -> Numbers:
    """Return the edges of *order* with the worst first, then by name."""
    return order[np.lexsort((index.name_ranks()[order], RANK[states[order]]))]


def counts_of(states: NDArray[np.uint8]) -> dict[str, int]:
    """Return how many cells are in each state."""
    found = np.bincount(states, minlength=len(STATES))
    return {state: int(count) for state, count in zip(STATES, found, strict=True)}


def sentence(counts: Mapping[str, int], *, filtered: bool) -> str:
    """Return how the edges are, in one line.

    What needs a person comes first and hides the rest. Edges that are under way or unknown are
    mentioned only where nothing needs attention.
    """
    total = sum(counts.values())
    edges = f"{total:,} {'matching ' if filtered else ''}{'edge' if total == 1 else 'edges'}"
    if not total:
        return "no edge matches" if filtered else "no edges yet"
    bad = [(counts[state], state) for state in ("away", "unhealthy", "degraded") if counts[state]]
    if bad:
        needing = sum(count for count, _ in bad)
        verb = "needs" if needing == 1 else "need"
        listed = ", ".join(f"{count:,} {state}" for count, state in bad)
        return f"{needing:,} of {edges} {verb} attention: {listed}"
    others = [(counts[state], state) for state in ("progressing", "unknown") if counts[state]]
    if others:
        listed = ", ".join(f"{count:,} {state}" for count, state in others)
        verb = "is" if counts["healthy"] == 1 else "are"
        return f"{counts['healthy']:,} of {edges} {verb} healthy; {listed}"
    return f"the only {edges} is healthy" if total == 1 else f"all {edges} are healthy"


def text(value: str) -> str:
    """Return what another machine or a person wrote, in one line and of bounded length."""
    plain = one_line(value)
    raw = plain.encode("utf-8", "replace")
    if len(raw) <= MAX_TEXT_BYTES:
        return plain
    return raw[: MAX_TEXT_BYTES - 3].decode("utf-8", "ignore") + "…"


def shown_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Return the first labels there are, each bounded."""
    return {text(key): text(labels[key]) for key in sorted(labels)[:MAX_LABELS]}


def encoded(cells: NDArray[np.uint8]) -> str:
    """Return the bytes of the map as text."""
    return base64.b64encode(cells.tobytes()).decode("ascii")


def keys_of(index: EdgeIndex, seen: BitMap) -> list[str]:
    """Return the keys that edges somebody may see are labelled with."""
    found = [
        key
        for key, values in index.by_label.items()
        if any(labelled.intersect(seen) for labelled in values.values())
    ]
    return [text(key) for key in sorted(found)[:MAX_KEYS]]


def map_and_list(
    index: EdgeIndex,
    matching: BitMap,
    states: NDArray[np.uint8],
    window: Window,
    row: Callable[[int], Mapping[str, Any]],
) -> dict[str, Any]:
    """Return counts, groups, map and rows of *matching*, whose states are *states* by number."""
    groups = groups_of(index, matching, window.by)
    order = map_order(index, groups)
    cells = states[order]
    shown, at = [], 0
    for group in groups:
        end = at + len(group.members)
        counts = {state: count for state, count in counts_of(cells[at:end]).items() if count}
        shown.append({"value": text(group.value), "count": end - at, "counts": counts})
        at = end
    listed = worst_first(index, states, order)[window.first : window.end]
    return {
        "matching": len(order),
        "counts": counts_of(cells),
        "groups": shown,
        "cells": encoded(cells),
        "rows": [row(int(number)) for number in listed],
    }


def cell_at(index: EdgeIndex, matching: BitMap, by: str, at: int) -> int | None:
    """Return the edge of one cell of the map."""
    order = map_order(index, groups_of(index, matching, by))
    return int(order[at]) if 0 <= at < len(order) else None


def patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return what makes the view *before* the view *after*: members that differ, null where gone.

    Of rows and groups only those that differ, where there are no fewer than before; of cells, where
    there are as many.

    For example, one edge of two turned unhealthy and moved to the top of the list::

        {"counts": {...}, "rows": {"0": {...}, "1": {...}}, "cells": [[1, 3]]}

    A member that is gone and one that became null look the same to the tab. A list that got
    shorter is sent whole, as an index has no way to say that what follows it is no more.
    """
    changed = {key: value for key, value in after.items() if before.get(key) != value}
    changed |= {key: None for key in before if key not in after}
    for key in ("rows", "groups"):
        if key in changed and len(before[key]) <= len(after[key]):
            known = before[key]
            changed[key] = {
                str(at): new
                for at, new in enumerate(after[key])
                if at >= len(known) or known[at] != new
            }
    if "cells" in changed and len(before["cells"]) == len(after["cells"]):
        old = np.frombuffer(base64.b64decode(before["cells"]), np.uint8)
        new = np.frombuffer(base64.b64decode(after["cells"]), np.uint8)
        if len(old) == len(new):
            at = np.nonzero(old != new)[0]
            # A pair is some eight letters of JSON, a cell of the whole map one and a third.
            if 6 * len(at) < len(new):
                changed["cells"] = [[int(i), int(new[i])] for i in at]
    return changed
