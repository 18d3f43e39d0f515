"""The overview in words and columns, and as JSON.

    12,000 edges: 11,990 ready, 10 lost · 40 placements: 39 ready, 1 not

What was not reported is a dash in a table and null in JSON, never 0: an edge that has not said how
many objects it applied has not said that it applied none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from skerry.api.refs import ClusterName
from skerry.kit.timestamps import rfc3339
from skerry.logic.fleet.overview.overview import Counts, Overview, Part
from skerry.logic.fleet.overview.rows import EdgeRow, PlacementRow
from skerry.logic.machinery.printing.durations import human_duration

# Where nothing was said.
NOTHING = "–"  # noqa: RUF001 - as kubectl shows it in our columns
# What a state is called in the sentence above the tables.
_WORDS = {
    "Lost": "lost",
    "Held": "held",
    "Refused": "refusing objects",
    "Unhealthy": "unhealthy",
    "Syncing": "syncing",
    "NotJoined": "not joined yet",
    "Ready": "ready",
}


@dataclass(frozen=True, slots=True)
class Section:
    """One table: a head, rows of cells, what stands below, and how bad each row is.

    ``states`` has one word for each row, by which whoever draws it chooses a colour.
    """

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    states: tuple[str, ...]
    footer: str = ""


Path = Callable[[ClusterName], str]


def sentence(counts: Counts) -> str:
    """Return how the fleet is, in one line: what is well comes first, and what is 0 is left out."""
    total = sum(counts.edges.values())
    states = ", ".join(f"{n:,} {_WORDS[state]}" for state, n in reversed([*counts.edges.items()]))
    edges = f"{total:,} {_plural('edge', total)}" + (f": {states}" if states else "")
    placements = counts.ready + counts.not_ready + counts.not_judged
    found = [(counts.ready, "ready"), (counts.not_ready, "not"), (counts.not_judged, "unknown")]
    judged = ", ".join(f"{n:,} {word}" for n, word in found if n)
    placed = f"{placements:,} {_plural('placement', placements)}"
    return f"{edges} · {placed}" + (f": {judged}" if judged else "")


def edge_section(part: Part[EdgeRow], now: datetime, path: Path, *, wide: bool) -> Section:
    """Return the table of edges; *wide* adds the workspace."""
    head = ["EDGE", "STATE", "HEARD", "WANTED", "APPLIED", "UNHEALTHY", "HELD", "VERSION"]
    rows = []
    for row in part.rows:
        cells = [
            row.name,
            row.state,
            heard(row.heard, now),
            *map(_number, (row.wanted, row.applied, row.unhealthy, row.held)),
            row.version or NOTHING,
        ]
        rows.append((*cells, *([path(row.cluster)] if wide else ()), row.problem))
    columns = (*head, *(["WORKSPACE"] if wide else ()), "PROBLEM")
    return Section(columns, tuple(rows), tuple(row.state for row in part.rows), _more(part))


def placement_section(part: Part[PlacementRow], path: Path, *, wide: bool) -> Section:
    """Return the table of placements.

    The workspace is always there, as many have a placement of one name; *wide* adds what was asked
    for less often.
    """
    head = ["PLACEMENT", "WORKSPACE", "READY", "DESTINATIONS", "DELIVERED", "HEALTHY", "UNKNOWN"]
    rows = []
    for row in part.rows:
        counts = (row.destinations, row.delivered, row.healthy, row.unknown)
        cells = [row.name, path(row.cluster), row.ready, *map(_number, counts)]
        further = [_number(row.unhealthy), "yes" if row.held else "no"] if wide else []
        rows.append((*cells, *further, row.problem))
    columns = (*head, *(["UNHEALTHY", "HELD"] if wide else ()), "PROBLEM")
    return Section(columns, tuple(rows), tuple(row.ready for row in part.rows), _more(part))


def as_json(overview: Overview, path: Path, *, problems: bool) -> dict[str, Any]:
    """Return every row for programs; times are RFC 3339, counts not reported are null.

    Without a limit: a screen shows the worst, a program chooses for itself.
    """
    counts = overview.counts()
    return {
        "edges": [
            {
                "name": row.name,
                "workspace": path(row.cluster),
                "state": row.state,
                "lastHeard": rfc3339(row.heard) if row.heard else None,
                "syncerVersion": row.version or None,
                "objects": {
                    "wanted": row.wanted,
                    "applied": row.applied,
                    "unhealthy": row.unhealthy,
                    "held": row.held,
                },
                "problem": row.problem or None,
            }
            for row in overview.edges(problems=problems).rows
        ],
        "placements": [
            {
                "name": row.name,
                "workspace": path(row.cluster),
                "ready": row.ready,
                "held": row.held,
                "destinations": row.destinations,
                "delivered": row.delivered,
                "healthy": row.healthy,
                "unhealthy": row.unhealthy,
                "unknown": row.unknown,
                "problem": row.problem or None,
            }
            for row in overview.placements(problems=problems).rows
        ],
        "counts": {
            "edges": dict(counts.edges),
            "placements": _ready(counts),
        },
    }


def _ready(counts: Counts) -> Mapping[str, int]:
    return {"ready": counts.ready, "notReady": counts.not_ready, "unknown": counts.not_judged}


def heard(moment: datetime | None, now: datetime) -> str:
    """Return how long ago an edge was heard of; a clock that is ahead of ours says just now."""
    if moment is None:
        return "never"
    return f"{human_duration(max(now, moment) - moment)} ago"


def _number(found: int | None) -> str:
    return NOTHING if found is None else f"{found:,}"


def _more(part: Part[Any]) -> str:
    return f"… and {part.omitted:,} more (--limit 0 shows all)" if part.omitted else ""


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"
