"""What a placement's slices hold, and what a change of them is recorded as."""

from __future__ import annotations

from collections.abc import Mapping

from skerry.api.edge import SliceOwner, edge_placement_ref, location_ref
from skerry.controllers.edge_scheduler.history import Members, Story, recorded
from skerry.controllers.edge_scheduler.observed import Cause, Gathered, Observed, Recording, Result
from skerry.logic.fleet.history.record import Reason
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.placement.slices import Assigned, member, new_slice

P, OWNER = edge_placement_ref("wmw", "web"), SliceOwner("web", "uid-web")
A, B, C = (Destination("imw", name, name, f"uid-{name}") for name in "abc")
RELABELLED = Cause("Location", location_ref("imw", "a"), "label env=dr", "9", '{"user":"ann"}')
WHY = (lambda _: Reason("Selected"), lambda _: Reason("NotSelected"))


def observed(
    *held: Destination,
    causes: Gathered | None = None,
    given: Mapping[Destination, Assigned] | None = None,
    owner: SliceOwner = OWNER,
) -> Observed:
    piece = new_slice("web", owner, held, given)
    piece["metadata"]["resourceVersion"] = "12"
    members = Members()
    slices = {"web": members.lean(piece)} if held else {}
    recording = Recording(3, "7", "", members.get, *WHY)
    gathered = causes or Gathered((RELABELLED,), 1)
    return Observed(P, OWNER, Result(3), slices=slices, causes=gathered, history=recording)


def story(
    found: Observed, *wanted: Destination, given: Mapping[int, Assigned] | None = None
) -> Story | None:
    return recorded(found, {member(each): each for each in wanted}, given or {}).story
