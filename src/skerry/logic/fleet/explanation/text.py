"""Answers in words and columns, for people.

A verdict is the last column, and why, and what would change it, stand below it: a line that is read
across says what, and the eye goes down only where it is not content. Columns are as wide as what is
in them, up to a bound, beyond which a cell pushes its own row aside and not everybody's. Lists are
cut at a length that a person may read and say by how much. JSON has every row; only the fields of
one comparison are bounded there as well (``contents.MAX_FIELDS``).

    EdgePlacement web in root:shop: 1 of 2 locations, 1 of 1 objects

    LOCATION   WORKSPACE   DESTINATION
    bergen     root:imw    yes
    oslo       root:imw    no: LocationNotSelected
                             locationSelectors[0]: label 'env' must satisfy ...
                             to change that: label Location oslo: env=prod
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from skerry.api.refs import ObjectRef
from skerry.kit.text import inert_lines
from skerry.logic.fleet.explanation.answer import Answer, LocationAnswer, PairAnswer
from skerry.logic.fleet.explanation.changes import Path, PlacementChange
from skerry.logic.fleet.explanation.links import Link
from skerry.logic.fleet.explanation.problems import PlacementProblem
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.rollout.text import foreseen_lines

# Lines of one kind in a text answer; -o json has no bound.
_MAX_LINES = 200
# Destinations of a group that are named; the others are a number.
_MAX_NAMES = 10
# A longer cell pushes its own row aside rather than all.
_MAX_WIDTH = 50
_GAP = "   "


def answer_text(found: Answer) -> str:
    """Return an answer as text for people."""
    at = [each for each in found.locations if each.link.holds]
    meant = [each for each in found.objects if each.link.holds]
    counted = f"{len(at)} of {len(found.locations)} locations"
    counted += f", {len(meant)} of {len(found.objects)} objects"
    lines = [f"EdgePlacement {found.ref.name} in {found.workspace}: {counted}", ""]
    lines += _table(
        ("LOCATION", "WORKSPACE", "DESTINATION"),
        [((e.ref.name, e.workspace), *_verdict(e.link, _yes(e))) for e in found.locations],
    )
    lines += ["", *_objects(found)]
    if found.pairs:
        lines += ["", *_pairs(found.pairs)]
    return inert_lines(lines)


def _yes(found: LocationAnswer) -> str:
    return "yes" if found.revision is None else f"yes, revision {found.revision}"


def problems_text(found: Sequence[PlacementProblem]) -> str:
    """Return what is wrong as text for people, the worst first."""
    if not found:
        return "no problems\n"
    rows = []
    for each in found:
        about = "-" if each.item is None else str(each.item)
        names = ", ".join(each.places[:_MAX_NAMES])
        more = (
            f", and {len(each.places) - _MAX_NAMES} more" if len(each.places) > _MAX_NAMES else ""
        )
        _, notes = _verdict(each.link, "")
        cells = (each.workspace, each.placement.name, about)
        rows.append((cells, f"{each.link.step}: {each.link.reason}", (f"at {names}{more}", *notes)))
    return inert_lines(_table(("WORKSPACE", "PLACEMENT", "OBJECT", "PROBLEM"), rows))


def _objects(found: Answer) -> Iterator[str]:
    rows = [
        ((str(each.item.group_resource), _local(each.item)), *_verdict(each.link, "yes"))
        for each in found.objects
    ]
    return _table(("KIND", "OBJECT", "SELECTED"), rows)


def _pairs(pairs: Sequence[PairAnswer]) -> Iterator[str]:
    return _table(("KIND", "OBJECT", "LOCATION", "EDGE", "STATE"), [_pair(pair) for pair in pairs])


def _local(item: ObjectRef) -> str:
    return f"{item.namespace}/{item.name}" if item.namespace else item.name


def changes_text(
    found: Sequence[PlacementChange], path: Path = str, created: Sequence[str] = ()
) -> str:
    """Return what would change as text for people; *created* are objects that would be new.

    A line begins with what becomes of the thing:

        +  it comes              >  it goes to the new destinations too, being sent already
        -  it goes               ~  it is sent as before, with other content
        !  a destination stays until its removal is confirmed, or an object does not arrive
        =  a destination needs no confirmation any more
    """
    lines = [f"+ new {name}" for name in created]
    if not found:
        lines.append("nothing else would change" if created else "nothing would change")
    for each in found:
        lines.append(f"EdgePlacement {each.ref.name} in {path(each.ref.cluster)}")
        lines += _destinations(each, path)
        lines += _signed("+ object", map(str, each.objects_added))
        lines += _signed("- object", map(str, each.objects_removed))
        if each.destinations_added:
            lines += _signed("> goes there too: object", map(str, each.arriving))
        for change in each.contents:
            lines.append(f"  ~ object {change.item} at {_counted(change.destinations)}")
            lines += [f"      {field}" for field in change.fields]
        for held in each.withheld:
            where = _counted(held.destinations)
            lines.append(f"  ! withheld: object {held.item} at {where}")
            lines.append(f"      {held.problem.reason}: {held.problem.message}")
        if each.rollout is not None:
            lines += foreseen_lines(each.rollout)
    return inert_lines(lines)


def _destinations(change: PlacementChange, path: Path) -> Iterator[str]:
    """Yield the lines of destinations, aligned over all four groups."""
    groups = (
        ("+ destination", change.destinations_added),
        ("- destination", change.destinations_removed),
        ("! held destination", change.destinations_held),
        ("= no longer held destination", change.destinations_freed),
    )
    shown = [each for _, found in groups for each in found[:_MAX_LINES]]
    names = {each: f"{each.location} by {each.sync_target}" for each in shown}
    width = max(map(len, names.values()), default=0)
    for sign, found in groups:
        where = (f"{names[d]:<{width}}  {path(d.cluster)}" for d in found[:_MAX_LINES])
        yield from _signed(sign, where, more=len(found) - _MAX_LINES)


def _counted(destinations: Sequence[Destination]) -> str:
    """Return how many destinations, and the first of them by name."""
    names = [each.location for each in destinations]
    more = f", and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    word = "destination" if len(names) == 1 else "destinations"
    return f"{len(names)} {word}: {', '.join(names[:_MAX_NAMES])}{more}"


# The cells of a row, its verdict, and notes below it.
_Row = tuple[tuple[str, ...], str, tuple[str, ...]]


def _verdict(link: Link, positive: str) -> tuple[str, tuple[str, ...]]:
    """Return the last cell of a row, and the notes below it; unknown is a word of its own.

    What holds has no reason but ``Held``: it is there although nobody would admit it now.
    """
    notes = link.messages
    if link.edit:
        notes = (*notes, f"to change that: {link.edit}")
    if link.holds:
        return (f"{positive}: {link.reason}", notes) if link.reason == "Held" else (positive, ())
    return f"no: {link.reason}" if link.holds is False else f"unknown: {link.reason}", notes


def _pair(pair: PairAnswer) -> _Row:
    """Return the row of a pair: how far it gets, and why no further.

    A kind without health ends as ``there``. That an older revision is sent breaks no chain, but a
    person who looks for an edit of a minute ago has to read it: it is a note.
    """
    item = pair.item
    cells = (str(item.group_resource), _local(item), pair.ref.name, pair.sync_target or "-")
    broken = pair.chain.broken
    if broken is None:
        last = pair.chain.links[-1].step
        older = [each for each in pair.chain.links if each.reason == "OtherRevision"]
        notes = tuple(message for each in older for message in each.messages)
        return cells, "Healthy" if last == "health" else "there", notes
    _, notes = _verdict(broken, "")
    return cells, f"{broken.step}: {broken.reason}", notes


def _table(head: tuple[str, ...], rows: Sequence[_Row]) -> Iterator[str]:
    """Yield rows in aligned columns, their notes below the last of them."""
    shown = rows[:_MAX_LINES]
    widths = [
        min(_MAX_WIDTH, max(len(cells[number]) for cells in (head, *(row[0] for row in shown))))
        for number in range(len(head) - 1)
    ]
    indent = " " * sum(width + len(_GAP) for width in widths)

    def line(cells: Sequence[str], last: str) -> str:
        padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        return _GAP.join([*padded, last]).rstrip()

    yield line(head[:-1], head[-1])
    for cells, verdict, notes in shown:
        yield line(cells, verdict)
        yield from (f"{indent}  {note}" for note in notes)
    if not rows:
        yield "none"
    if len(rows) > len(shown):
        yield f"… and {len(rows) - len(shown)} more (all with -o json)"


def _signed(sign: str, names: Iterable[str], more: int = 0) -> Iterator[str]:
    """Yield a line for each name; *more* are those that the caller has cut off already."""
    found = list(names)
    for name in found[:_MAX_LINES]:
        yield f"  {sign} {name}"
    left = max(more, len(found) - _MAX_LINES)
    if left > 0:
        yield f"  … and {left} more (all with -o json)"
