"""A LocationConsent in words: what is refused, what is held, and how to confirm.

A removal is confirmed by the id of what is held, and an id is made of exactly the destinations or
objects that it stands for: whoever confirms has seen that list, and what was added since has
another id. So everything here deals in ids; a workspace's path is only a short way to name those
that are of it now.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from skerry.api.edge import ENFORCE
from skerry.kit.text import inert_lines
from skerry.logic.fleet.placement.consent_record import confirmed_ids

Record = Mapping[str, Any]


class Hold(NamedTuple):
    """Something that waits for a confirmation."""

    id: str
    # Empty: opening the inventory workspace itself.
    workspace: str
    text: str

    @property
    def opens(self) -> bool:
        return not self.workspace


def holds(record: Record) -> list[Hold]:
    """Return everything that waits for a confirmation, in the order of the object."""
    found = [
        Hold(each["id"], each["workspace"], f"{each['workspace']}: {_destinations(each)}")
        for each in (record.get("destinations") or {}).get("held") or ()
    ]
    found += [
        Hold(each["id"], each["workspace"], f"{each['workspace']}: {_objects(each)}")
        for each in (record.get("objects") or {}).get("held") or ()
    ]
    if "opening" in record:
        found.append(Hold(record["opening"]["id"], "", "open the workspace: no grant enforces"))
    return found


def chosen(record: Record, names: Sequence[str], *, everything: bool, opens: bool) -> list[Hold]:
    """Return what *names* (ids or paths of workspaces) mean; ``LookupError`` for one unknown.

    *everything* adds all removals, *opens* the opening, which nothing else does.
    """
    waiting = holds(record)
    found = [each for each in waiting if everything and not each.opens]
    for name in names:
        meant = [h for h in waiting if name in (h.id, h.workspace) and not h.opens]
        if not meant:
            raise LookupError(f"nothing that is held has the id or workspace {name!r}")
        found += meant
    if opens:
        opening = [each for each in waiting if each.opens]
        if not opening:
            raise LookupError("the workspace does not wait to be opened")
        found += opening
    return list(dict.fromkeys(found))


def outstanding(record: Record, ids: Sequence[str]) -> list[str]:
    """Return which of *ids* have not been taken yet."""
    waiting = confirmed_ids(dict(record))
    return [each for each in ids if each in waiting]


def unnoted(record: Record | None, ids: Sequence[str]) -> list[str]:
    """Return which of *ids*, all taken, stood for nothing any more.

    With the opening of a workspace without grants its record goes, and that was confirmed then.
    """
    if record is None:
        return []
    noted = {each["id"] for each in record.get("confirmations") or ()}
    return [each for each in ids if each not in noted]


def consent_text(record: Record | None, workspace: str) -> str:
    """Return the consent of an inventory workspace as text for people."""
    if record is None:
        return f"{workspace} is open: it has no LocationGrant\n"
    enforced = record["mode"] == ENFORCE
    numbers = f"{record.get('grants', 0)} grants, {record.get('enforcingGrants', 0)} enforcing"
    lines = [f"{workspace}: {record['mode']} ({numbers})"]
    lines += ["", "REFUSED" if enforced else "WOULD BE REFUSED", *_refused(record)]
    lines += ["", "HELD UNTIL CONFIRMED", *_held(record)]
    return inert_lines(lines)


def _refused(record: Record) -> Iterator[str]:
    parts = record.get("destinations") or {}, record.get("objects") or {}
    lines = [
        f"{each['workspace']}: {_destinations(each)}" for each in parts[0].get("refused") or ()
    ]
    lines += [f"{each['workspace']}: {_objects(each)}" for each in parts[1].get("refused") or ()]
    omitted = sum(int(part.get("refusedOmitted") or 0) for part in parts)
    yield from _listed(lines, omitted)


def _held(record: Record) -> Iterator[str]:
    parts = record.get("destinations") or {}, record.get("objects") or {}
    omitted = sum(int(part.get("heldOmitted") or 0) for part in parts)
    yield from _listed([f"{each.id}  {each.text}" for each in holds(record)], omitted)
    if record.get("held"):
        yield "  confirm with: skerry grants confirm ID"


def _listed(lines: Sequence[str], omitted: int) -> Iterator[str]:
    for line in lines:
        yield f"  {line}"
    if omitted:
        yield f"  … and {omitted} more"
    if not lines:
        yield "  nothing"


def _destinations(entry: Record) -> str:
    names = entry.get("locationNames") or ()
    listed = ", ".join(names)
    more = ", …" if int(entry.get("locations") or 0) > len(names) else ""
    where = f" ({listed}{more})" if names else ""
    placements = entry.get("placements", 0)
    return f"{placements} EdgePlacements at {entry.get('locations', 0)} Locations{where}"


def _objects(entry: Record) -> str:
    return f"{entry.get('objects', 0)} objects ({', '.join(entry.get('resources') or ())})"
