"""Why a Location is or is not a destination of a placement, and what would change that.

The answer follows the rule itself: some selector must match the Location, its workspace must
match, some SyncTarget must be an instance of it, a grant must admit the placement where the
Location's workspace enforces grants, and a strategy, if there is one, must choose it.
Every link that fails is named, not only the first. The edit that is offered has been tried
(``edits``): it suffices, and takes nothing else away.

    selected  chosen  refused  targets   the Location is
    no        no      no       -         not what the placement asks for
    yes       no      yes      any       refused by a grant
    yes       yes     yes      some      refused, and held: what runs there stays
    yes       no      no       any       passed over by the strategy
    yes       yes     no       none      chosen, and without a SyncTarget
    yes       yes     no       some      a destination
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from pyroaring import BitMap

from skerry.api.refs import ObjectRef
from skerry.logic.fleet.placement.destination import NOWHERE, DestinationTable
from skerry.logic.fleet.placement.edits import AnyEdit, edit_for
from skerry.logic.fleet.placement.records import Location, Placement
from skerry.logic.fleet.placement.terms import Terms, failing, matches


@dataclass(frozen=True, slots=True)
class FailedTerm:
    """A demand that is not met. ``seen`` None: the label is absent."""

    selector: str
    key: str
    wanted: str
    seen: str | None

    def __str__(self) -> str:
        seen = "it is absent" if self.seen is None else f"it is {self.seen!r}"
        return f"{self.selector}: label {self.key!r} must satisfy {self.wanted!r}; {seen}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """The answer for one placement and one Location.

    ``selected``: labels and workspace match. ``chosen``: a strategy took it, or there is none.
    ``sync_targets``: by which it is a destination. ``edit`` is the smallest that would turn
    ``placed`` around; None when no edit of one object does.
    """

    selected: bool
    chosen: bool
    sync_targets: tuple[str, ...]
    reasons: tuple[str, ...]
    failed: tuple[FailedTerm, ...]
    edit: AnyEdit | None
    # No grant admits the placement; ``held``: it keeps what it has there.
    refused: bool = False
    held: bool = False

    @property
    def placed(self) -> bool:
        """Whether the Location contributes destinations."""
        return self.chosen and bool(self.sync_targets)


def explain(
    index: DestinationTable,
    ref: ObjectRef,
    where: ObjectRef,
    present: AbstractSet[ObjectRef] = NOWHERE,
) -> Explanation:
    """Explain the placement called *ref* for the Location at *where*; both must exist.

    *present* are the Locations where it is now. A strategy treats these otherwise than newcomers,
    and they are held where a grant no longer admits the placement.
    """
    placement, location = index.placement(ref), index.inventory.location(where)
    if placement is None:
        raise LookupError(f"there is no EdgePlacement {ref.qualified_name}")
    if location is None:
        raise LookupError(f"there is no Location {where.qualified_name}")
    if placement.errors:
        reasons = tuple(f"invalid selector: {error}" for error in placement.errors)
        return Explanation(False, False, (), reasons, (), None)
    return _explained(index, placement, location, present)


def is_selected(index: DestinationTable, ref: ObjectRef, where: ObjectRef) -> bool:
    """Tell whether labels and workspace of a Location match, without saying why."""
    placement, location = index.placement(ref), index.inventory.location(where)
    if placement is None or placement.errors or location is None:
        return False
    return _matches(index, placement, location)


def _matches(index: DestinationTable, placement: Placement, location: Location) -> bool:
    workspace = index.workspace_labels(location.ref.cluster)
    by_workspace = placement.workspaces is None or matches(placement.workspaces, workspace)
    return by_workspace and any(matches(terms, location.labels) for terms in placement.selectors)


def _explained(
    index: DestinationTable,
    placement: Placement,
    location: Location,
    present: AbstractSet[ObjectRef],
) -> Explanation:
    workspace = index.workspace_labels(location.ref.cluster)
    selected = _matches(index, placement, location)
    number = index.inventory.location_number(location.ref)
    found = index.chosen(placement.ref, present, present)
    chosen = selected and number in found.locations
    refused = selected and number is not None and number in found.refused
    targets = index.inventory.destinations(number or 0) if selected else ()
    failed = _failed(placement, location, workspace)
    reasons = [str(each) for each in failed]
    if not placement.selectors:
        reasons.append("spec.locationSelectors is empty, which selects nothing")
    if refused:
        reasons += _not_granted(index, number or 0, held=chosen)
    elif selected and not chosen:
        reasons.append(_passed_over(index, placement, location, present))
    if selected and not targets:
        reasons += _without_instances(index, location)
    return Explanation(
        selected,
        chosen,
        tuple(target.sync_target for target in targets),
        tuple(reasons),
        tuple(failed),
        # No edit of ours makes a grant: that is for whoever the Location's workspace belongs to.
        None
        if refused
        else edit_for(index, placement, location, present, placed=chosen and bool(targets)),
        refused,
        refused and chosen,
    )


def _not_granted(index: DestinationTable, number: int, *, held: bool) -> Iterator[str]:
    by = ", ".join(index.consent.refusing_names(BitMap((number,))))
    yield f"not granted by {by}"
    if held:
        yield "what runs there already stays until its removal is confirmed"


def _failed(
    placement: Placement, location: Location, workspace: Mapping[str, str]
) -> list[FailedTerm]:
    """Return what keeps the Location out; of selectors nothing where one of them matches.

    Where none does, each is named with what fails of it: to satisfy one of them is enough.
    """
    found: list[FailedTerm] = []
    if not any(matches(terms, location.labels) for terms in placement.selectors):
        for number, terms in enumerate(placement.selectors):
            found += _terms(f"locationSelectors[{number}]", terms, location.labels)
    if placement.workspaces is not None:
        found += _terms("locationWorkspaceSelector", placement.workspaces, workspace)
    return found


def _terms(name: str, terms: Terms, labels: Mapping[str, str]) -> Iterator[FailedTerm]:
    for key, term in failing(terms, labels):
        yield FailedTerm(name, key, str(term), labels.get(key))


def _passed_over(
    index: DestinationTable,
    placement: Placement,
    location: Location,
    present: AbstractSet[ObjectRef],
) -> str:
    number = index.inventory.location_number(location.ref)
    refusal = "" if number is None else index.refusal(placement.ref, number, present)
    if refusal:
        return f"strategy: {refusal}"
    wanted = placement.strategy.number if placement.strategy is not None else None
    return f"strategy: {wanted} other locations were chosen"


def _without_instances(index: DestinationTable, location: Location) -> list[str]:
    """Return why a Location has no SyncTarget, term by term for each one in its workspace."""
    if location.errors:
        return [f"Location {location.ref.name}: {error}" for error in location.errors]
    if location.instances is None:
        return [f"Location {location.ref.name} has no instanceSelector, which matches nothing"]
    targets = index.inventory.sync_targets_in(location.ref.cluster)
    if not targets:
        return ["there is no SyncTarget in the Location's workspace"]
    return [
        f"SyncTarget {target.ref.name}: {failed}"
        for target in targets
        for failed in _terms("instanceSelector", location.instances, target.labels)
    ]
