"""The smallest edit that turns an answer about a Location around, tried before it is offered.

An edit is one of labels (of the Location, its Workspace or a SyncTarget) or of the placement's
strategy. Each candidate is made in the table by ``whatif``, by the functions that the edge
scheduler acts by, and offered only if it does what was asked and takes no other destination away:
labels that make a SyncTarget an instance of one Location may make another Location lose it.

Candidates are made by looking at what fails, and are few: a term that is not satisfied has one
smallest remedy (the value it wants, or absence); to leave selectors, one key of each must change.
They are tried from the smallest on, and the first that works is offered; that it works is found out
by trying and not by reasoning about it, because grants, numbers and taints have a say as well. When
nothing small works, nothing is offered: a wrong hint costs a person more than none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Literal

from skerry.api.refs import ObjectRef
from skerry.logic.fleet.placement.destination import DestinationTable
from skerry.logic.fleet.placement.records import Destination, Location, Placement, SyncTarget
from skerry.logic.fleet.placement.strategy import Strategy
from skerry.logic.fleet.placement.terms import Term, Terms, failing, matches
from skerry.logic.fleet.placement.whatif import Change, LabelWorkspace, Put, what_if
from skerry.logic.machinery.taints import PREFER_NO_SCHEDULE, Taint, Toleration

Labels = Mapping[str, str]
LabelEdits = tuple[tuple[str, str | None], ...]
Subject = Literal["Location", "SyncTarget", "Workspace"]

# Labels that have to change together to leave every selector; more is more than anybody would do.
_MAX_EDITED = 3
# Numbers of Locations to try one by one; then all that match.
_MAX_MORE = 10
# Stands for any value nobody mentions.
_OTHER = "other"


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of labels of one object; None removes a label."""

    subject: Subject
    name: str
    labels: LabelEdits

    def __str__(self) -> str:
        return f"label {self.subject} {self.name}: {label_words(self.labels)}"


@dataclass(frozen=True, slots=True)
class StrategyEdit:
    """A change of an EdgePlacement's strategy: a larger number, or taints to tolerate."""

    name: str
    number: int | None = None
    tolerations: tuple[Toleration, ...] = ()

    def __str__(self) -> str:
        parts = []
        if self.number is not None:
            parts.append(f"numberOfLocations: {self.number}")
        if self.tolerations:
            parts.append(f"tolerations: [{', '.join(map(_toleration_words, self.tolerations))}]")
        verb = "add to" if self.tolerations else "set in"
        return f"{verb} spec.strategy of EdgePlacement {self.name}: {', '.join(parts)}"

    def applied(self, strategy: Strategy) -> Strategy:
        """Return *strategy* as the edit leaves it."""
        return replace(
            strategy,
            number=strategy.number if self.number is None else self.number,
            tolerations=(*strategy.tolerations, *self.tolerations),
        )


AnyEdit = Edit | StrategyEdit
_Candidate = tuple[AnyEdit, Change]


def edit_for(
    index: DestinationTable,
    placement: Placement,
    location: Location,
    present: AbstractSet[ObjectRef],
    *,
    placed: bool,
) -> AnyEdit | None:
    """Return the smallest edit after which the Location is a destination, or is none any more.

    *placed* says whether it is one now; None when no edit of one object does that alone.
    """
    found = _leaving(placement, location) if placed else _joining(index, placement, location)
    trial = _Trial(index, placement.ref, location.ref, present)
    return next((edit for edit, change in found if trial.works(change, placed=placed)), None)


class _Trial:
    """What would become of a placement and one Location by changes, each tried for itself."""

    def __init__(
        self,
        index: DestinationTable,
        placement: ObjectRef,
        location: ObjectRef,
        present: AbstractSet[ObjectRef],
    ) -> None:
        self._index = index
        self._placement = placement
        self._location = location
        # Nobody asks where a placement is to which that does not matter.
        there = present if index.remembers(placement) else ()
        numbers = map(index.inventory.location_number, there)
        found = index.destinations_at(number for number in numbers if number is not None)
        self._running = frozenset(found)

    def works(self, change: Change, *, placed: bool) -> bool:
        """Tell whether *change* turns the answer around and takes away nothing else."""
        differences = what_if(self._index, [change], self._runs)
        mine = next((each for each in differences if each.placement == self._placement), None)
        if mine is None:
            return False
        removed = {each.location_ref for each in mine.removed}
        if placed:
            return removed == {self._location}
        return not removed and any(each.location_ref == self._location for each in mine.added)

    def _runs(self, ref: ObjectRef) -> frozenset[Destination]:
        return self._running if ref == self._placement else frozenset()


# -- candidates ----------------------------------------------------------------------------------


