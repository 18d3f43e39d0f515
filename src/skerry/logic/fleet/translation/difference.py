"""The table ``difference``: ``desired`` against ``copies``, row by row.

Every rule by which a copy is made, changed, left alone or removed is here and in
``tables.completeness.verdict``:

* A row that depends on a scope which has not been read is *pending*: neither made, nor changed,
  nor removed. That covers the kinds and objects of every contributing workspace, the mailbox's
  own, and what grants depend on.
* A removal depends on more: on what a malformed placement selects, which is unknown, and on a
  revision that is not there; and that of a Namespace on everything that might be in it.
* What is no copy is never removed, nor is a Namespace that holds something of somebody else's.
* A copy of what became the system's own (Helm's records of releases) stays with its source.
* A copy that a grant no longer covers stays as it is until its removal is confirmed.
* A copy records whose it is (``ownership``). One that records nothing is written for that only
  where others want its name: what is there since before is not all written anew.
* What is being deleted is made anew when it has gone.

Deriving a row changes nothing; what is to be reported or parked is part of the row.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from skerry.api.edge import SYNCER_CONFIGS, Mailbox
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.api.refs import ClusterName, ObjectRef, namespace_ref
from skerry.logic.fleet.customization.customize import Problem
from skerry.logic.fleet.revision.noted import noted, noted_revisions, noted_text
from skerry.logic.fleet.tables.completeness import Completeness, Verdict, verdict
from skerry.logic.fleet.translation.categories import NAMESPACES
from skerry.logic.fleet.translation.configs import EMPTY_SPEC, config_scopes, desired_config
from skerry.logic.fleet.translation.desired import Desired, DesiredThere
from skerry.logic.fleet.translation.dirty import CONFIG
from skerry.logic.fleet.translation.grants import Grants, not_granted
from skerry.logic.fleet.translation.merging import PlacementProblem
from skerry.logic.fleet.translation.ownership import Owned
from skerry.logic.fleet.translation.rows import DesiredRow
from skerry.logic.fleet.translation.source_generation import with_generation
from skerry.logic.fleet.translation.sources import Record
from skerry.logic.fleet.translation.workspaces import Scope, Workspaces, selection_scope

OCCUPIED = "NameOccupied"
NAMESPACE_TERMINATING = "NamespaceTerminating"

# What servers made of copies that they do not keep as they were sent: the digests sent and kept.
Accepted = dict[tuple[Mailbox, ObjectRef], tuple[bytes, bytes]]


class Hold(NamedTuple):
    """What the report of an inventory workspace says of an object that no grant covers.

    ``source`` empty: nothing. ``held``: a copy is there and stays. ``released``: a confirmation
    for it stays good. ``gone``: there is no copy, so a confirmation has had its effect.
    """

    source: ClusterName = ""
    held: bool = False
    released: bool = False
    gone: bool = False


@dataclass(frozen=True, slots=True)
class ItemDiff:
    """One row: what has to happen to an object of a mailbox.

    ``missing`` is what a pending row waits for. ``problems`` None leaves what was reported;
    ``hold`` None has nothing to say about grants. ``uid`` is that of the copy that is there,
    ``owned`` what it records.
    """

    item: ObjectRef
    verdict: Verdict
    gvr: GroupVersionResource | None = None
    render: Callable[[], Object] | None = None
    uid: str = ""
    missing: Scope | None = None
    problems: tuple[PlacementProblem, ...] | None = None
    hold: Hold | None = None
    owned: Owned | None = None


class Released(Protocol):
    """Which removals a person has confirmed."""

    def is_released(self, mailbox: Mailbox, item: ObjectRef) -> bool: ...


class GoverningGrants(Grants, Protocol):
    """What is asked of grants to report on them."""

    def governs(self, mailbox: Mailbox) -> bool: ...

    def refusing(self, inventory: ClusterName) -> str: ...


@dataclass(frozen=True, slots=True)
class Difference:
    """The table. ``config`` returns the SyncerConfig of a mailbox's cluster."""

    workspaces: Workspaces
    desired: Desired
    consent: GoverningGrants
    released: Released
    accepted: Mapping[tuple[Mailbox, ObjectRef], tuple[bytes, bytes]]
    config: Callable[[ClusterName], Object | None]
    scopes: Completeness[Scope, tuple[Mailbox, Scope]]
    # The objects of a mailbox that are not known to be as they should be.
    unsettled: Callable[[Mailbox], Collection[ObjectRef]] = lambda _: ()

    def rows(
        self, mailbox: Mailbox, cluster: ClusterName, items: list[ObjectRef]
    ) -> list[ItemDiff]:
        """Return the rows of *items* in a mailbox, which is the logical cluster *cluster*."""
        there = self.desired.at(mailbox)
        return [
            self._config(there, cluster) if item == CONFIG else self._row(there, cluster, item)
            for item in items
        ]

    # -- copies ------------------------------------------------------------------------------

    def _row(self, there: DesiredThere, cluster: ClusterName, item: ObjectRef) -> ItemDiff:
        gvr = self._gvr(there, cluster, item)
        version = gvr.version if gvr else ""
        kind = item.group_resource
        missing = self.scopes.missing(there.scopes(item)) or self.scopes.missing(
            self.workspaces.scopes(cluster, kind, version)
        )
        if missing is not None:
            return ItemDiff(item, Verdict.PENDING, missing=missing)
        row = there.row(item)
        if row.missing is not None:
            reported = row.problems or None
            return ItemDiff(item, Verdict.PENDING, missing=row.missing, problems=reported)
        copy = self.workspaces.record(cluster, item, version)
        frozen = self._is_frozen(there, item, row, copy)
        hold, refused = self._held(there, item, row, copy, frozen=frozen)
        kept = copy is not None and copy.system and copy.projected and there.keeps(item)
        same = frozen or kept or self._is_same(there.mailbox, item, row, copy)
        problems = row.problems + refused
        obstacle = None if same else self._obstacle(cluster, item, copy)
        if obstacle is not None:
            problems += tuple(PlacementProblem(p, obstacle) for p in there.senders(item))
        if gvr is None or same or obstacle is not None:
            found = Verdict.NONE if row.stays is None else Verdict.PENDING
            return ItemDiff(item, found, missing=row.stays, problems=problems, hold=hold)
        if row.digest is None:
            if self._holds_foreign(cluster, item):
                return ItemDiff(item, Verdict.NONE, problems=problems, hold=hold)
            missing = self._missing_to_delete(there, cluster, item)
        found = verdict(row.digest, copy, same=False, missing=missing)
        uid, owned = (copy.uid, copy.owned) if copy else ("", None)
        render = _rendering(row)
        return ItemDiff(item, found, gvr, render, uid, missing, problems, hold, owned)

    def _gvr(
        self, there: DesiredThere, cluster: ClusterName, item: ObjectRef
    ) -> GroupVersionResource | None:
        """Return the version to write at: the agreed one, else what the mailbox prefers."""
        version = there.version(item.group_resource).version
        here = self.workspaces.served(cluster, item.group_resource)
        if here is not None and version not in here.versions:
            version = here.versions[0]
        return GroupVersionResource(item.group, version, item.resource) if version else None

    def _is_same(
        self, mailbox: Mailbox, item: ObjectRef, row: DesiredRow, copy: Record | None
    ) -> bool:
        digest = row.digest
        if digest is None:
            return copy is None or not copy.projected or copy.being_deleted
        if copy is None:
            return False
        if copy.being_deleted:
            return True  # it is made anew when it has gone
        if not copy.projected or not _is_recorded(row, copy):
            return False
        if row.generation not in (0, copy.generation):
            return False
        return copy.digest == digest or self.accepted.get((mailbox, item)) == (digest, copy.digest)

    def _obstacle(
        self, cluster: ClusterName, item: ObjectRef, copy: Record | None
    ) -> Problem | None:
        """Return what keeps a copy from being made; when it is out of the way, that is an event."""
        if copy is not None and copy.upsynced and not copy.projected:
            return Problem(OCCUPIED, f"{item} was created at the edge and is left alone")
        space = namespace_ref(item.namespace)
        room = self.workspaces.record(cluster, space) if item.namespace else None
        if room is not None and room.being_deleted:
            text = f"{item} is created again once {space} is deleted from the mailbox"
            return Problem(NAMESPACE_TERMINATING, text)
        return None

    # -- removals ----------------------------------------------------------------------------

    def _missing_to_delete(
        self, there: DesiredThere, cluster: ClusterName, item: ObjectRef
    ) -> Scope | None:
        """Return what is not known and might be a reason to keep a copy."""
        missing = None
        if item.group_resource == NAMESPACES:
            missing = self.scopes.missing(self.workspaces.all_scopes(cluster))
        if missing is None and there.held is not None:
            missing = self.scopes.missing(there.held.missing.values())
        return missing or self.scopes.missing(map(selection_scope, there.malformed()))

    def _holds_foreign(self, cluster: ClusterName, item: ObjectRef) -> bool:
        """Tell whether a Namespace holds what is no copy; that one has gone is an event."""
        return item.group_resource == NAMESPACES and any(
            record.is_foreign
            for served, records in self.workspaces.followed_types(cluster)
            if served.namespaced
            for record in records.within(cluster, item.name).values()
        )

    # -- grants ------------------------------------------------------------------------------

    def _is_frozen(
        self, there: DesiredThere, item: ObjectRef, row: DesiredRow, copy: Record | None
    ) -> bool:
        """Tell whether a copy stays as it is, for want of a grant and of a confirmation."""
        is_there = copy is not None and copy.projected and not copy.being_deleted
        return is_there and row.frozen and not self.released.is_released(there.mailbox, item)

    def _held(
        self,
        there: DesiredThere,
        item: ObjectRef,
        row: DesiredRow,
        copy: Record | None,
        *,
        frozen: bool,
    ) -> tuple[Hold | None, tuple[PlacementProblem, ...]]:
        """Return what is reported of an object that is not granted, and to which placements.

        A placement that is granted nothing here at all hears that from the edge scheduler, which
        holds or refuses its destinations as a whole.
        """
        if not self.consent.is_used:
            return None, ()
        if not self.consent.governs(there.mailbox):
            return Hold(), ()
        sending = row.refused or there.would_refuse(item)
        gone = copy is None or _is_of_others(copy, sending)
        admitted = [each for each in sending if there.rules(each)]
        if not admitted:
            return Hold(released=bool(sending), gone=gone), ()
        hold = Hold(admitted[0].cluster, held=frozen, gone=gone)
        if not row.refused:
            return hold, ()
        problem = not_granted(item, self.consent.refusing(there.mailbox.cluster), held=frozen)
        return hold, tuple(PlacementProblem(each, problem) for each in admitted)

    # -- SyncerConfig ------------------------------------------------------------------------

    def _config(self, there: DesiredThere, cluster: ClusterName) -> ItemDiff:
        missing = self.scopes.missing(config_scopes(there))
        if missing is not None:
            return ItemDiff(CONFIG, Verdict.PENDING, missing=missing)
        desired = desired_config(there)
        if desired.missing is not None:
            reported = desired.problems or None
            return ItemDiff(CONFIG, Verdict.PENDING, missing=desired.missing, problems=reported)
        live = self.config(cluster)
        spec = desired.spec
        if spec is None and live is not None:
            spec = dict(EMPTY_SPEC)
        note = self.note(there, live)
        # One without status was made by somebody who got no further; ``decide`` gives it one.
        said = (live["spec"], noted(live)) if live is not None and "status" in live else None
        if spec is None or said == (spec, note):
            return ItemDiff(CONFIG, Verdict.NONE, problems=desired.problems)
        # A malformed placement's namespaces are unknown, not gone.
        missing = self.scopes.missing(map(selection_scope, there.malformed()))
        found = verdict(spec, live, same=False, missing=missing)
        uid = live["metadata"]["uid"] if live else ""
        render: Callable[[], Object] = lambda: {"spec": spec, "note": note}  # noqa: E731
        return ItemDiff(CONFIG, found, SYNCER_CONFIGS, render, uid, missing, desired.problems)

    def note(self, there: DesiredThere, live: Object | None) -> str:
        """Return which revisions a SyncerConfig is to note: those of which everything is there.

        Of the others it goes on to say which one was there last.
        """
        if there.held is None:
            return ""
        before = noted_revisions(live["metadata"]) if live is not None else {}
        known = {each: number for each, number in before.items() if each in there.held}
        settled = there.held.settled(self.unsettled(there.mailbox), there.holders.copy)
        return noted_text({**known, **settled})


def _rendering(row: DesiredRow) -> Callable[[], Object] | None:
    """Return what makes the copy, with all that is recorded on it."""
    render, generation = row.render, row.generation
    if render is None or not generation:
        return render
    return lambda: with_generation(render(), generation)


def _is_recorded(row: DesiredRow, copy: Record) -> bool:
    """Tell whether a copy records whose it is, or need not."""
    if row.owned is None or copy.owned == row.owned:
        return True
    return copy.owned is None and not row.contested


def _is_of_others(copy: Record, placements: Iterable[ObjectRef]) -> bool:
    """Tell whether a copy is known to be of none of the workspaces of *placements*."""
    owned = copy.owned
    return owned is not None and all(each.cluster != owned.cluster for each in placements)
