"""Copies that no grant lets through any more, and how their removal is confirmed.

The half of an inventory workspace's LocationConsent that is about single objects. It is taken in
the same two steps as the edge scheduler's half: the id goes from the object first, the copies
after that. See ``logic.fleet.placement.consent_record``.

The way of one copy whose grant was narrowed::

    difference   a copy is there and no grant covers it: it stays, and the row says ``held``
    put          its group's id is another now; the report is enqueued
    decide       the LocationConsent lists the group, with that id and how many objects it has
    (a person)   writes the id into the annotation
    decide       the id fits a group: one write takes it out and notes the confirmation
    release      that write was answered: the elements are released, and their rows marked
    difference   released: the row says "delete", and later ``gone``, which ends the release

Released is in memory alone. Whoever leads next holds again what has not gone by then, under the id
of what is left. A release ends, too, when the object is granted again: should that grant go, the
copy is held once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from skerry.api.edge import LOCATION_CONSENT_NAME, LOCATION_CONSENTS, OBJECT_ID, Mailbox
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.api.refs import ClusterName, ObjectRef
from skerry.kit.timestamps import rfc3339
from skerry.logic.fleet.placement.consent_record import (
    MAX_NAMES,
    REMOVE,
    Confirmation,
    confirmed_ids,
    entries,
    with_confirmations,
    with_part,
    without_ids,
)
from skerry.logic.fleet.placement.holds import Group, Holds, Refusal, Refusals
from skerry.logic.fleet.translation.difference import Hold
from skerry.logic.machinery.plan import NOTHING, Announcement, Plan, Target, Update
from skerry.runtime.client import Client
from skerry.runtime.execute import Announce, Executor, Outcome
from skerry.runtime.index import Key
from skerry.runtime.informer import Informer
from skerry.runtime.metrics import RuntimeMetrics

# How long a report waits for rows to be evaluated: longer than a list that fails a few times.
_PATIENCE_SECONDS = 30.0
# An object in a mailbox: what its id is made of, so the order and number of members stay.
Element = tuple[Mailbox, str, str, str, str]


class HeldObjects:
    """What is held, what is refused, and what may go because somebody confirmed it."""

    def __init__(self, enqueue: Callable[[ClusterName], None]) -> None:
        """*enqueue* gets the inventory workspaces that have something new to report."""
        self._enqueue = enqueue
        self.holds: Holds[Element] = Holds(OBJECT_ID)
        self.refusals: Refusals[Element] = Refusals()
        self._released: set[Element] = set()
        # Items that are held or refused, by mailbox.
        self._noted: dict[Mailbox, set[ObjectRef]] = {}

    def put(self, mailbox: Mailbox, item: ObjectRef, hold: Hold) -> None:
        """Take what a row of ``difference`` says about an object that may not be granted."""
        element = (mailbox, *item[1:])
        if hold.gone:
            # Should it come again, it is held again.
            self._released.discard(element)
        if not hold.source:
            self._drop(mailbox, item, released=hold.released)
            return
        self._noted.setdefault(mailbox, set()).add(item)
        group = Group(mailbox.cluster, hold.source)
        refusal = {} if hold.held else _refused(group, item.group_resource)
        changed = self.holds.put(element, group if hold.held else None)
        self._report(changed | self.refusals.replace(element, refusal))

    def _drop(self, mailbox: Mailbox, item: ObjectRef, *, released: bool = False) -> None:
        """Drop an object from the report: it is granted, or nobody wants it, or it may go.

        *released*: a confirmation for it stays good, as it is still not granted.
        """
        element = (mailbox, *item[1:])
        if not released:
            self._released.discard(element)
        noted = self._noted.get(mailbox)
        if noted is None or item not in noted:
            return
        noted.discard(item)
        if not noted:
            del self._noted[mailbox]
        self._report(self.holds.put(element, None) | self.refusals.replace(element, {}))

    def noted(self, inventory: ClusterName) -> list[tuple[Mailbox, set[ObjectRef]]]:
        """Return what is held or refused in the mailboxes of an inventory workspace."""
        found = (each for each in self._noted if each.cluster == inventory)
        return [(mailbox, set(self._noted[mailbox])) for mailbox in sorted(found)]

    def is_released(self, mailbox: Mailbox, item: ObjectRef) -> bool:
        return (mailbox, *item[1:]) in self._released

    def release(self, elements: Iterable[Element]) -> None:
        """Let copies go: a person has confirmed that."""
        self._released.update(elements)

    def forget_released(self) -> None:
        """Drop confirmations: whoever led meanwhile holds again what they were about."""
        self._released.clear()

    def forget_mailbox(self, mailbox: Mailbox) -> None:
        """Drop everything about a mailbox that is not there any more."""
        for item in sorted(self._noted.get(mailbox, ())):
            self._drop(mailbox, item)

    def _report(self, inventories: Iterable[str]) -> None:
        for cluster in sorted(inventories):
            self._enqueue(cluster)


@lru_cache(maxsize=1024)
def _refused(group: Group, resource: GroupResource) -> Mapping[Group, Refusal]:
    """Return the refusal of one object; equal ones are shared."""
    return {group: Refusal(1, (str(resource),))}


# -- observing ---------------------------------------------------------------------------------


class HeldEntry(NamedTuple):
    """What of one workspace's objects stays though it is not granted."""

    id: str
    workspace: str
    elements: frozenset[Element]

    def written(self) -> dict[str, Any]:
        kinds = {str(ObjectRef("", *each[1:]).group_resource) for each in self.elements}
        return {
            "id": self.id,
            "workspace": self.workspace,
            "objects": len(self.elements),
            "resources": sorted(kinds)[:MAX_NAMES],
        }


