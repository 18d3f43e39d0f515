"""Reads the rollout that a change would start out of what was read of a hub."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from skerry.api.edge import SINGLE_PLACEMENT_SLICES, placement_of_slice
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.guards.freeze import Frozen, content_frozen
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.placement.slices import Assigned, assigned_in, destinations_in
from skerry.logic.fleet.revision.cut import settle_of
from skerry.logic.fleet.rollout.foresight import Prospect, RolloutForeseen, foreseen_rollout
from skerry.logic.fleet.rollout.spec import read_spec
from skerry.logic.fleet.rollout.state import state_of, verdicts_of
from skerry.logic.fleet.rollout.waves import Place

_SLICE = SINGLE_PLACEMENT_SLICES.group_resource


def prospect(
    rollout: Object,
    ref: ObjectRef,
    going: Mapping[ObjectRef, Sequence[Destination]],
    slices: Sequence[Object],
    locations: Mapping[ObjectRef, Object],
    frozen: Callable[[ObjectRef], Frozen],
) -> RolloutForeseen:
    """Return the rollout that another content of a placement would start.

    *going* are the destinations of placements, *slices* those of all of them; *frozen* returns
    what freezes stop for one.
    """
    spec, status = rollout.get("spec") or {}, rollout.get("status") or {}
    state = state_of(status)
    settle = settle_of(spec)
    stops = frozen(ref)
    places: list[Place] = []
    names: dict[int, str] = {}
    held: dict[int, str] = {}
    known = _assigned(ref, slices)
    following = 1 + max((each.slot for each in known.values()), default=0)
    for number, destination in enumerate(_edges(going.get(ref, ())), following):
        # Who has no slot yet gets one that nobody has.
        given = known.get(destination.uid)
        slot = given.slot if given is not None else number
        location = locations.get(destination.location_ref) or {"metadata": {}}
        labels = location["metadata"].get("labels") or {}
        places.append(Place(slot, destination.uid, labels, given.revision if given else 0))
        names[slot] = destination.location
        if stops and content_frozen(stops, labels) is not None:
            held[slot] = " and ".join(stops.at(labels).freezes)
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


def _assigned(ref: ObjectRef, slices: Sequence[Object]) -> dict[str, Assigned]:
    """Return what the destinations of a placement are given, by SyncTarget UID."""
    found: dict[str, Assigned] = {}
    for piece in slices:
        if (ObjectRef.of(_SLICE, piece).cluster, placement_of_slice(piece)) == (
            ref.cluster,
            ref.name,
        ):
            for each, given in zip(destinations_in(piece), assigned_in(piece), strict=True):
                if given is not None:
                    found.setdefault(each.uid, given)
    return found
