"""Why a Location is or is not a destination of a placement, and what would change that.

The answer follows the rule itself: some selector must match the Location, its workspace must
match, some SyncTarget must be an instance of it, a grant must admit the placement where the
Location's workspace enforces grants, and a strategy, if there is one, must choose it.
Every link that fails is named, not only the first. An edit is minimal in the number of labels that
it touches, and always one that suffices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import combinations, product
from typing import Literal

from pyroaring import BitMap

from skerry.api.refs import ObjectRef
from skerry.logic.fleet.placement.destination import NOWHERE, DestinationTable
from skerry.logic.fleet.placement.records import Location, Placement
from skerry.logic.fleet.placement.terms import Term, Terms, failing, matches

Subject = Literal["Location", "SyncTarget", "Workspace"]

# Labels that have to change together to leave every selector; more is more than anybody would do.
_MAX_EDITED = 3
# Stands for any value nobody mentions.
_OTHER = "other"


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
class Edit:
    """A change of labels of one object; None removes a label."""

    subject: Subject
    name: str
    labels: tuple[tuple[str, str | None], ...]

    def __str__(self) -> str:
        words = [f"{key}-" if value is None else f"{key}={value}" for key, value in self.labels]
        return f"label {self.subject} {self.name}: {' '.join(words)}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """The answer for one placement and one Location.

    ``selected``: labels and workspace match. ``chosen``: a strategy took it, or there is none.
    ``sync_targets``: by which it is a destination. ``edit`` is the smallest that would turn
    ``selected`` (or, if that holds, the lack of SyncTargets) around; None when labels cannot.
    """

    selected: bool
    chosen: bool
    sync_targets: tuple[str, ...]
    reasons: tuple[str, ...]
    failed: tuple[FailedTerm, ...]
    edit: Edit | None
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
    """Explain the placement called *ref* for the Location at *where*; both must exist."""
    placement, location = index.placement(ref), index.inventory.location(where)
    if placement is None:
        raise LookupError(f"there is no EdgePlacement {ref.qualified_name}")
    if location is None:
        raise LookupError(f"there is no Location {where.qualified_name}")
    if placement.errors:
        reasons = tuple(f"invalid selector: {error}" for error in placement.errors)
        return Explanation(False, False, (), reasons, (), None)
    return _explained(index, placement, location, present)


def _explained(
    index: DestinationTable,
    placement: Placement,
    location: Location,
    present: AbstractSet[ObjectRef],
) -> Explanation:
    by_labels = any(matches(terms, location.labels) for terms in placement.selectors)
    workspace = index.workspace_labels(location.ref.cluster)
    by_workspace = placement.workspaces is None or matches(placement.workspaces, workspace)
    selected = by_labels and by_workspace
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
        # No label of ours to change makes a grant.
        None
        if refused
        else _edit(index, placement, location, by_labels, by_workspace, bool(targets)),
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
    """Return what keeps the Location out; nothing where some selector matches."""
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


# -- edits -------------------------------------------------------------------------------------


def _edit(
    index: DestinationTable,
    placement: Placement,
    location: Location,
    by_labels: bool,
    by_workspace: bool,
    has_instances: bool,
) -> Edit | None:
    """Return the smallest edit that turns the answer around; None when no one object's can."""
    if by_labels and by_workspace and has_instances:
        return _leaving(placement, location)
    lacking = (by_labels, by_workspace, has_instances)
    if not by_labels and by_workspace:
        labels = _smallest(joining_edits(terms, location.labels) for terms in placement.selectors)
        return None if labels is None else Edit("Location", location.ref.name, labels)
    if by_labels and not by_workspace and placement.workspaces is not None:
        workspace = index.workspace_labels(location.ref.cluster)
        labels = joining_edits(placement.workspaces, workspace)
        return None if labels is None else Edit("Workspace", location.ref.cluster, labels)
    if lacking == (True, True, False) and location.instances is not None:
        return _instance_edit(index, location, location.instances)
    return None


def _instance_edit(index: DestinationTable, location: Location, terms: Terms) -> Edit | None:
    best: Edit | None = None
    for target in index.inventory.sync_targets_in(location.ref.cluster):
        labels = joining_edits(terms, target.labels)
        if labels is not None and (best is None or len(labels) < len(best.labels)):
            best = Edit("SyncTarget", target.ref.name, labels)
    return best


def joining_edits(
    terms: Terms, labels: Mapping[str, str]
) -> tuple[tuple[str, str | None], ...] | None:
    """Return the minimal label changes after which *labels* satisfy *terms*; None if none can."""
    edits: list[tuple[str, str | None]] = []
    for key, term in failing(terms, labels):
        if term.impossible:
            return None
        edits.append((key, _welcome(term)))
    return tuple(edits)


def _welcome(term: Term) -> str | None:
    """Return a value *term* admits, absence if it admits that."""
    if term.absent:
        return None
    if not term.complement:
        return min(term.values)
    return _unmentioned(term.values)


def _unmentioned(values: AbstractSet[str]) -> str:
    number = 0
    while (value := f"{_OTHER}-{number}" if number else _OTHER) in values:
        number += 1
    return value


def _smallest(
    found: Iterator[tuple[tuple[str, str | None], ...] | None],
) -> tuple[tuple[str, str | None], ...] | None:
    usable = [edits for edits in found if edits is not None]
    return min(usable, key=len, default=None)


def _leaving(placement: Placement, location: Location) -> Edit | None:
    """Return the smallest edit after which no selector matches the Location."""
    matching = [terms for terms in placement.selectors if matches(terms, location.labels)]
    if any(not terms for terms in matching):
        return None  # an empty selector lets nothing go
    choices = {
        key: _alternatives(placement.selectors, key, location.labels.get(key))
        for key in sorted({key for terms in matching for key, _ in terms})
    }
    for size in range(1, min(_MAX_EDITED, len(choices)) + 1):
        for keys in combinations(choices, size):
            for values in product(*(choices[key] for key in keys)):
                edited = _edited(location.labels, keys, values)
                if not any(matches(terms, edited) for terms in placement.selectors):
                    edits = tuple(zip(keys, values, strict=True))
                    return Edit("Location", location.ref.name, edits)
    return None


def _alternatives(selectors: Sequence[Terms], key: str, present: str | None) -> list[str | None]:
    """Return the values that may make a difference: absence, those mentioned, and one that is not.

    Removing a label comes first, as the edit that is easiest to say.
    """
    mentioned = {value for terms in selectors for k, t in terms if k == key for value in t.values}
    values: list[str | None] = [None, *sorted(mentioned), _unmentioned(mentioned)]
    return [value for value in values if value != present]


def _edited(
    labels: Mapping[str, str], keys: Sequence[str], values: Sequence[str | None]
) -> dict[str, str]:
    edited = dict(labels)
    for key, value in zip(keys, values, strict=True):
        if value is None:
            edited.pop(key, None)
        else:
            edited[key] = value
    return edited
