"""The judge: what is to be thought of the destinations of placements with a Rollout.

Reads the tables of the status feed, the slices, the revisions that slices name, and the notes of
SyncerConfigs at which revision a mailbox is settled. Writes ``status.verdicts`` of Rollouts, and
nothing else of them, at most twice a second each. Placements without a Rollout cost nothing.

Copies and SyncerConfigs are followed by different watches: a note that a mailbox is settled may
come before the copies it speaks of. So a note counts only a moment after it was seen.

Were it believed at once, the reports at hand would still be those of the revision before: copies
that are healthy, and delivered, and of the wrong content. A slot would be Good without having run
the target for an instant. The other way round (copies are there, the note is late) costs nothing
but the wait. The moment must be longer than one watch lags behind the other within one process,
which reads both from the same hub; it need not cover the network.

What is judged of a placement is a court. It is marked when something about it changed, and does the
work when it is reconciled: ``turned`` by the Rollout, ``reread`` by slices and revisions, ``dirty``
by reports and Leases of single edges. A storm of reports is then one look at each edge it was
about.

Slots that are gone may still be waited for: who departs has left only when its mailbox has nothing
of the placement any more, and the slices no longer say which mailbox that was. ``gone`` remembers
it. After a restart nobody does, and a departing slot that is in no slice counts as left: to wait
for a mailbox whose name nobody knows would be to wait for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from pyroaring import BitMap

from skerry.api.edge import ROLLOUTS, SYNCER_CONFIG_NAME, edge_placement_ref, placement_of_slice
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.controllers.summarizer.feed import StatusFeed
from skerry.controllers.summarizer.projections import (
    BY_PLACEMENT,
    Kind,
    lean_metadata,
    noted_in,
    travels,
)
from skerry.kit.clock import Clock
from skerry.logic.fleet.placement.slices import assigned_in, destinations_in
from skerry.logic.fleet.rollout.clocks import Elapsed
from skerry.logic.fleet.rollout.evidence import Item, evidence
from skerry.logic.fleet.rollout.judging import Judging, Seen
from skerry.logic.fleet.rollout.spec import RolloutSpec, read_spec
from skerry.logic.fleet.rollout.state import state_of, verdicts_of, written_verdicts
from skerry.logic.fleet.tables.flow import Settled
from skerry.logic.machinery.plan import NOTHING, Patch, Plan, Target
from skerry.runtime.client import cluster_of
from skerry.runtime.index import Key
from skerry.runtime.informer import Informer

QUEUE = "verdicts"
# Longer than one watch of a process lags behind another.
_CATCH_UP_SECONDS = 0.25


def lean_manifest(obj: Object) -> Object:
    """Keep of a PlacementRevision which objects it is about."""
    spec = obj["spec"]
    items = [
        [each.get("group", ""), each["resource"], each.get("namespace", ""), each["name"]]
        for each in spec.get("items") or ()
    ]
    kept = {"placement": spec["placement"], "number": spec["number"]}
    return {"metadata": lean_metadata(obj), "spec": {**kept, "items": items}}


def by_revision(obj: Object) -> tuple[tuple[str, str, int], ...]:
    """Index the pages of PlacementRevisions under placement and number."""
    return ((cluster_of(obj), obj["spec"]["placement"], int(obj["spec"]["number"])),)


@dataclass(slots=True)
class _Slot:
    """A slot as its slice shows it; one that has no revision yet has 0."""

    uid: str
    location: str
    revision: int


@dataclass(slots=True)
class _Court:
    """What is judged of one placement."""

    judging: Judging
    slots: dict[int, _Slot]
    by_uid: dict[str, list[int]]
    dirty: set[str]
    spec: RolloutSpec
    generation: tuple[str, int]
    # Edges that left, by slot, as long as the Rollout waits for their mailboxes to be emptied.
    gone: dict[int, str]
    turned: bool = True
    reread: bool = True


@dataclass(frozen=True, slots=True)
class ObservedVerdicts:
    """A Rollout, the verdicts it should show, and when there may be others."""

    ref: ObjectRef
    published: Any
    verdicts: dict[str, Any]
    again: float | None


class Judge:
    """Follows the feed for placements with a Rollout."""

    def __init__(
        self,
        feed: StatusFeed,
        rollouts: Informer,
        revisions: Informer,
        clock: Clock,
        enqueue: Callable[[ObjectRef], None],
        observing: Callable[[ObjectRef], None],
    ) -> None:
        """*revisions* are indexed by placement and number; *observing* notes the pace."""
        self._feed = feed
        self._tables = feed.inputs.tables
        self._rollouts = rollouts
        self._revisions = revisions
        self._clock = clock
        self._enqueue = enqueue
        self._observing = observing
        self._elapsed = Elapsed(clock.now, clock.monotonic)
        self._courts: dict[ObjectRef, _Court] = {}
        # Placements that are judged, by SyncTarget UID.
        self._at: dict[str, set[ObjectRef]] = {}
        # By mailbox cluster: what its SyncerConfig notes, and since when that is known.
        self._noted: dict[str, tuple[dict[ObjectRef, int], dict[ObjectRef, float]]] = {}
        rollouts.add_handler(self.rollout_changed)
        revisions.add_handler(self.revision_changed)
        feed.slices.add_handler(self.slice_changed)
        feed.configs.add_handler(self.config_changed)
        feed.inputs.follow(self)
        feed.on_parked(QUEUE, lambda key: self._enqueue(ObjectRef(*key)))

    # -- events --------------------------------------------------------------------------------

    def rollout_changed(self, old: Object | None, new: Object | None) -> None:
        """Take in a Rollout; one that is gone is judged no more.

        Our own writes come back here as well, and are no reason to judge again.
        """
        obj = new or old
        if obj is None:
            return
        ref = edge_placement_ref(cluster_of(obj), obj["metadata"]["name"])
        if new is None:
            court = self._courts.pop(ref, None)
            for uid in (*court.by_uid, *court.gone.values()) if court is not None else ():
                self._left(uid, ref)
            return
        court = self._courts.get(ref)
        if court is None:
            judging = Judging(self._elapsed.since)
            court = self._courts[ref] = _Court(judging, {}, {}, set(), RolloutSpec(), ("", -1), {})
        elif old is not None and _without_verdicts(old) == _without_verdicts(new):
            return
        court.turned = True
        self._enqueue(ref)

    def revision_changed(self, old: Object | None, new: Object | None) -> None:
        """Take in which objects a revision is about."""
        obj = new or old
        if obj is not None:
            ref = edge_placement_ref(cluster_of(obj), obj["spec"]["placement"])
            self._reread(ref)

    def slice_changed(self, old: Object | None, new: Object | None) -> None:
        """Take in which destination was given what."""
        for obj in (old, new):
            if obj is not None and self._courts:
                self._reread(edge_placement_ref(cluster_of(obj), placement_of_slice(obj)))

    def _reread(self, ref: ObjectRef) -> None:
        court = self._courts.get(ref)
        if court is not None:
            court.reread = True
            self._enqueue(ref)

    def config_changed(self, old: Object | None, new: Object | None) -> None:
        """Take in at which revisions a mailbox is settled."""
        obj = new or old
        if obj is None or obj["metadata"]["name"] != SYNCER_CONFIG_NAME:
            return
        cluster = cluster_of(obj)
        noted = {} if new is None else noted_in(new)
        before, times = self._noted.get(cluster, ({}, {}))
        if noted == before:
            return
        now = self._clock.monotonic()
        changed = {ref for ref in noted.keys() | before.keys() if noted.get(ref) != before.get(ref)}
        since = {ref: now if ref in changed else times.get(ref, now) for ref in noted}
        if noted:
            self._noted[cluster] = noted, since
        else:
            del self._noted[cluster]
        self._dirty(self._feed.inputs.mailbox_uid(cluster), changed)

    def settled(self, settled: Settled) -> None:
        """Take what a batch changed in the tables: reports, and edges heard of or not."""
        if not self._courts:
            return
        for change in settled.changes(self._tables.reports):
            self._dirty(change.key[1])
        for lease in settled.changes(self._tables.leases):
            self._dirty(lease.key)

    def object_put(self, kind: Kind, item: ObjectRef, uid: str, obj: Object) -> None:
        """Take nothing: the tables have it."""

    def object_dropped(self, kind: Kind, item: ObjectRef, uid: str) -> None:
        """Take nothing: the tables have it."""

    def placement_put(self, placement: ObjectRef, obj: Object | None) -> None:
        """Take nothing: slices say where a placement goes."""

    def _dirty(self, uid: str, among: Iterable[ObjectRef] | None = None) -> None:
        """Have one edge weighed anew for the placements judged there, or for some of them."""
        for ref in sorted(self._at.get(uid, ())):
            if among is None or ref in among:
                self._courts[ref].dirty.add(uid)
                self._enqueue(ref)

    def _left(self, uid: str, ref: ObjectRef) -> None:
        known = self._at.get(uid)
        if known is not None:
            known.discard(ref)
            if not known:
                del self._at[uid]

    # -- observing -----------------------------------------------------------------------------

    async def observe(self, ref: ObjectRef) -> ObservedVerdicts | None:
        """Judge a placement; None while it has no Rollout, or something is still to be read."""
        court = self._courts.get(ref)
        rollout = self._rollouts.index.get(Key(ref.cluster, "", ref.name))
        if court is None or rollout is None:
            return None
        missing = self._feed.watches.missing(ref.cluster)
        if missing is not None:
            self._feed.park(QUEUE, ref, missing)
            return None
        self._observing(ref)
        status = rollout.get("status") or {}
        if court.turned:
            self._turn(court, rollout, status)
        if court.reread:
            self._read(ref, court)
        soon = self._weigh(ref, court)
        found = court.judging.step(self._clock.monotonic())
        times = [each for each in (found.again, soon) if each is not None]
        verdicts = replace(found.verdicts, left=self._left_behind(ref, court, status))
        return ObservedVerdicts(
            ref,
            status.get("verdicts"),
            written_verdicts(verdicts, found.errors),
            min(times, default=None),
        )

    def _turn(self, court: _Court, rollout: Object, status: Object) -> None:
        """Take what the Rollout is at. Another spec may judge otherwise: every edge is weighed."""
        metadata = rollout["metadata"]
        generation = metadata.get("uid", ""), int(metadata.get("generation") or 0)
        if generation != court.generation:
            court.spec, court.generation = read_spec(rollout.get("spec") or {}), generation
            court.dirty.update(court.by_uid)
        state = state_of(status)
        court.judging.turn(court.spec, state, verdicts_of(status, state.attempt))
        court.turned = False

    def _read(self, ref: ObjectRef, court: _Court) -> None:
        """Read who was given what; whose revision is another is weighed anew."""
        slots: dict[int, _Slot] = {}
        for piece in self._feed.slices.index.by(BY_PLACEMENT, ref):
            for each, given in zip(destinations_in(piece), assigned_in(piece), strict=True):
                if given is not None:
                    slots[given.slot] = _Slot(each.uid, each.location, given.revision)
        for slot in court.slots.keys() - slots.keys():
            court.judging.drop(slot)
            court.gone[slot] = court.slots[slot].uid
        uids = {each.uid for each in slots.values()}
        for uid in uids:
            self._at.setdefault(uid, set()).add(ref)
        by_uid: dict[str, list[int]] = {}
        for slot, found in slots.items():
            by_uid.setdefault(found.uid, []).append(slot)
        court.dirty.update(uids)
        court.slots, court.by_uid, court.reread = slots, by_uid, False

    def _left_behind(self, ref: ObjectRef, court: _Court, status: Object) -> BitMap:
        """Return those of the departing whose mailbox has nothing of the placement any more.

        Of those that left before we started nothing is known but that they have.
        """
        departing = state_of(status).departing - BitMap(court.slots)
        before, court.gone = (
            court.gone,
            {
                slot: uid
                for slot, uid in court.gone.items()
                if slot in departing and uid not in court.by_uid and self._is_noted(ref, uid)
            },
        )
        for uid in set(before.values()) - set(court.gone.values()) - court.by_uid.keys():
            self._left(uid, ref)
        return departing - BitMap(court.gone)

    def _is_noted(self, ref: ObjectRef, uid: str) -> bool:
        noted, _ = self._noted.get(self._feed.inputs.mailbox_cluster(uid), ({}, {}))
        return ref in noted

    def _weigh(self, ref: ObjectRef, court: _Court) -> float | None:
        """Put new evidence; returns when a note that is too young will count."""
        again: float | None = None
        later: set[str] = set()
        items: dict[int, list[Item]] = {}
        for uid in sorted(court.dirty & court.by_uid.keys()):
            for slot in court.by_uid[uid]:
                found = court.slots[slot]
                if found.revision not in items:
                    items[found.revision] = self._items(ref, found.revision)
                translated, wait = self._is_translated(ref, found)
                if wait > 0:
                    later.add(uid)
                    again = wait if again is None else min(again, wait)
                seen = evidence(
                    ref.cluster,
                    ((i, self._tables.reports.at(i.ref, uid)) for i in items[found.revision]),
                    self._tables.leases.get(uid),
                    translated=translated,
                    fail_when=court.spec.judge.fail_when,
                )
                court.judging.put(slot, Seen(found.revision, found.location, seen))
        court.dirty = later
        return again

    def _is_translated(self, ref: ObjectRef, slot: _Slot) -> tuple[bool, float]:
        """Tell whether a mailbox has what its slice says, and how long that is too young to say."""
        noted, times = self._noted.get(self._feed.inputs.mailbox_cluster(slot.uid), ({}, {}))
        if not slot.revision or noted.get(ref) != slot.revision:
            return False, 0.0
        wait = times[ref] + _CATCH_UP_SECONDS - self._clock.monotonic()
        return wait <= 0, wait

    def _items(self, ref: ObjectRef, revision: int) -> list[Item]:
        """Return the objects of a revision that go to edges; without one, those selected now."""
        selected = self._tables.selected.of(ref)
        pages = self._revisions.index.by(BY_PLACEMENT, (ref.cluster, ref.name, revision))
        found = [ObjectRef("", *each) for page in pages for each in page["spec"]["items"]]
        if not pages:
            return [Item(item, has_status) for item, has_status in selected.items()]
        return [Item(item, selected.get(item)) for item in found if travels(item.group_resource)]


def decide_verdicts(observed: ObservedVerdicts) -> Plan:
    """Publish verdicts if they are others than those that are shown."""
    if observed.published == observed.verdicts:
        return Plan(requeue_after_seconds=observed.again) if observed.again is not None else NOTHING
    ref = observed.ref
    patch = Patch(
        Target(ROLLOUTS, ref.name, cluster=ref.cluster),
        {"status": {"verdicts": observed.verdicts}},
        "VerdictsChanged",
        subresource="status",
        retry_on_conflict=True,
        absent_is_fine=True,
    )
    return Plan([patch], requeue_after_seconds=observed.again)


def _without_verdicts(rollout: Object) -> tuple[object, ...]:
    """Return what of a Rollout matters to a judge: not what the judge wrote."""
    status = {k: v for k, v in (rollout.get("status") or {}).items() if k != "verdicts"}
    return rollout["metadata"].get("generation"), status
