"""The LocationConsent of an inventory workspace: its report, its memory and its confirmations.

One key per inventory workspace with grants. Writes its LocationConsent (but for the part about
single objects, which is the placement translator's) and the status of its LocationGrants.

**Held, not removed.** Grants say who may place on the Locations of a workspace. When one is
narrowed or deleted, what already runs there is not removed at once: a slip in one grant would stop
it at every edge. It is *held*: the placement keeps the destination, gets no new one there, and the
LocationConsent lists it under an id (``logic.fleet.placement.holds``). Somebody who may write the
LocationConsent confirms by that id. What was never admitted is *refused*: counted and reported,
with nothing to confirm. Of what is only observed, the report says what enforcement would refuse.

**Closed stays closed.** Enforcement is remembered in ``mode`` of the LocationConsent, not in the
grants: once it says Enforce, deleting every grant opens nothing, and the workspace waits for the id
of its *opening* to be confirmed. What was held is admitted then; the id of a removal in the same
annotation is answered with an event, and nothing is removed. So a grant's condition ``Enforced`` is
True only when that memory has been written (``Pending`` until then), and a LocationConsent that
enforces goes only with its opening; one that only observes goes with the last grant.

**Once, and in this order.** A confirmation takes effect in two steps: first the LocationConsent is
written without the id, with the version that was read; then the placements are let go. A write that
conflicts lets nothing go, and the ids are judged anew. See
``logic.fleet.placement.consent_record``.

What becomes of the LocationConsent, by the grants there are and by what it remembers:

    no grant, and it remembers nothing     it is deleted
    grants, and it remembers nothing       mode Observe: what enforcement would refuse is listed
    one of the grants enforces             mode Enforce: refusals and what is held are listed
    it remembers Enforce, no grant does    mode Enforce still, and an ``opening`` with its id
    the same, and that id is confirmed     mode Observe; without any grant it is deleted

Only who is held is in memory alone: it is found anew by reconciling placements, and an id follows
from who is held, so a restart changes no id. While they are being reconciled for the first time the
list would be short, with another id, and a confirmation that fits nothing in it may be a good one.
So nothing is listed or answered before every placement that a Location of the workspace refuses has
been reconciled once; the mode and the status of grants wait for nobody.

Ids that begin as those of single objects are the placement translator's and are passed over. Any
other that fits nothing held now is taken out of the annotation and answered with an event: whoever
confirmed saw an older list.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from heapq import nsmallest
from typing import Any, NamedTuple

from pyroaring import BitMap

from skerry.api.edge import (
    API_VERSION,
    DESTINATION_ID,
    ENFORCE,
    LOCATION_CONSENT_NAME,
    LOCATION_CONSENTS,
    OBJECT_ID,
    OBSERVE,
    OPENING_ID,
    ConsentMode,
    edge_placement_ref,
    is_staged,
    location_ref,
)
from skerry.api.objects import Object
from skerry.api.refs import CLUSTER_ANNOTATION, ObjectRef
from skerry.controllers.edge_scheduler.grant_status import SeenGrant, grant_status
from skerry.controllers.edge_scheduler.running import Running
from skerry.controllers.edge_scheduler.unreconciled import Unreconciled
from skerry.kit.timestamps import rfc3339
from skerry.logic.fleet.placement.consent_record import (
    MAX_NAMES,
    OPEN,
    REMOVE,
    Confirmation,
    confirmed_ids,
    entries,
    new_record,
    with_confirmations,
    with_part,
    without_ids,
)
from skerry.logic.fleet.placement.destination import Chosen, DestinationTable
from skerry.logic.fleet.placement.holds import Group, Holds, Refusal, Refusals
from skerry.logic.fleet.placement.records import is_being_deleted
from skerry.logic.machinery.plan import Action, Announcement, Create, Delete, Plan, Target, Update
from skerry.runtime.client import Client
from skerry.runtime.execute import Executor, Outcome
from skerry.runtime.index import Key
from skerry.runtime.informer import Informer
from skerry.runtime.metrics import RuntimeMetrics

# A destination that is held: a placement's cluster and name, a Location's cluster and name.
Element = tuple[str, str, str, str]


def _element(placement: ObjectRef, location: ObjectRef) -> Element:
    """Return the form that ids are made from; it must stay, or confirmations would be void."""
    return placement.cluster, placement.name, location.cluster, location.name


class InventoryKey(NamedTuple):
    """What the queue holds: an inventory workspace by its cluster."""

    cluster: str

    def __str__(self) -> str:
        return self.cluster


class ConsentState:
    """What the placements reconciled so far are refused, and what of theirs is held.

    The executor of slices writes it, placement by placement; the loop for reports reads it.
    """

    def __init__(self, index: DestinationTable, enqueue: Callable[[InventoryKey], None]) -> None:
        """*enqueue* gets the inventory workspaces that have something new to report."""
        self.index = index
        self._enqueue = enqueue
        self.running = Running()
        self.holds: Holds[Element] = Holds(DESTINATION_ID)
        self.refusals: Refusals[ObjectRef] = Refusals()
        self._held_of: dict[ObjectRef, frozenset[Element]] = {}
        self.unreconciled = Unreconciled(index)

    def begin(self) -> None:
        """Take that we lead from now on: another process may have let go what we think is held."""
        self.running.clear()
        self.unreconciled.begin()

    def note(self, ref: ObjectRef, chosen: Chosen) -> None:
        """Take what was found for a placement.

        What is held is listed as that and not as refused. What grants only observe is listed as
        refused: in mode Observe a refusal is what enforcement would refuse.
        """
        inventory = self.index.inventory
        held = frozenset(_element(ref, inventory.location_at(n).ref) for n in chosen.held)
        refused = self._refusals(ref, (chosen.refused - chosen.held) | chosen.observed)
        changed = self._hold(ref, held) | self.refusals.replace(ref, refused)
        self.enqueue(changed | self.unreconciled.reconciled(ref))

    def pass_over(self, ref: ObjectRef) -> None:
        """Take that nothing was found for a placement as it is: reports wait for it no longer."""
        self.enqueue(self.unreconciled.abandoned(ref))

    def forget(self, ref: ObjectRef) -> None:
        """Take that a placement has gone."""
        self.running.forget(ref)
        self.running.settle(ref, ())
        changed = self._hold(ref, frozenset()) | self.refusals.replace(ref, {})
        self.enqueue(changed | self.unreconciled.forget(ref))

    def _hold(self, ref: ObjectRef, held: frozenset[Element]) -> set[str]:
        """Hold these destinations of a placement and no others."""
        changed: set[str] = set()
        before = self._held_of.pop(ref, frozenset())
        for element in before - held:
            changed |= self.holds.put(element, None)
        for element in held - before:
            changed |= self.holds.put(element, Group(element[2], ref.cluster))
        if held:
            self._held_of[ref] = held
        return changed

    def enqueue(self, inventories: Iterable[str]) -> None:
        """Have the reports of inventory workspaces brought up to date."""
        for cluster in sorted(inventories):
            self._enqueue(InventoryKey(cluster))

    def _refusals(self, ref: ObjectRef, locations: BitMap) -> dict[Group, Refusal]:
        """Return refusals by inventory workspace; counts, and a few names as examples."""
        if not locations:
            return {}
        return {
            Group(inventory, ref.cluster): Refusal(len(there), self._names(there))
            for inventory, there in self.index.consent.by_workspace(locations).items()
        }

    def _names(self, locations: BitMap) -> tuple[str, ...]:
        # The first by name and not by number: a report must not differ from process to process.
        found = (self.index.inventory.location_at(n).ref.name for n in locations)
        return tuple(nsmallest(MAX_NAMES, found))


# -- observing ---------------------------------------------------------------------------------


class HeldEntry(NamedTuple):
    """What one workspace has where it is not admitted any more."""

    id: str
    workspace: str
    elements: frozenset[Element]

    def written(self) -> dict[str, Any]:
        """Return the entry of the list; names are examples, the id stands for all of it."""
        locations = sorted({(each[2], each[3]) for each in self.elements})
        return {
            "id": self.id,
            "workspace": self.workspace,
            "placements": len({each[:2] for each in self.elements}),
            "locations": len(locations),
            "locationNames": [name for _, name in locations[:MAX_NAMES]],
        }


@dataclass(frozen=True, slots=True)
class ObservedConsent:
    """One inventory workspace: its grants, what they do, and its LocationConsent.

    ``settled`` False: who is held and refused is not known yet.
    """

    cluster: str
    mode: ConsentMode | None
    grants: tuple[SeenGrant, ...] = ()
    record: Object | None = None
    held: tuple[HeldEntry, ...] = ()
    refused: tuple[Mapping[str, Any], ...] = ()
    settled: bool = True

    @property
    def enforces(self) -> bool:
        return any(seen.grant.enforces for seen in self.grants)


class ConsentObserver:
    """Reads what there is to report about one inventory workspace."""

    def __init__(
        self,
        state: ConsentState,
        grants: Informer,
        consents: Informer,
        is_ready: Callable[[], bool],
        placement: Callable[[ObjectRef], Object | None],
    ) -> None:
        """*is_ready* returns whether the paths of workspaces are known, *placement* an object."""
        self._index = state.index
        self._state = state
        self._grants = grants
        self._consents = consents
        self._is_ready = is_ready
        self._placement = placement

    async def observe(self, key: InventoryKey) -> ObservedConsent | None:
        """Read it all from memory and caches, at one moment; None before paths are known."""
        if not self._is_ready():
            return None  # enqueued again when they are
        consent, cluster = self._index.consent, key.cluster
        mode = consent.mode(cluster)
        settled = not self._state.unreconciled.waits(cluster, self._is_reconciled)
        return ObservedConsent(
            cluster,
            mode,
            tuple(self._seen(cluster)),
            self._consents.index.get(Key(cluster, "", LOCATION_CONSENT_NAME)),
            # In an open workspace nothing is held, whatever has not been reconciled since.
            tuple(self._held(cluster)) if settled and mode == ENFORCE else (),
            tuple(self._refused(cluster)) if settled else (),
            settled,
        )

    def _is_reconciled(self, ref: ObjectRef) -> bool:
        """Tell whether a placement ever will be; of those being deleted, only wave by wave."""
        obj = self._placement(ref)
        return obj is not None and (not is_being_deleted(obj) or is_staged(obj))

    def _seen(self, cluster: str) -> Iterable[SeenGrant]:
        consent = self._index.consent
        for grant in consent.grants_in(cluster):
            obj = self._grants.index.get(Key(cluster, "", grant.ref.name))
            if obj is not None:
                locations, sources = consent.selected(grant.ref), consent.sources(grant.ref)
                yield SeenGrant(grant, obj, len(locations), len(sources))

    def _held(self, cluster: str) -> Iterable[HeldEntry]:
        holds = self._state.holds
        for group in holds.groups(cluster):
            path = self._index.consent.path(group.source)
            yield HeldEntry(holds.id(group), path, holds.elements(group))

    def _refused(self, cluster: str) -> Iterable[Mapping[str, Any]]:
        refusals = self._state.refusals
        for group in refusals.groups(cluster):
            yield {
                "workspace": self._index.consent.path(group.source),
                "placements": refusals.owners(group),
                "locations": refusals.count(group),
                "locationNames": refusals.names(group, MAX_NAMES),
            }


# -- deciding ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ConsentPlan(Plan):
    """A plan, and the destinations that may go once its first action has been carried out."""

    releases: frozenset[Element] = field(default=frozenset())


def decide_consent(observed: ObservedConsent, now: datetime) -> Plan:
    """Bring the LocationConsent and the status of grants up to date; take confirmations."""
    statuses = [
        action
        for seen in observed.grants
        if (action := grant_status(seen, observed.mode, observed.record, now)) is not None
    ]
    target = Target(LOCATION_CONSENTS, LOCATION_CONSENT_NAME, cluster=observed.cluster)
    record = observed.record
    if observed.mode is None:
        return Plan([*_removed(record, target, "NoGrants"), *statuses])
    if record is None:
        empty = new_record(observed.cluster)
        create = Create(target, _reported(observed, empty), "GrantsFound")
        return Plan([create, *statuses], list(_news(observed, empty, (), (), opens=False)))
    ids = [each for each in confirmed_ids(record) if not each.startswith(OBJECT_ID)]
    if not observed.settled:
        ids = []  # they stay in the annotation until it is known what they fit
    opens = _awaits_opening(observed) and opening_id(record) in ids
    # What is held is admitted when the workspace opens: removed now, it would come straight back.
    taken = [] if opens else [entry for entry in observed.held if entry.id in ids]
    news = list(_news(observed, record, ids, taken, opens=opens))
    if opens and not observed.grants:
        return Plan([*_removed(record, target, "OpeningConfirmed"), *statuses], news)
    obj = _reported(observed, without_ids(record, ids), opens=opens)
    obj = with_confirmations(obj, _confirmations(record, taken, opens=opens), rfc3339(now))
    actions: list[Action] = [] if obj == record else [Update(target, obj, "ConsentChanged")]
    releases = frozenset(element for entry in taken for element in entry.elements)
    return ConsentPlan([*actions, *statuses], news, releases=releases)


def opening_id(record: Mapping[str, Any]) -> str:
    """Return what confirms that a workspace is to be opened; every LocationConsent has its own."""
    uid = str(record["metadata"].get("uid", ""))
    return OPENING_ID + hashlib.blake2b(uid.encode(), digest_size=6).hexdigest()


def _awaits_opening(observed: ObservedConsent) -> bool:
    return observed.mode == ENFORCE and not observed.enforces


def _removed(record: Object | None, target: Target, reason: str) -> list[Action]:
    if record is None:
        return []
    metadata = record["metadata"]
    version = str(metadata.get("resourceVersion", ""))
    return [Delete(target, reason, uid=metadata.get("uid", ""), resource_version=version)]


def _reported(
    observed: ObservedConsent, record: Mapping[str, Any], *, opens: bool = False
) -> dict[str, Any]:
    """Return *record* with everything in it that is ours."""
    obj = {key: value for key, value in record.items() if key != "opening"}
    obj["mode"] = OBSERVE if opens else observed.mode
    obj["grants"] = len(observed.grants)
    obj["enforcingGrants"] = sum(seen.grant.enforces for seen in observed.grants)
    if _awaits_opening(observed) and not opens and record["metadata"].get("uid"):
        obj["opening"] = {"id": opening_id(record)}
    if not observed.settled:
        return with_part(obj, "destinations", record.get("destinations") or {})
    held = [] if opens else [entry.written() for entry in observed.held]
    return with_part(obj, "destinations", entries(observed.refused, held))


def _confirmations(
    record: Object, taken: Sequence[HeldEntry], *, opens: bool
) -> list[Confirmation]:
    found = [
        Confirmation(entry.id, REMOVE, entry.workspace, len(entry.elements)) for entry in taken
    ]
    return [*found, Confirmation(opening_id(record), OPEN)] if opens else found


def _news(
    observed: ObservedConsent,
    record: Object,
    ids: Sequence[str],
    taken: Sequence[HeldEntry],
    *,
    opens: bool,
) -> Iterable[Announcement]:
    about = _about(observed.cluster, record)
    for entry in taken:
        text = f"{len(entry.elements)} destinations of {entry.workspace} are removed"
        yield Announcement(about, "Normal", "RemovalConfirmed", f"{entry.id}: {text}")
    if opens:
        text = "no grant enforces any more; the workspace is open"
        yield Announcement(about, "Normal", "OpeningConfirmed", f"{opening_id(record)}: {text}")
    used = {entry.id for entry in taken} | ({opening_id(record)} if opens else set())
    stays = {entry.id for entry in observed.held} if opens else set()
    for each in ids:
        if each not in used:
            text = f"{each[:64]!r} is not the id of anything that is held now"
            if each in stays:
                text = f"{each}: the workspace is open, so its destinations stay"
            yield Announcement(about, "Warning", "ConfirmationIgnored", text)
    listed = {each["id"] for each in (record.get("destinations") or {}).get("held") or ()}
    for entry in observed.held:
        if entry.id not in listed and not opens:
            text = f"{len(entry.elements)} destinations of {entry.workspace} stay until confirmed"
            yield Announcement(about, "Warning", "RemovalHeld", f"{entry.id}: {text}")


def _about(cluster: str, record: Object) -> Object:
    metadata = record["metadata"]
    annotations = {**(metadata.get("annotations") or {}), CLUSTER_ANNOTATION: cluster}
    return {
        "apiVersion": API_VERSION,
        "kind": "LocationConsent",
        "metadata": {**metadata, "annotations": annotations},
    }


# -- acting ------------------------------------------------------------------------------------


class ConsentExecutor(Executor):
    """Lets destinations go when, and only when, the confirmation has been taken.

    The first action of a plan with releases is the write that takes it; what follows (the status
    of grants) may fail without an effect on them. A dry run lets nothing go.
    """

    def __init__(
        self,
        client: Client,
        state: ConsentState,
        enqueue: Callable[[ObjectRef], None],
        controller: str,
        *,
        metrics: RuntimeMetrics,
        announce: Callable[[Announcement], None] | None,
        dry_run: bool = False,
    ) -> None:
        super().__init__(client, controller, metrics=metrics, dry_run=dry_run, announce=announce)
        self._state = state
        self._enqueue = enqueue
        self._acts = not dry_run

    async def execute(self, plan: Plan) -> list[Outcome]:
        """Carry out a plan; a failure of its first action releases nothing, and announces nothing.

        If that action was carried out and its answer lost, the confirmation is used up and nothing
        has gone: what is still held stays listed, and has to be confirmed once more. A record that
        was to be deleted and that somebody has changed is kept, and is decided on anew.
        """
        first, others = plan.actions[:1], plan.actions[1:]
        outcomes = await super().execute(Plan(first))
        if not any(outcome.result == "kept" for outcome in outcomes):
            await super().execute(Plan([], plan.announcements))
        if isinstance(plan, ConsentPlan) and self._acts:
            for placement, name, cluster, location in sorted(plan.releases):
                ref = edge_placement_ref(placement, name)
                self._state.running.release(ref, location_ref(cluster, location))
                self._enqueue(ref)
        return outcomes + await super().execute(Plan(others))
