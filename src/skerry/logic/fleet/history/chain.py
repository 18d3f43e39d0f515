"""Whether records follow each other without a gap.

Each record names the digest of the one before, of the same placement and controller; a placement
that was deleted and made anew under its name is another and begins a chain of its own. A checkpoint
names the last digest of every controller that it stands for, so what retention dropped is no gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from skerry.api.objects import Object
from skerry.logic.fleet.history.packing import Corrupt
from skerry.logic.fleet.history.record import digest, read


class Break(NamedTuple):
    """The record at which a chain does not hold, and why."""

    name: str
    text: str


def verify(objects: Sequence[Object]) -> list[Break]:
    """Return every break in the records of one placement, given in order; the first is first."""
    found: list[Break] = []
    heads: dict[tuple[str, str], str] = {}
    # What a checkpoint stands for may follow, if retention has not dropped it yet.
    standing_for: dict[str, str] = {}
    for obj in objects:
        name = obj["metadata"]["name"]
        try:
            record = read(obj)
        except Corrupt as error:
            found.append(Break(name, str(error)))
            continue
        controller = str((obj.get("by") or {}).get("controller", ""))
        if record.change == "Checkpoint" and obj.get("chains") is not None:
            standing_for |= {each["controller"]: each["digest"] for each in obj["chains"]}
            continue
        expected = heads.get((record.uid, controller))
        previous = obj.get("previous")
        stands = standing_for.get(controller)
        if previous != expected and (stands is None or previous != stands):
            found.append(Break(name, _gap(expected, previous, stands)))
        heads[record.uid, controller] = digest(obj)
    return found


def _gap(expected: str | None, previous: str | None, stands: str | None) -> str:
    if previous is None:
        return "begins a chain, though records of the same controller come before"
    if expected is None and stands is None:
        return f"follows {previous[:8]}, which is missing"
    return f"follows {previous[:8]}, not {(expected or stands or '')[:8]}, the record before it"
