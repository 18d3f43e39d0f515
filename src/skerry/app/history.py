"""The history of placements, read from a hub: stories, states at a time, and their differences."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from skerry.api.edge import DECISION_RECORDS, EDGE_PLACEMENTS, HISTORY_RETENTION, SOURCE_PLACEMENT
from skerry.api.errors import NotFound
from skerry.api.objects import Object
from skerry.app.explain_names import Unanswered
from skerry.app.hub_reading import HubReader
from skerry.logic.fleet.history.chain import Break, verify
from skerry.logic.fleet.history.compare import Differences, compare
from skerry.logic.fleet.history.fold import State, Timeline, UnknownThen, state_at, timeline
from skerry.logic.fleet.history.packing import Standing
from skerry.logic.fleet.history.record import Record, in_order
from skerry.logic.fleet.history.text import Selection, selected
from skerry.logic.fleet.placement.slices import label_for
from skerry.runtime.client import Selection as Listed

# More than retention keeps of one placement, and little enough to be held at once.
_MAX_RECORDS = 50_000


@dataclass(frozen=True, slots=True)
class History:
    """The records of one placement, in order."""

    placement: str
    objects: tuple[Object, ...]
    line: Timeline
    now: datetime

    @property
    def problems(self) -> list[str]:
        """What is wrong with them, for people."""
        broken = [*self.line.strangers, *(self.line.broken[at] for at in sorted(self.line.broken))]
        gaps = [f"{each.name} {each.text}" for each in verify(self.objects)]
        return list(dict.fromkeys((*broken, *gaps)))

    def at(self, moment: datetime) -> State:
        """Return what the placement had then; raises ``Unanswered`` rather than guess."""
        try:
            return state_at(self.line, moment, self.now)
        except UnknownThen as error:
            raise Unanswered(f"EdgePlacement {self.placement}: {error}") from error

    def following(self, state: State) -> Record | None:
        """Return the record that a state lasted until; None: it lasts."""
        records = [each for each in self.line.records if each.change != "Checkpoint"]
        if state.last is None:
            return records[0] if records else None
        return next((each for each in records if each.order > state.last.order), None)

    def between(self, start: datetime, end: datetime) -> Differences:
        """Return what differs between two times."""
        return compare(self.at(start), self.at(end))

    def story(self, selection: Selection) -> list[Record]:
        return selected(self.line, selection)


async def history_of(hub: HubReader, placement: str) -> History:
    """Return the history of a placement of the workspace, which may be gone."""
    objects = await _records(hub, f"{SOURCE_PLACEMENT}={label_for(placement)}")
    own = [each for each in objects if (each.get("placement") or {}).get("name") == placement]
    if not own:
        raise Unanswered(await _why_none(hub, placement))
    ordered = in_order(own)
    return History(placement, tuple(ordered), timeline(ordered), hub.clock.now())


async def histories(hub: HubReader) -> list[History]:
    """Return the histories of all placements of the workspace, in order of their names."""
    found: dict[str, list[Object]] = {}
    for each in await _records(hub, ""):
        found.setdefault(str((each.get("placement") or {}).get("name", "")), []).append(each)
    now = hub.clock.now()
    read = []
    for name in sorted(found):
        # Others are served between two histories of thousands of records.
        await asyncio.sleep(0)
        read.append(History(name, tuple(in_order(found[name])), timeline(found[name]), now))
    return read


async def _records(hub: HubReader, labels: str) -> list[Object]:
    """Return records page by page; of more than anybody keeps, the newest."""
    found: deque[Object] = deque(maxlen=_MAX_RECORDS)
    try:
        async for page in hub.own.pages(DECISION_RECORDS, Listed(labels=labels)):
            found.extend(page.items)
    except NotFound as error:
        raise Unanswered(f"{hub.workspace} keeps no DecisionRecords") from error
    return list(found)


async def _why_none(hub: HubReader, placement: str) -> str:
    try:
        obj = await hub.own.get(EDGE_PLACEMENTS, placement)
    except NotFound:
        return f"there is no EdgePlacement {placement!r} in {hub.workspace}, and no history of one"
    said = (obj["metadata"].get("annotations") or {}).get(HISTORY_RETENTION)
    why = f": its annotation {HISTORY_RETENTION} says {said}" if said is not None else ""
    return f"no history is kept of EdgePlacement {placement}{why}"


def breaks(history: History) -> list[Break]:
    """Return where the chain of a history does not hold."""
    return verify(history.objects)


async def paths_of(hub: HubReader, *standings: Standing) -> dict[str, str]:
    """Return the paths of the workspaces of destinations."""
    return await hub.paths({each.destination.cluster for each in standings})


def standing_json(standing: Standing, paths: dict[str, str]) -> dict[str, Any]:
    """Return a destination as JSON."""
    cluster, location, sync_target, uid = standing.destination
    found: dict[str, Any] = {
        "workspace": paths.get(cluster, ""),
        "location": location,
        "syncTarget": sync_target,
        "syncTargetUID": uid,
    }
    more = {"slot": standing.slot, "revision": standing.revision}
    return found | {name: value for name, value in more.items() if value is not None}
