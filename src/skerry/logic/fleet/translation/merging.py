"""One object for a mailbox, out of everybody who wants it there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from skerry.api.edge import binding_reference
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.kit.text import whole_number
from skerry.logic.fleet.customization.customize import (
    IDENTITY_REPLACED,
    Customized,
    Problem,
    Withheld,
    customize,
)
from skerry.logic.fleet.translation.categories import BINDINGS, is_never_copied
from skerry.logic.fleet.translation.copies import digest, labelled

CONFLICTING_OBJECTS = "ConflictingObjects"
LOCATIONS_DISAGREE = "LocationsDisagree"
VERSIONS_DISAGREE = "VersionsDisagree"
KIND_WITHHELD = "KindWithheld"
NEVER_COPIED = "NeverCopied"
CONFLICTS = frozenset((CONFLICTING_OBJECTS, LOCATIONS_DISAGREE, VERSIONS_DISAGREE))


def withheld_kind(item: ObjectRef) -> Problem:
    """Return what is reported of an object that would act on the hub itself."""
    text = f"{item} is withheld: on this hub its copy would not be without effect"
    return Problem(KIND_WITHHELD, text)


class Way(NamedTuple):
    """One placement's way to a mailbox: by which Location."""

    placement: ObjectRef
    location: ObjectRef


@dataclass(frozen=True, slots=True)
class Origin:
    """One workspace's object that is wanted in a mailbox, and by whom.

    ``copy`` is the object before customization (see ``copies.copied``). ``locations`` holds what
    is known of the Locations that ``ways`` name; ``customizer`` the Customizer it asks for.
    """

    cluster: str
    resource_version: str
    copy: Object
    ways: tuple[Way, ...]
    customizer: Object | None = None
    locations: tuple[tuple[ObjectRef, Object], ...] = ()

    @property
    def placements(self) -> tuple[ObjectRef, ...]:
        return tuple(sorted({way.placement for way in self.ways}))


class PlacementProblem(NamedTuple):
    """A problem, and the placement whose conditions report it."""

    placement: ObjectRef
    problem: Problem


@dataclass(frozen=True, slots=True)
class Merged:
    """What is to be in the mailbox (None: nothing), and what there is to report."""

    object: Object | None
    problems: tuple[PlacementProblem, ...] = ()


@dataclass(frozen=True, slots=True)
class _Candidate:
    origin: Origin
    object: Object


def newest_first(origins: Iterable[Origin]) -> list[Origin]:
    """Return *origins*, those that count first: by resourceVersion, then by cluster."""
    return sorted(origins, key=lambda o: (-_number(o.resource_version), o.cluster))


def merged(item: ObjectRef, origins: Sequence[Origin], *, strict: bool = True) -> Merged:
    """Return what *item* is to be, given everything that is wanted under its name."""
    candidates: list[_Candidate] = []
    problems: list[PlacementProblem] = []
    for origin in newest_first(origins):
        outcome = _customized(item, origin, strict=strict)
        problems += outcome.problems
        if outcome.object is not None:
            candidates.append(_Candidate(origin, outcome.object))
    if not candidates:
        return Merged(None, tuple(problems))
    winner = candidates[0]
    problems += _conflicts(item, winner, candidates[1:])
    return Merged(labelled(winner.object), tuple(problems))


def _customized(item: ObjectRef, origin: Origin, *, strict: bool) -> Merged:
    """Return the object as the first of its Locations wants it."""
    names = sorted({way.location for way in origin.ways})
    known = dict(origin.locations)
    first = customize(origin.copy, origin.customizer, known.get(names[0]), strict=strict)
    if isinstance(first, Withheld):
        problem = first.problem
        text = f"{item} is withheld: {problem.message}"
        return Merged(None, _reported(origin, Problem(problem.reason, text)))
    if first.object is not origin.copy and (refused := _refused(item, origin, first.object)):
        return Merged(None, _reported(origin, refused))
    problems = [
        each
        for problem in first.undone
        for each in _reported(
            origin, Problem(problem.reason, f"{item} is not as asked for: {problem.message}")
        )
    ]
    if first.object is not origin.copy:
        problems += _disagreements(item, origin, first, names[1:], strict=strict)
    return Merged(first.object, tuple(problems))


def _refused(item: ObjectRef, origin: Origin, customized: Object) -> Problem | None:
    """Return why a copy is not made as customized.

    The translator writes with the rights of the hub what its author could not have written.
    """
    if is_never_copied(item.group_resource, customized):
        text = f"{item} is withheld: as customized, it is one that every workspace has for itself"
        return Problem(NEVER_COPIED, text)
    if item.group_resource == BINDINGS and binding_reference(customized) != binding_reference(
        origin.copy
    ):
        text = f"{item} is withheld: the export of an APIBinding cannot be replaced"
        return Problem(IDENTITY_REPLACED, text)
    return None


def _disagreements(
    item: ObjectRef, origin: Origin, first: Customized, others: Sequence[ObjectRef], *, strict: bool
) -> Iterable[PlacementProblem]:
    known = dict(origin.locations)
    proof = digest(item.group_resource, first.object)
    for name in others:
        other = customize(origin.copy, origin.customizer, known.get(name), strict=strict)
        if isinstance(other, Withheld) or digest(item.group_resource, other.object) != proof:
            text = (
                f"{item} is customized for the first of several Locations of one SyncTarget; "
                f"Location {name.name} wants it differently"
            )
            yield from _reported(origin, Problem(LOCATIONS_DISAGREE, text))
            return


def _conflicts(
    item: ObjectRef, winner: _Candidate, losers: Sequence[_Candidate]
) -> Iterable[PlacementProblem]:
    proof = digest(item.group_resource, winner.object)
    for loser in losers:
        if digest(item.group_resource, loser.object) == proof:
            continue
        mine, theirs = _listed(winner.origin), _listed(loser.origin)
        text = f"{item} of {mine} is newer than, and sent instead of, that of {theirs}"
        problem = Problem(CONFLICTING_OBJECTS, text)
        yield from _reported(winner.origin, problem)
        yield from _reported(loser.origin, problem)


def _reported(origin: Origin, problem: Problem) -> tuple[PlacementProblem, ...]:
    return tuple(PlacementProblem(placement, problem) for placement in origin.placements)


def _listed(origin: Origin) -> str:
    return "EdgePlacement " + ", ".join(each.qualified_name for each in origin.placements)


def _number(version: str) -> int:
    return whole_number(version) or 0
