"""Reads the rollout that a change would start out of what was read of a hub."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.guards.freeze import CONTENT, Frozen
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.placement.slices import Assigned
from skerry.logic.fleet.revision.cut import settle_of
from skerry.logic.fleet.rollout.foresight import Prospect, RolloutForeseen, foreseen_rollout
from skerry.logic.fleet.rollout.spec import read_spec
from skerry.logic.fleet.rollout.state import state_of, verdicts_of
from skerry.logic.fleet.rollout.waves import WaveMember


def prospect(
    rollout: Object,
    going: Sequence[Destination],
    known: Mapping[str, Assigned],
    locations: Mapping[ObjectRef, Object],
    stops: Frozen,
) -> RolloutForeseen:
    """Return the rollout that another content of a placement would start.

    *going* are its destinations, *known* what they are given by SyncTarget UID; *stops* is what
    freezes stop for it.
    """
    spec, status = rollout.get("spec") or {}, rollout.get("status") or {}
    state = state_of(status)
    settle = settle_of(spec)
    places: list[WaveMember] = []
    names: dict[int, str] = {}
    held: dict[int, str] = {}
    following = 1 + max((each.slot for each in known.values()), default=0)
    for number, destination in enumerate(_edges(going), following):
        # Who has no slot yet gets one that nobody has.
        given = known.get(destination.uid)
        slot = given.slot if given is not None else number
        location = locations.get(destination.location_ref) or {"metadata": {}}
        labels = location["metadata"].get("labels") or {}
        places.append(WaveMember(slot, destination.uid, labels, given.revision if given else 0))
        names[slot] = destination.location
        if standstill := stops.stopping(CONTENT, labels):
            held[slot] = " and ".join(standstill.freezes)
    return foreseen_rollout(
        Prospect(
            rollout["metadata"]["name"],
            read_spec(spec),
            state,
            places,
            names,
            settle.quiet,
            verdicts_of(status, state.attempt).absent,
            held,
            settle.manual,
        )
    )


def _edges(going: Sequence[Destination]) -> list[Destination]:
    """Return one destination for each SyncTarget."""
    return list({each.uid: each for each in reversed(going)}.values())[::-1]
