"""Destinations that get a revision: what that says, in place of what the workspace has now.

A placement with a Rollout says by its slices which destination has which revision. There, an object
that is absent from the revision is not wanted, and one that is in it is, though the workspace may
have another by now, or none. What the revision names is taken from the workspace where it is still
the same, and else from its RevisionContent.

* A revision that is not there, or a content, says nothing: neither that an object is wanted nor
  that it is not. Whoever asks waits, and the placement reports ``RevisionMissing``.
* Several placements of one workspace may hold one object at several revisions. It can be sent only
  once: as the oldest source among them. All of them report ``RevisionsDisagree``. A placement
  without a Rollout does not hold.
* A SyncTarget that is reached by several Locations has the revision of the first by name, which is
  also the one that objects are customized for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec.structs import replace

from skerry.api.edge import CUSTOMIZERS, Mailbox
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.api.refs import ClusterName, ObjectRef
from skerry.logic.fleet.customization.customize import CustomizerName, Problem
from skerry.logic.fleet.revision.manifest import (
    Manifest,
    RevisionItem,
    content_digest,
    customizer_ref,
)
from skerry.logic.fleet.revision.table import Contents, RevisionTable
from skerry.logic.fleet.translation.categories import NAMESPACES
from skerry.logic.fleet.translation.copies import bare_namespace, digest
from skerry.logic.fleet.translation.merging import REVISIONS_DISAGREE, PlacementProblem
from skerry.logic.fleet.translation.route import Contributors
from skerry.logic.fleet.translation.sources import Record, WatchKey, record_of
from skerry.logic.fleet.translation.workspaces import Scope, content_scope, revision_scope

REVISION_MISSING = "RevisionMissing"

ContentKey = tuple[ClusterName, str]


class UnreadError(Exception):
    """What a row depends on has not been read, or is not there."""

    def __init__(self, scope: Scope, problems: Iterable[PlacementProblem] = ()) -> None:
        super().__init__(scope)
        self.scope = scope
        self.problems = tuple(problems)


# -- who has which revision ----------------------------------------------------------------------


def revisions_of(slices: Iterable[Object]) -> dict[Mailbox, int]:
    """Return which revision each mailbox gets that slices name; those that get one."""
    entries = [each for piece in slices for each in piece.get("destinations") or ()]
    if not any("revision" in each for each in entries):
        return {}  # no Rollout, or none that has begun
    first: dict[Mailbox, tuple[str, int]] = {}
    for each in entries:
        mailbox = Mailbox(each["cluster"], each["syncTargetUID"])
        found = (each["locationName"], each.get("revision") or 0)
        known = first.get(mailbox)
        first[mailbox] = found if known is None else min(known, found)
    return {mailbox: number for mailbox, (_, number) in first.items() if number}


class Moved(NamedTuple):
    """A mailbox that gets another revision; 0 stands for what the workspace has."""

    mailbox: Mailbox
    old: int
    new: int


class Assignments:
    """Which revision each destination of a placement gets."""

    def __init__(self) -> None:
        self._numbers: dict[ObjectRef, dict[Mailbox, int]] = {}

    def put(self, placement: ObjectRef, numbers: Mapping[Mailbox, int]) -> list[Moved]:
        """Have the mailboxes of a placement get these revisions; returns what is different."""
        old = self._numbers.get(placement, {})
        if not numbers and not old:
            return []
        if numbers:
            self._numbers[placement] = dict(numbers)
        else:
            self._numbers.pop(placement, None)
        return [
            Moved(mailbox, old.get(mailbox, 0), numbers.get(mailbox, 0))
            for mailbox in sorted(old.keys() | numbers.keys())
            if old.get(mailbox, 0) != numbers.get(mailbox, 0)
        ]

    def of(self, placement: ObjectRef) -> Mapping[Mailbox, int]:
        return self._numbers.get(placement, {})

    def __bool__(self) -> bool:
        return bool(self._numbers)

    def __iter__(self) -> Iterator[ObjectRef]:
        return iter(self._numbers)


@dataclass(frozen=True, slots=True)
class Revisions:
    """The input tables: revisions, who has which, and the contents that were read."""

    table: RevisionTable = field(default_factory=RevisionTable)
    assigned: Assignments = field(default_factory=Assignments)
    contents: Contents[ContentKey, Record] = field(default_factory=Contents)

    def items(self, placement: ObjectRef, mailboxes: Iterable[Mailbox]) -> set[ObjectRef]:
        """Return what the revisions say that these mailboxes of a placement get."""
        assigned = self.assigned.of(placement)
        if not assigned:
            return set()
        numbers = {assigned[each] for each in mailboxes if each in assigned}
        found = (self.table.manifest(placement, number) for number in numbers)
        return {each.item for manifest in found if manifest for each in manifest.items}

    def at(self, mailbox: Mailbox, contributors: Contributors) -> HeldThere | None:
        """Return what placements hold in a mailbox; None when none does."""
        if not self.assigned:
            return None
        numbers = {
            placement: number
            for placements in contributors.values()
            for placement in placements
            if (number := self.assigned.of(placement).get(mailbox, 0))
        }
        return HeldThere(self, numbers) if numbers else None


# -- what is held in one mailbox -----------------------------------------------------------------


class Resolved(NamedTuple):
    """An object as it is held: its record, by whom, and the revision that decides about it."""

    record: Record
    placements: list[ObjectRef]
    manifest: Manifest | None
    problems: tuple[PlacementProblem, ...] = ()


class HeldThere:
    """What placements hold in one mailbox."""

    def __init__(self, revisions: Revisions, numbers: Mapping[ObjectRef, int]) -> None:
        self._contents = revisions.contents
        self.numbers = numbers
        self.manifests: dict[ObjectRef, Manifest] = {}
        # Placements whose revision is not there.
        self.missing: dict[ObjectRef, Scope] = {}
        for placement, number in numbers.items():
            manifest = revisions.table.manifest(placement, number)
            if manifest is None:
                self.missing[placement] = revision_scope(placement, number)
            else:
                self.manifests[placement] = manifest

    def __contains__(self, placement: ObjectRef) -> bool:
        return placement in self.numbers

    def _refuse_unknown(self, cluster: ClusterName) -> None:
        """Raise ``UnreadError`` if a workspace has a placement whose revision is not there."""
        for placement, scope in self.missing.items():
            if placement.cluster == cluster:
                raise UnreadError(scope, [self.missing_revision(placement)])

    def missing_revision(self, placement: ObjectRef) -> PlacementProblem:
        text = f"revision {self.numbers[placement]} is not there; copies stay as they are"
        return PlacementProblem(placement, Problem(REVISION_MISSING, text))

    def names(self, placement: ObjectRef, item: ObjectRef) -> bool:
        """Tell whether a Namespace is held with its labels, not only to hold copies."""
        manifest = self.manifests.get(placement)
        entry = manifest.by_item.get(item) if manifest is not None else None
        return entry is not None and entry.digest != bare_digest(item)

    def cluster_scoped(self, placement: ObjectRef) -> Iterator[ObjectRef]:
        """Yield what a placement holds that is in no namespace and is more than room."""
        manifest = self.manifests.get(placement)
        for each in manifest.items if manifest is not None else ():
            bare = each.item.group_resource == NAMESPACES and each.digest == bare_digest(each.item)
            if not each.item.namespace and not bare:
                yield each.item

    def kinds(self) -> set[GroupResource]:
        """Return the kinds of what is held in namespaces."""
        return {
            each.item.group_resource
            for manifest in self.manifests.values()
            for each in manifest.items
            if each.item.namespace
        }

    def settled(
        self, unsettled: Collection[ObjectRef], copy: Callable[[ObjectRef], Record | None]
    ) -> dict[ObjectRef, int]:
        """Return the placements all of whose revision is there, with its number.

        *unsettled* are rows that are still to be brought to where they should be; *copy* returns
        what the mailbox has. A row matters to a placement that has the object, and to the
        workspace whose copy is there and may have to go.
        """
        found = {}
        for placement, manifest in self.manifests.items():
            if not any(
                item in manifest.by_item or _may_be_of(copy(item), placement.cluster)
                for item in unsettled
            ):
                found[placement] = self.numbers[placement]
        return found

    def resolved(
        self,
        cluster: ClusterName,
        item: ObjectRef,
        live: Record | None,
        others: list[ObjectRef],
        there: Record | None = None,
    ) -> Resolved | None:
        """Return what a workspace's *item* is to be; None when nobody holds it.

        *live* is what the workspace has, and *others* are placements that want that and hold
        nothing; *there* is the copy in the mailbox. Raises ``UnreadError`` when a content has to
        be read first, or a revision is not there that might have the object.
        """
        if self.missing and (live is not None or _may_be_of(there, cluster)):
            self._refuse_unknown(cluster)
        wanting = [
            (placement, entry)
            for placement, manifest in self.manifests.items()
            if placement.cluster == cluster and (entry := manifest.by_item.get(item)) is not None
        ]
        if not wanting:
            return None
        self._refuse_unknown(cluster)
        everybody = sorted({*others, *(each for each, _ in wanting)})
        mattering = wanting
        if item.group_resource == NAMESPACES:
            bare = bare_digest(item)
            mattering = [each for each in wanting if each[1].digest != bare]
            if not mattering:  # only room is held; its labels are for others to say
                return Resolved(live or bare_record(cluster, item), everybody, None)
        placement, entry = min(mattering, key=lambda pair: (_age(pair[1]), pair[0]))
        record = self._record(cluster, placement, entry, live)
        found = {each.digest for _, each in mattering}
        if others and live is not None:
            found.add(content_digest(item, live.digest))
        problems = _disagreeing(item, everybody) if len(found) > 1 else ()
        return Resolved(record, everybody, self.manifests[placement], problems)

    def customizer(
        self,
        cluster: ClusterName,
        holding: tuple[Manifest, Sequence[ObjectRef]],
        name: CustomizerName,
        live: Object | None,
    ) -> Object | None:
        """Return the Customizer that a revision has under a name; None when it has none.

        *holding* is the revision, and the placements that report it if it is missing.
        """
        manifest, placements = holding
        ref = customizer_ref(*name)
        entry = manifest.by_item.get(ref)
        if entry is None:
            return None
        if live is not None:
            record = customizer_record(cluster, live)
            if content_digest(ref, record.digest) == entry.digest:
                return live
        return self._content(cluster, placements, entry).copy()

    def _record(
        self, cluster: ClusterName, placement: ObjectRef, entry: RevisionItem, live: Record | None
    ) -> Record:
        if live is not None and content_digest(entry.item, live.digest) == entry.digest:
            return live
        if entry.item.group_resource == NAMESPACES and entry.digest == bare_digest(entry.item):
            return bare_record(cluster, entry.item)
        found = self._content(cluster, [placement], entry)
        claim = live.claim if live is not None and live.claim is not None else found.claim
        return replace(found, generation=entry.generation, claim=claim)

    def _content(
        self, cluster: ClusterName, placements: Sequence[ObjectRef], entry: RevisionItem
    ) -> Record:
        key = (cluster, entry.digest)
        found = self._contents.get(key)
        if found is not None:
            return found
        problems: list[PlacementProblem] = []
        if self._contents.is_absent(key):
            text = f"{entry.item} is not there as the revision names it; its copy stays as it is"
            problem = Problem(REVISION_MISSING, text)
            problems = [PlacementProblem(each, problem) for each in placements]
        raise UnreadError(content_scope(cluster, entry.item, entry.digest), problems)


def content_record(cluster: ClusterName, item: ObjectRef, name: str, obj: Object) -> Record | None:
    """Return the record of what a RevisionContent holds; None if it is not what its name says."""
    try:
        record = _record_of(cluster, item, obj)
    except (KeyError, TypeError, AttributeError):
        return None
    named = (record.cluster, record.namespace, record.name) == (cluster, *item[3:])
    same = record.text is not None and content_digest(item, record.digest) == name
    return record if named and same else None


def customizer_record(cluster: ClusterName, obj: Object) -> Record:
    """Return a Customizer as records of contents have it."""
    metadata = obj["metadata"]
    ref = customizer_ref(metadata.get("namespace", ""), metadata["name"])
    kind = {"apiVersion": f"{CUSTOMIZERS.group}/{CUSTOMIZERS.version}", "kind": "Customizer"}
    return _record_of(cluster, ref, {**kind, **obj})


def bare_digest(item: ObjectRef) -> str:
    """Return the digest of a Namespace that is there only to hold copies."""
    return content_digest(item, digest(NAMESPACES, bare_namespace(item.name)))


def bare_record(cluster: ClusterName, item: ObjectRef) -> Record:
    """Return the record of a Namespace that is there only to hold copies."""
    bare = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": item.name}}
    return _record_of(cluster, item, bare)


def _record_of(cluster: ClusterName, item: ObjectRef, obj: Object) -> Record:
    return record_of(WatchKey(cluster, item.group, "", item.resource), obj)


def _may_be_of(copy: Record | None, cluster: ClusterName) -> bool:
    return copy is not None and (copy.owned is None or copy.owned.cluster == cluster)


def _age(entry: RevisionItem) -> tuple[int, str]:
    text = entry.resource_version
    return (int(text) if text.isdecimal() and text.isascii() else 0, text)


def _disagreeing(item: ObjectRef, placements: Iterable[ObjectRef]) -> tuple[PlacementProblem, ...]:
    text = f"{item} is sent as the oldest of the revisions that placements have there"
    return tuple(PlacementProblem(each, Problem(REVISIONS_DISAGREE, text)) for each in placements)
