"""Why a destination came or went, as the index of placements has it at that moment.

The first reason that applies is the one: what has gone cannot match, and what does not match needs
no grant. They are short, so that many destinations share one and a record is about all of them.

    the EdgePlacement, then the Location is gone    PlacementDeleted, LocationDeleted
    no selector matches, or not the workspace       NotSelected, WorkspaceNotSelected
    the SyncTarget is gone, or another of its name  SyncTargetDeleted
    all of it matches still                         NotGranted, PassedOver by the strategy, Restored
    the Location has the SyncTarget no longer       NoInstance

The index is asked after the change, so ``why_left`` explains what is, and not what it was before.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyroaring import BitMap

from skerry.api.edge import sync_target_ref
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.history.record import Reason
from skerry.logic.fleet.placement.destination import DestinationTable
from skerry.logic.fleet.placement.records import Destination, Location, Placement
from skerry.logic.fleet.placement.terms import Term, Terms, failing, matches

RESTORED = Reason("Restored", "the slice was edited")
_SELECTED = Reason("Selected")
_BY_THE_FIRST = Reason("Selected", "locationSelectors[0] matches")
_CHOSEN = Reason("Chosen", "chosen by the strategy among the Locations that match")


def why_joined(index: DestinationTable, ref: ObjectRef, destination: Destination) -> Reason:
    """Return why a placement has a destination."""
    placement = index.placement(ref)
    if placement is None:
        return _SELECTED
    if placement.strategy is not None:
        return _CHOSEN
    if len(placement.selectors) == 1:
        return _BY_THE_FIRST  # nobody comes in by any other
    location = index.inventory.location(destination.location_ref)
    if location is None:
        return _SELECTED
    for number, terms in enumerate(placement.selectors):
        if matches(terms, location.labels):
            return Reason("Selected", f"locationSelectors[{number}] matches")
    return _SELECTED


def why_left(index: DestinationTable, ref: ObjectRef, destination: Destination) -> Reason:
    """Return why a placement has a destination no longer."""
    placement = index.placement(ref)
    location = index.inventory.location(destination.location_ref)
    if placement is None:
        return Reason("PlacementDeleted", "the EdgePlacement was deleted")
    if location is None:
        return Reason("LocationDeleted", "the Location was deleted")
    failed = _failed(index, placement, location)
    if failed is not None:
        return failed
    target = index.inventory.sync_target(
        sync_target_ref(destination.cluster, destination.sync_target)
    )
    if target is None or target.uid != destination.uid:
        return Reason("SyncTargetDeleted", "the SyncTarget was deleted")
    number = index.inventory.location_number(location.ref)
    if number is not None and destination in index.inventory.destinations(number):
        return _passed_over(index, placement, number)
    if location.instances is None:
        return Reason("NoInstance", "the Location's instanceSelector matches nothing")
    text = _first(location.instances, target.labels, "instanceSelector")
    return Reason("NoInstance", text or "the SyncTarget is no instance of the Location")


def _failed(index: DestinationTable, placement: Placement, location: Location) -> Reason | None:
    """Return which selector does not match a Location, and by which label."""
    if not placement.selectors:
        return Reason("NotSelected", "locationSelectors is empty, which selects nothing")
    if not any(matches(terms, location.labels) for terms in placement.selectors):
        text = _first(placement.selectors[0], location.labels, "locationSelectors[0]")
        more = len(placement.selectors) - 1
        others = f", nor do {more} others match" if more > 1 else ", nor does the other match"
        return Reason("NotSelected", text + others if more else text)
    if placement.workspaces is not None:
        labels = index.workspace_labels(location.ref.cluster)
        text = _first(placement.workspaces, labels, "locationWorkspaceSelector")
        if text:
            return Reason("WorkspaceNotSelected", text)
    return None


def _passed_over(index: DestinationTable, placement: Placement, number: int) -> Reason:
    """Return why a Location that matches is not taken."""
    if index.consent.is_used:
        refused = index.consent.judge(placement.ref.cluster, BitMap((number,))).refused
        if refused:
            by = ", ".join(index.consent.refusing_names(refused))
            return Reason("NotGranted", f"not granted by {by}")
    if placement.strategy is None:
        return RESTORED
    refusal = index.refusal(placement.ref, number, frozenset())
    return Reason("PassedOver", f"strategy: {refusal or 'other Locations were chosen'}")


def _first(terms: Terms, labels: Mapping[str, str], selector: str) -> str:
    """Return the first term that labels do not satisfy, as ``selector: key must be value``."""
    for key, term in failing(terms, labels):
        return f"{selector}: {key} {_demand(term)}"
    return ""


def _demand(term: Term) -> str:
    values = sorted(term.values)
    if not term.complement and len(values) == 1 and not term.absent:
        return f"must be {values[0]}"
    if term.complement and len(values) == 1 and term.absent:
        return f"must not be {values[0]}"
    return f"must satisfy {term}"
