"""When a revision is cut, and which number it gets.

A cut waits until what is sent has been quiet for a while, so that a person's ten commands become
one revision; but no longer than the longest, so that what is never quiet is rolled out too. Times
are the ones at which changes were observed, by whatever clock observed them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from skerry.logic.fleet.revision.objects import RevisionPage, latest
from skerry.logic.machinery.durations import DurationError, parse_duration

_SECOND = 1_000_000_000
_QUIET = "10s"
_LIMIT = "2m"


class Settle(NamedTuple):
    """When to cut: ``manual`` only when asked, with ``asked`` as the name of the cut."""

    quiet: float = 10.0
    limit: float = 120.0
    manual: bool = False
    asked: str = ""


USUAL = Settle()


def settle_of(spec: Mapping[str, Any], asked: str = "") -> Settle:
    """Return what a Rollout's spec says; *asked* is its annotation.

    What is malformed is as usual.
    """
    settle = spec.get("settle") or {}
    return Settle(
        _seconds(settle.get("quiet"), _QUIET),
        _seconds(settle.get("longest"), _LIMIT),
        settle.get("mode") == "Manual",
        asked,
    )


def _seconds(text: object, usual: str) -> float:
    try:
        return parse_duration(str(text or usual)) / _SECOND
    except DurationError:
        return parse_duration(usual) / _SECOND


class Activity(NamedTuple):
    """When the objects of a placement began to change, and when they last did."""

    since: float
    last: float

    def at(self, now: float) -> Activity:
        """Return it with one more change."""
        return Activity(min(self.since, now), max(self.last, now))


def due(settle: Settle, activity: Activity) -> float:
    """Return when a cut is due."""
    return min(activity.last + settle.quiet, activity.since + settle.limit)


def wants_cut(settle: Settle, pages: Sequence[RevisionPage]) -> bool:
    """Tell whether a cut is wanted at all when it is due.

    The first revision is always: there is nothing else to compare with and to return to. A name
    asks once, which the revision that came of it remembers.
    """
    if not settle.manual or not any(each.page == 1 for each in pages):
        return True
    return bool(settle.asked) and all(each.cut != settle.asked for each in pages)


class Numbered(NamedTuple):
    """What a cut comes to: the number, and the page to be noted on if the revision exists.

    ``sequence`` is that of the cut. ``news`` tells whether anything has to be written at all.
    """

    number: int
    sequence: int
    existing: RevisionPage | None
    news: bool


def numbered_cut(
    digest: str, pages: Sequence[RevisionPage], settle: Settle = USUAL, least: int = 1
) -> Numbered:
    """Return the number of the revision with that digest; a new one is the next of all.

    A revision of which somebody deleted a page is passed over: nobody could be sent it, and the
    same content is to be cut again. *least* is what a new one gets at least: nobody may have named
    it before.
    """
    first = sorted((each for each in pages if each.page == 1), key=lambda each: each.number)
    newest = latest(first)
    sequence = 1 + max((each.sequence for each in first), default=0)
    asked = settle.asked if settle.manual else ""
    there = Counter(each.number for each in pages)
    same = [each for each in first if each.digest == digest and there[each.number] >= each.pages]
    if same:
        found = same[-1] if newest is None or newest.digest != digest else newest
        news = found is not newest or (bool(asked) and found.cut != asked)
        return Numbered(found.number, sequence, found, news)
    number = max(least, 1 + max((each.number for each in pages), default=0))
    return Numbered(number, sequence, None, news=True)
