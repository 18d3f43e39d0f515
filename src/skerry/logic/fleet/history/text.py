"""The story of a placement as a table, and states and differences as lines for people.

A story about one Location has to be folded while it is read. Records name destinations by slot or
by key where they are many, and ``Left`` of everybody names nobody: whether that was about the
Location depends on who was there just before it. Without a Location nothing is folded.

Checkpoints are no part of a story. They repeat what is known, at a time when nothing happened.

    TIME      CHANGE   COUNT  FROM→TO  WHY                           CAUSE
    14:00:01  Joined   2               locationSelectors[0] matches  Location/oslo env=dr by ann
    14:20:07  Revised  2      41→42    ...                           ...

A row has the time of day in the zone of whoever asks. Unless all that is shown is of today, every
row has its date and the zone as well. Either form is one that ``--at`` and ``--since`` take.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from pyroaring import BitMap

from skerry.logic.fleet.history.compare import Difference, Differences
from skerry.logic.fleet.history.fold import Folder, State, Timeline, believable
from skerry.logic.fleet.history.packing import key_of
from skerry.logic.fleet.history.record import Record
from skerry.logic.fleet.placement.records import Destination

HEADER = ("TIME", "CHANGE", "COUNT", "FROM→TO", "WHY", "CAUSE")
_NOTHING = "\N{EN DASH}"


class Selection(NamedTuple):
    """Which records are to be shown: since when, about which Location, about which object."""

    since: datetime | None = None
    location: str = ""
    object: str = ""


def selected(line: Timeline, selection: Selection) -> list[Record]:
    """Return the records that a selection means, in order; checkpoints are no part of a story.

    What is before ``since`` is folded too, as it decides who was there afterwards.
    """
    found: list[Record] = []
    places = _places(line, selection.location) if selection.location else None
    folder = Folder()
    for record in believable(line.records):
        concerned = places is None or _concerns(record, places, folder)
        if places is not None:
            folder.take(record)
        if record.change == "Checkpoint" or not concerned:
            continue
        if selection.since is not None and record.time < selection.since:
            continue
        if selection.object and not _is_about(record.object.get("object") or {}, selection.object):
            continue
        found.append(record)
    return found


class _Places(NamedTuple):
    destinations: frozenset[Destination]
    keys: frozenset[int]
    # By the UID of the placement: one made anew under the name gives the same slots to others.
    slots: Mapping[str, BitMap]


def _places(line: Timeline, location: str) -> _Places:
    """Return how records name the destinations at a Location."""
    destinations: set[Destination] = set()
    slots: defaultdict[str, BitMap] = defaultdict(BitMap)
    for record in line.records:
        for each in record.standings if record.change == "Checkpoint" else record.named:
            if each.destination.location == location:
                destinations.add(each.destination)
                if each.slot is not None:
                    slots[record.uid].add(each.slot)
    return _Places(frozenset(destinations), frozenset(map(key_of, destinations)), dict(slots))


def _concerns(record: Record, places: _Places, before: Folder) -> bool:
    """Tell whether a record is about one of *places*; *before* has not taken it yet.

    Once it has, a record of everybody's leaving would be about nobody. Where the record before is
    of another placement of that name, those who were there are not who leaves.
    """
    if record.everybody:
        state = before.state()
        same = state.last is not None and state.last.uid == record.uid
        return same and any(each in state.standings for each in places.destinations)
    if any(each.destination in places.destinations for each in record.named):
        return True
    slots = places.slots.get(record.uid)
    if record.slots is not None and slots is not None and slots.intersect(record.slots):
        return True
    return any(key in places.keys for key in record.keys)


def _is_about(item: Mapping[str, Any], text: str) -> bool:
    """Tell whether a record is about the object called ``kind/[namespace/]name``.

    Records have no kinds, so a kind is a resource here: ``deployments``, ``deployments.apps``, and
    ``deployment`` as far as leaving out the last letter makes one.
    """
    kind, _, rest = text.partition("/")
    namespace, _, name = rest.rpartition("/")
    resource = str(item.get("resource", ""))
    kinds = (resource, f"{resource}.{item.get('group', '')}", resource.removesuffix("s"))
    return (
        kind.lower() in kinds
        and item.get("name") == name
        and (not namespace or item.get("namespace", "") == namespace)
    )


def row(record: Record, now: datetime) -> tuple[str, ...]:
    """Return the cells of one record; *now* has the zone of whoever asks."""
    return _row(record, now, of_today=_is_of_today(record, now))


def _is_of_today(record: Record, now: datetime) -> bool:
    return record.time.astimezone(now.tzinfo).date() == now.date()


def _row(record: Record, now: datetime, *, of_today: bool) -> tuple[str, ...]:
    obj, time = record.object, record.time.astimezone(now.tzinfo).replace(microsecond=0)
    return (
        time.strftime("%H:%M:%S") if of_today else time.isoformat(),
        _change(obj),
        str(record.count),
        _revisions(record),
        why(obj),
        cause(obj),
    )


def _change(obj: Mapping[str, Any]) -> str:
    if obj["change"] == "Judged":
        return f"Judged {(obj.get('reason') or {}).get('code', '')}".strip()
    return str(obj["change"])


def _revisions(record: Record) -> str:
    if record.start is None and record.to is None:
        return ""
    if record.change in ("Delivered", "Judged"):
        return str(record.to or record.start)
    before, after = (_NOTHING if n is None else str(n) for n in (record.start, record.to))
    return f"{before}→{after}"


def why(obj: Mapping[str, Any]) -> str:
    """Return why, in a sentence, or in a word."""
    reason = obj.get("reason") or {}
    text = str(reason.get("text") or reason.get("code", ""))
    item = obj.get("object")
    if item:
        name = "/".join(filter(None, (item.get("namespace"), item.get("name"))))
        if name in text:
            return text  # it says which
        return f"{item.get('resource', '')} {name}: {text}"
    return text


def cause(obj: Mapping[str, Any]) -> str:
    """Return who or what led to a decision.

    A user was authenticated; a field manager is what a client calls itself, hence "unverified".
    """
    first = obj.get("cause")
    if not first:
        return ""
    text = f"{first.get('kind', '')}/{first.get('name', '')}"
    if first.get("change"):
        text += f" {first['change']}"
    if first.get("user"):
        text += f" by {first['user']}"
    elif first.get("manager"):
        text += f" by {first['manager']} (unverified)"
    others = obj.get("otherCauses") or ()
    more = max(int(obj.get("causeCount") or 0) - 1, len(others))
    return f"{text} and {more} more" if more else text


def table(records: Sequence[Record], now: datetime) -> list[tuple[str, ...]]:
    """Return the story: its header, and a row a record; *now* has the zone of whoever asks."""
    of_today = all(_is_of_today(each, now) for each in records)
    return [HEADER, *(_row(each, now, of_today=of_today) for each in records)]


def state_rows(state: State, location: str = "") -> list[tuple[str, ...]]:
    """Return one row for each destination of a state."""
    rows: list[tuple[str, ...]] = [("LOCATION", "SYNCTARGET", "REVISION")]
    for each in sorted(state.standings.values(), key=lambda standing: standing.destination):
        if not location or each.destination.location == location:
            revision = _NOTHING if each.revision is None else str(each.revision)
            rows.append((each.destination.location, each.destination.sync_target, revision))
    return rows


def difference_rows(differences: Differences) -> list[tuple[str, ...]]:
    """Return one row for each destination that differs."""
    rows: list[tuple[str, ...]] = [("CHANGE", "LOCATION", "SYNCTARGET", "FROM→TO")]
    for destination, each in differences.items():
        rows.append((_kind(each), destination.location, destination.sync_target, _span(each)))
    return rows


def _kind(difference: Difference) -> str:
    if difference.before is None:
        return "Joined"
    return "Left" if difference.after is None else "Revised"


def _span(difference: Difference) -> str:
    numbers = [each.revision if each is not None else None for each in difference]
    if numbers == [None, None]:
        return ""
    before, after = (_NOTHING if number is None else str(number) for number in numbers)
    return f"{before}→{after}"