@dataclass(frozen=True, slots=True)
class ObservedHolds:
    """The LocationConsent of one inventory workspace, and the entries it should have."""

    cluster: str
    record: Object
    held: tuple[HeldEntry, ...] = ()
    refused: tuple[Mapping[str, Any], ...] = ()


class Patience:
    """Defers reports that would leave out what has not been evaluated, but not for ever.

    A mailbox may wait for a kind that nobody defines, and a confirmation must not.
    """

    def __init__(
        self,
        is_settled: Callable[[ClusterName], bool],
        enqueue: Callable[[ClusterName], None],
        now: Callable[[], float],
    ) -> None:
        """*enqueue* has an inventory workspace looked at again, a little later."""
        self._is_settled = is_settled
        self._enqueue = enqueue
        self._now = now
        self._since: dict[ClusterName, float] = {}

    def waits(self, cluster: ClusterName) -> bool:
        """Tell whether a report is to wait; then it comes again."""
        if self._is_settled(cluster):
            self._since.pop(cluster, None)
            return False
        if self._now() - self._since.setdefault(cluster, self._now()) >= _PATIENCE_SECONDS:
            return False
        self._enqueue(cluster)
        return True


class HoldsObserver:
    """Reads what there is to report about one inventory workspace."""

    def __init__(
        self,
        state: HeldObjects,
        consents: Informer,
        path: Callable[[str], str],
        patience: Patience,
    ) -> None:
        self._state = state
        self._consents = consents
        self._path = path
        self._patience = patience

    async def observe(self, cluster: ClusterName) -> ObservedHolds | None:
        """Return None while the report would be too short, or has nowhere to be written.

        A list of half the rows would have other ids than one of all of them, and a confirmation
        that a person has just given would fit nothing.
        """
        if self._patience.waits(cluster):
            return None  # what has not been evaluated yet is not granted for that
        record = self._consents.index.get(Key(cluster, "", LOCATION_CONSENT_NAME))
        if record is None:
            return None  # the edge scheduler makes it; that it is there is an event
        holds, refusals = self._state.holds, self._state.refusals
        return ObservedHolds(
            cluster,
            record,
            tuple(
                HeldEntry(holds.id(group), self._path(group.source), holds.elements(group))
                for group in holds.groups(cluster)
            ),
            tuple(
                {
                    "workspace": self._path(group.source),
                    "objects": refusals.count(group),
                    "resources": refusals.names(group, MAX_NAMES),
                }
                for group in refusals.groups(cluster)
            ),
        )


# -- deciding ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HoldsPlan(Plan):
    """A plan, and the copies that may go once it has been carried out."""

    releases: frozenset[Element] = field(default=frozenset())


def decide_holds(observed: ObservedHolds, now: datetime) -> Plan:
    """Bring our part of the LocationConsent up to date; take confirmations."""
    record = observed.record
    ids = [each for each in confirmed_ids(record) if each.startswith(OBJECT_ID)]
    taken = [entry for entry in observed.held if entry.id in ids]
    held = [entry.written() for entry in observed.held]
    obj = with_part(without_ids(record, ids), "objects", entries(observed.refused, held))
    confirmations = [Confirmation(e.id, REMOVE, e.workspace, len(e.elements)) for e in taken]
    obj = with_confirmations(obj, confirmations, rfc3339(now))
    if obj == record:
        return NOTHING
    update = Update(
        Target(LOCATION_CONSENTS, LOCATION_CONSENT_NAME, cluster=observed.cluster),
        obj,
        "HoldsChanged",
    )
    releases = frozenset(element for entry in taken for element in entry.elements)
    return HoldsPlan([update], list(_news(observed, ids, taken)), releases=releases)


def _news(
    observed: ObservedHolds, ids: Sequence[str], taken: Sequence[HeldEntry]
) -> Iterable[Announcement]:
    record = observed.record
    for entry in taken:
        text = f"{entry.id}: {len(entry.elements)} objects of {entry.workspace} are removed"
        yield Announcement(record, "Normal", "RemovalConfirmed", text)
    used = {entry.id for entry in taken}
    for each in ids:
        if each not in used:
            text = f"{each[:64]!r} is not the id of anything that is held now"
            yield Announcement(record, "Warning", "ConfirmationIgnored", text)
    listed = {each["id"] for each in (record.get("objects") or {}).get("held") or ()}
    for entry in observed.held:
        if entry.id not in listed:
            text = f"{entry.id}: {len(entry.elements)} objects of {entry.workspace} stay"
            yield Announcement(record, "Warning", "RemovalHeld", f"{text} until confirmed")


# -- acting ------------------------------------------------------------------------------------


class HoldsExecutor(Executor):
    """Lets copies go when, and only when, the confirmation has been taken."""

    def __init__(
        self,
        client: Client,
        state: HeldObjects,
        mark: Callable[[Mailbox, Iterable[ObjectRef]], None],
        controller: str,
        *,
        metrics: RuntimeMetrics,
        announce: Announce | None,
        dry_run: bool = False,
    ) -> None:
        super().__init__(client, controller, metrics=metrics, dry_run=dry_run, announce=announce)
        self._state = state
        self._mark = mark
        self._acts = not dry_run

    async def execute(self, plan: Plan) -> list[Outcome]:
        """Carry out a plan; one that fails releases nothing, and is decided on anew."""
        outcomes = await super().execute(plan)
        if isinstance(plan, HoldsPlan) and plan.releases and self._acts:
            self._state.release(plan.releases)
            by_mailbox: dict[Mailbox, set[ObjectRef]] = {}
            for element in plan.releases:
                by_mailbox.setdefault(element[0], set()).add(ObjectRef("", *element[1:]))
            for mailbox in sorted(by_mailbox):
                self._mark(mailbox, by_mailbox[mailbox])
        return outcomes
