"""One object for a mailbox, out of everybody who wants it there.

The workspace that owns the name (``ownership``) sends its object; the others' are withheld, and
their placements hear whose the name is: the path of that workspace and nothing of its content.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from skerry.api.edge import binding_reference
from skerry.api.objects import Object
from skerry.api.refs import ClusterName, ObjectRef
from skerry.logic.fleet.customization.customize import (
    IDENTITY_REPLACED,
    Customized,
    Problem,
    Withheld,
    customize,
)
from skerry.logic.fleet.translation.categories import BINDINGS, NAMESPACES, is_never_copied
from skerry.logic.fleet.translation.copies import digest, labelled
from skerry.logic.fleet.translation.ownership import Claim, Owned, owner, recorded_on

# Another workspace had the name first.
NAME_TAKEN = "NameTaken"
NAMESPACE_SHARED = "NamespaceShared"
LOCATIONS_DISAGREE = "LocationsDisagree"
VERSIONS_DISAGREE = "VersionsDisagree"
REVISIONS_DISAGREE = "RevisionsDisagree"
KIND_WITHHELD = "KindWithheld"
NEVER_COPIED = "NeverCopied"
# Conflicts in which the object goes nevertheless, if not quite as everybody wants it.
COMPROMISES = frozenset(
    (NAMESPACE_SHARED, LOCATIONS_DISAGREE, VERSIONS_DISAGREE, REVISIONS_DISAGREE)
)
# Workspaces that a copy names as having another object of its name; a mailbox is no place for more.
_MAX_WITHHELD = 50
CONFLICTS = COMPROMISES | {NAME_TAKEN}


def withheld_kind(item: ObjectRef) -> Problem:
    """Return what is reported of an object that would act on the hub itself."""
    text = f"{item} is withheld: on this hub its copy would not be without effect"
    return Problem(KIND_WITHHELD, text)


def name_taken(item: ObjectRef, path: str) -> Problem:
    """Return what is reported to a placement whose object another workspace's stands in for.

    The path of that workspace is all that one tenant learns of another; empty when it is not known.
    """
    who = f"workspace {path}" if path else "another workspace"
    if item.group_resource == NAMESPACES:
        text = f"{item} is shared; its labels and annotations there are those of {who}"
        return Problem(NAMESPACE_SHARED, text)
    return Problem(NAME_TAKEN, f"{item} is withheld: the name belongs to {who} there")


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

    claim: Claim
    copy: Object
    ways: tuple[Way, ...]
    customizer: Object | None = None
    locations: tuple[tuple[ObjectRef, Object], ...] = ()

    @property
    def cluster(self) -> ClusterName:
        return self.claim.cluster

    @property
    def placements(self) -> tuple[ObjectRef, ...]:
        return tuple(sorted({way.placement for way in self.ways}))


class PlacementProblem(NamedTuple):
    """A problem, and the placement whose conditions report it."""

    placement: ObjectRef
    problem: Problem


class Copy(NamedTuple):
    """The copy that is in the mailbox: a proof of its content, and whose it is, if it says so."""

    digest: bytes
    owned: Owned | None


@dataclass(frozen=True, slots=True)
class Merged:
    """What is to be in the mailbox (None: nothing), and what there is to report.

    ``owned`` is to be recorded on it; with ``stays`` a copy that is there stays as it is.
    ``unread`` is a workspace whose path must be known before the rest means anything.
    """

    object: Object | None
    problems: tuple[PlacementProblem, ...] = ()
    owned: Owned | None = None
    stays: bool = False
    unread: ClusterName | None = None


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What else decides about one name in one mailbox, besides who places an object under it.

    ``path`` returns the path of a workspace, None while it has not been read. ``unknown`` are
    workspaces of which nobody can tell whether they place the object.
    """

    there: Copy | None = None
    path: Callable[[ClusterName], str | None] = str
    unknown: Collection[ClusterName] = ()
    strict: bool = True


ALONE = Surroundings()


class _UnreadPathError(Exception):
    """A path is needed that has not been read."""

    def __init__(self, cluster: ClusterName) -> None:
        super().__init__(cluster)
        self.cluster = cluster


def merged(item: ObjectRef, origins: Sequence[Origin], around: Surroundings = ALONE) -> Merged:
    """Return what *item* is to be, given everything that is placed under its name."""
    try:
        return _merged(item, origins, around)
    except _UnreadPathError as error:
        return Merged(None, unread=error.cluster)


def _merged(item: ObjectRef, origins: Sequence[Origin], around: Surroundings) -> Merged:
    found = sorted(origins, key=lambda origin: origin.cluster)
    made = {origin.cluster: _customized(item, origin, strict=around.strict) for origin in found}
    proofs = {
        cluster: digest(item.group_resource, labelled(each.object))
        for cluster, each in made.items()
        if each.object is not None
    }
    problems = [each for outcome in made.values() for each in outcome.problems]
    there = around.there
    same = {cluster for cluster, proof in proofs.items() if there and proof == there.digest}
    if there is not None and there.owned is None and not same and around.unknown:
        return Merged(None, tuple(problems), stays=True)  # it may be theirs

    def path(cluster: ClusterName) -> str:
        known = around.path(cluster)
        if known is None:
            raise _UnreadPathError(cluster)
        return known

    owned = owner(
        there.owned if there is not None else None,
        [origin.claim for origin in found],
        path,
        unknown=around.unknown,
        there=same,
        unable=made.keys() - proofs.keys(),
    )
    losers = [
        origin
        for origin in found
        if origin.cluster != owned.cluster
        and (origin.cluster not in proofs or proofs[origin.cluster] != proofs.get(owned.cluster))
    ]
    for origin in losers:
        problems += _reported(origin, name_taken(item, path(owned.cluster)))
    if item.group_resource != NAMESPACES:
        withheld = tuple(origin.cluster for origin in losers[:_MAX_WITHHELD])
        owned = owned._replace(withheld=withheld)
    winner = made.get(owned.cluster)
    if winner is None or winner.object is None:
        # Nobody else gets the name of an owner who is not known, or cannot be customized just now.
        stays = there is not None and (winner is None or len(found) > 1)
        return Merged(None, tuple(problems), owned, stays=stays)
    return Merged(recorded_on(labelled(winner.object), owned), tuple(problems), owned)


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


def _reported(origin: Origin, problem: Problem) -> tuple[PlacementProblem, ...]:
    return tuple(PlacementProblem(placement, problem) for placement in origin.placements)
