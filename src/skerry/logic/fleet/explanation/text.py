"""Answers in words and columns, for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from skerry.logic.fleet.explanation.answer import Answer, PairAnswer
from skerry.logic.fleet.explanation.changes import PlacementChange
from skerry.logic.fleet.explanation.links import Link
from skerry.logic.fleet.placement.records import Destination

# Lines of one kind in a text answer; -o json has no bound.
_MAX_LINES = 200


def answer_text(found: Answer, workspace: str) -> str:
    """Return an answer as text for people."""
    at = [each for each in found.locations if each.link.holds]
    meant = [each for each in found.objects if each.link.holds]
    counted = f"{len(at)} of {len(found.locations)} locations"
    counted += f", {len(meant)} of {len(found.objects)} objects"
    lines = [f"EdgePlacement {found.ref.name} in {workspace}: {counted}", "", "LOCATIONS"]
    rows = [
        (f"{each.ref.name} ({each.ref.cluster})", *_verdict(each.link, "destination"))
        for each in found.locations
    ]
    lines += _listed(rows)
    lines += ["", "OBJECTS"]
    lines += _listed([(str(o.item), *_verdict(o.link, "selected")) for o in found.objects])
    if found.pairs:
        lines += ["", "OBJECTS AT DESTINATIONS"]
        lines += _listed([_pair(pair) for pair in found.pairs])
    return "\n".join(lines) + "\n"


def changes_text(found: Sequence[PlacementChange]) -> str:
    """Return what would change as text for people."""
    if not found:
        return "nothing would change\n"
    lines: list[str] = []
    for each in found:
        lines.append(f"EdgePlacement {each.ref.name} in {each.workspace or each.ref.cluster}")
        lines += _signed("+ destination", map(_where, each.destinations_added))
        lines += _signed("- destination", map(_where, each.destinations_removed))
        lines += _signed("! held destination", map(_where, each.destinations_held))
        lines += _signed("= no longer held destination", map(_where, each.destinations_freed))
        lines += _signed("+ object", map(str, each.objects_added))
        lines += _signed("- object", map(str, each.objects_removed))
    return "\n".join(lines) + "\n"


_Row = tuple[str, str, tuple[str, ...]]


def _verdict(link: Link, positive: str) -> tuple[str, tuple[str, ...]]:
    notes = link.messages
    if link.edit:
        notes = (*notes, f"to change that: {link.edit}")
    if link.holds:
        return (f"{positive}: {link.reason}", notes) if link.reason == "Held" else (positive, ())
    return f"no: {link.reason}" if link.holds is False else f"unknown: {link.reason}", notes


def _pair(pair: PairAnswer) -> _Row:
    target = f" by {pair.sync_target}" if pair.sync_target else ""
    name = f"{pair.item} at {pair.ref.name}{target}"
    broken = pair.chain.broken
    if broken is None:
        last = pair.chain.links[-1].step
        return name, "Healthy" if last == "health" else "there", ()
    _, notes = _verdict(broken, "")
    return name, f"{broken.step}: {broken.reason}", notes


def _listed(rows: Sequence[_Row]) -> Iterator[str]:
    shown = rows[:_MAX_LINES]
    width = min(60, max((len(name) for name, _, _ in shown), default=0))
    for name, verdict, notes in shown:
        yield f"  {name:<{width}}  {verdict}"
        for note in notes:
            yield f"  {'':<{width}}    {note}"
    if not rows:
        yield "  none"
    if len(rows) > len(shown):
        yield f"  … and {len(rows) - len(shown)} more (all with -o json)"


def _where(destination: Destination) -> str:
    return f"{destination.location} by {destination.sync_target} ({destination.cluster})"


def _signed(sign: str, names: Iterable[str]) -> Iterator[str]:
    found = list(names)
    for name in found[:_MAX_LINES]:
        yield f"  {sign} {name}"
    if len(found) > _MAX_LINES:
        yield f"  … and {len(found) - _MAX_LINES} more (all with -o json)"
