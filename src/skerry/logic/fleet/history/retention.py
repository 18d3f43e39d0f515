"""What of a placement's history may be dropped, and which checkpoint must stand first.

Nothing is dropped before a checkpoint stands for it, with all its pages, so no answer younger than
the checkpoint changes. A checkpoint a day keeps folding short.

The plan has two steps in one: first a checkpoint behind the records that go, then their deletion.
A process that dies in between leaves a checkpoint that stands, and the next plan is the deletion
alone. The newest checkpoint of a quiet placement is older than any limit and stays all the same:
it is the only one who knows the destinations.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Final, NamedTuple

from skerry.api.edge import HISTORY_RETENTION
from skerry.api.objects import Object
from skerry.logic.fleet.history.record import Order, Place

_DAY: Final = timedelta(days=1)
# Over a limit, a tenth more is dropped than must be: else every record would drop another.
_SLACK: Final = 0.9
_MAX_AGE: Final = timedelta(days=36_500)
_SETTING = re.compile(r"([0-9]{1,9})(d|h)?")


class Limits(NamedTuple):
    """How much history a placement keeps, whichever comes first. No age: no history at all."""

    age: timedelta = timedelta(days=30)
    records: int = 10_000
    size: int = 32 * 1024 * 1024

    @property
    def is_off(self) -> bool:
        return self.age <= timedelta(0)


class InvalidRetention(ValueError):
    """Why an annotation says no retention, in a sentence."""


def limits_of(annotation: str | None, usual: Limits) -> Limits:
    """Return the limits of one placement, by its annotation: ``0``, ``12h`` or ``90d``."""
    if annotation is None:
        return usual
    found = _SETTING.fullmatch(annotation.strip())
    if found is None or (found[2] is None and int(found[1])):
        raise InvalidRetention(f"{annotation!r}: want days or hours, such as 90d or 12h, or 0")
    try:
        age = int(found[1]) * (timedelta(hours=1) if found[2] == "h" else _DAY)
    except OverflowError as error:
        raise InvalidRetention(f"{annotation!r}: that is longer than there are dates") from error
    if age > _MAX_AGE:
        raise InvalidRetention(f"{annotation!r}: that is longer than a hundred years")
    return usual._replace(age=age)


def is_kept(placement: Object, usual: Limits) -> bool:
    """Tell whether anything is recorded about a placement; an annotation amiss says nothing."""
    text = (placement["metadata"].get("annotations") or {}).get(HISTORY_RETENTION)
    try:
        return not limits_of(text, usual).is_off
    except InvalidRetention:
        return not usual.is_off


class Kept(NamedTuple):
    """What of a record counts for retention.

    ``pages`` is how many a checkpoint has in all, ``place`` what they have in common.
    """

    order: Order
    time: datetime
    size: int
    pages: int
    place: Place


class Plan(NamedTuple):
    """A checkpoint is to stand behind the first *checkpoint* records; *drop* of them may go then.

    None: no checkpoint is due.
    """

    checkpoint: int | None = None
    drop: int = 0


def plan(records: Sequence[Kept], limits: Limits, now: datetime) -> Plan:
    """Return what is to be done about the records of one placement, given in order."""
    if not records:
        return Plan()
    if limits.is_off:
        return Plan(None, len(records))
    drop = _surplus(records, limits, now)
    # A checkpoint at the end of what would go may as well stay: it is the one that is needed.
    while drop and _is_checkpoint(records[drop - 1]):
        drop -= 1
    if drop:
        return Plan(None if _stands(records, drop) else drop, drop)
    newest = next((n for n in range(len(records) - 1, -1, -1) if _is_last_page(records, n)), None)
    since = records[newest if newest is not None else 0].time
    recorded = len(records) - 1 - (newest if newest is not None else -1)
    if recorded and now - since >= _DAY:
        return Plan(len(records), 0)
    return Plan()


def _is_checkpoint(kept: Kept) -> bool:
    return kept.order.checkpoint > 0


def _stands(records: Sequence[Kept], at: int) -> bool:
    """Tell whether a checkpoint begins at *at* and has all its pages.

    Who writes one may die between two pages. What it would stand for must stay until it is whole;
    it is written again from the same records, under the same names.
    """
    if at >= len(records) or not _is_checkpoint(records[at]):
        return False
    first = records[at]
    beside = (each for each in islice(records, at, None) if _is_beside(each, first))
    return len({each.order.checkpoint for each in beside}) >= first.pages


def _is_beside(kept: Kept, first: Kept) -> bool:
    """Tell whether a record is a page of the checkpoint that *first* is a page of."""
    return _is_checkpoint(kept) and kept.place == first.place


def _is_last_page(records: Sequence[Kept], at: int) -> bool:
    if not _is_checkpoint(records[at]):
        return False
    begin = at
    while begin and _is_beside(records[begin - 1], records[at]):
        begin -= 1
    return _stands(records, begin)


def _surplus(records: Sequence[Kept], limits: Limits, now: datetime) -> int:
    """Return how many of the first records must go."""
    oldest = now - limits.age
    drop = 0
    while drop < len(records) and records[drop].time < oldest:
        drop += 1
    if len(records) - drop > limits.records:
        drop = max(drop, len(records) - int(limits.records * _SLACK))
    size = sum(each.size for each in records[drop:])
    if size > limits.size:
        while drop < len(records) and size > limits.size * _SLACK:
            size -= records[drop].size
            drop += 1
    return drop