def _joining(
    index: DestinationTable, placement: Placement, location: Location
) -> Iterator[_Candidate]:
    """Yield what might make a Location a destination, the smallest first."""
    by_labels = any(matches(terms, location.labels) for terms in placement.selectors)
    workspace = index.workspace_labels(location.ref.cluster)
    by_workspace = placement.workspaces is None or matches(placement.workspaces, workspace)
    if not by_workspace:
        if by_labels and placement.workspaces is not None:
            yield from _workspace_edits(index, location.ref.cluster, placement.workspaces)
        return
    if not by_labels:
        found = (joining_edits(terms, location.labels) for terms in placement.selectors)
        for labels in sorted((each for each in found if each is not None), key=len):
            edited = replace(location, labels=relabelled(location.labels, labels))
            yield Edit("Location", location.ref.name, labels), Put(edited)
        return
    number = index.inventory.location_number(location.ref)
    if number is None or not index.inventory.destinations(number):
        yield from _instance_edits(index, location)
    elif placement.strategy is not None:
        matching = len(index.matching(placement.ref))
        for edit in _strategy_edits(placement, placement.strategy, location, matching):
            changed = replace(placement, strategy=edit.applied(placement.strategy))
            yield edit, Put(changed)


def _workspace_edits(index: DestinationTable, cluster: str, terms: Terms) -> Iterator[_Candidate]:
    before = index.workspace_labels(cluster)
    labels = joining_edits(terms, before)
    if labels:
        name = index.consent.tree.path(cluster) or cluster
        yield Edit("Workspace", name, labels), LabelWorkspace(cluster, relabelled(before, labels))


def _instance_edits(index: DestinationTable, location: Location) -> Iterator[_Candidate]:
    """Yield how SyncTargets might become instances of a Location."""
    found: list[tuple[int, SyncTarget, LabelEdits]] = []
    for target in index.inventory.sync_targets_in(location.ref.cluster):
        labels = (
            None if location.instances is None else joining_edits(location.instances, target.labels)
        )
        if labels is not None:
            found.append((len(labels), target, labels))
    for _, target, labels in sorted(found, key=lambda each: (each[0], each[1].ref)):
        edited = replace(target, labels=relabelled(target.labels, labels))
        yield Edit("SyncTarget", target.ref.name, labels), Put(edited)


def _strategy_edits(
    placement: Placement, strategy: Strategy, location: Location, matching: int
) -> Iterator[StrategyEdit]:
    """Yield what might make a strategy take a Location that it passes over."""
    name = placement.ref.name
    lacking = tuple(
        Toleration(taint.key, "Equal" if taint.value else "Exists", taint.value, taint.effect)
        for taint in location.taints
        if taint.effect != PREFER_NO_SCHEDULE and not _is_tolerated(strategy, taint)
    )
    if lacking:
        yield StrategyEdit(name, tolerations=lacking)
    if strategy.number is not None:
        more = range(strategy.number + 1, min(matching, strategy.number + _MAX_MORE) + 1)
        for number in dict.fromkeys([*more, matching]):
            if number > strategy.number:
                yield StrategyEdit(name, number, lacking)


def _is_tolerated(strategy: Strategy, taint: Taint) -> bool:
    return any(each.tolerates(taint) for each in strategy.tolerations)


def _leaving(placement: Placement, location: Location) -> Iterator[_Candidate]:
    """Yield edits after which no selector matches the Location, the smallest first."""
    matching = [terms for terms in placement.selectors if matches(terms, location.labels)]
    if any(not terms for terms in matching):
        return  # an empty selector lets nothing go
    choices = {
        key: _alternatives(placement.selectors, key, location.labels.get(key))
        for key in sorted({key for terms in matching for key, _ in terms})
    }
    for size in range(1, min(_MAX_EDITED, len(choices)) + 1):
        for keys in combinations(choices, size):
            for values in product(*(choices[key] for key in keys)):
                labels = tuple(zip(keys, values, strict=True))
                edited = relabelled(location.labels, labels)
                if not any(matches(terms, edited) for terms in placement.selectors):
                    changed = replace(location, labels=edited)
                    yield Edit("Location", location.ref.name, labels), Put(changed)


def _alternatives(selectors: Sequence[Terms], key: str, present: str | None) -> list[str | None]:
    """Return the values that may make a difference: absence, those mentioned, and one that is not.

    Removing a label comes first, as the edit that is easiest to say.
    """
    mentioned = {value for terms in selectors for k, t in terms if k == key for value in t.values}
    values: list[str | None] = [None, *sorted(mentioned), _unmentioned(mentioned)]
    return [value for value in values if value != present]


# -- labels --------------------------------------------------------------------------------------


def joining_edits(terms: Terms, labels: Labels) -> LabelEdits | None:
    """Return the minimal label changes after which *labels* satisfy *terms*; None if none can."""
    edits: list[tuple[str, str | None]] = []
    for key, term in failing(terms, labels):
        if term.impossible:
            return None
        edits.append((key, _welcome(term)))
    return tuple(edits)


def relabelled(labels: Labels, edits: LabelEdits) -> dict[str, str]:
    """Return *labels* as *edits* leave them."""
    changed = dict(labels)
    for key, value in edits:
        if value is None:
            changed.pop(key, None)
        else:
            changed[key] = value
    return changed


def label_words(edits: LabelEdits) -> str:
    """Return label changes as ``kubectl label`` takes them."""
    return " ".join(f"{key}-" if value is None else f"{key}={value}" for key, value in edits)


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


def _toleration_words(toleration: Toleration) -> str:
    value = f", value: {toleration.value}" if toleration.value else ""
    head = f"key: {toleration.key}, operator: {toleration.operator}{value}"
    return f"{{{head}, effect: {toleration.effect}}}"
