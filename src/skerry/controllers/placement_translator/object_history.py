"""DecisionRecords about single objects: what is withheld, and what is sent in another form.

The edge scheduler records where a placement goes; what goes there is decided here. Of an object
that cannot be put on its way a record says so, and another one when it can. Where a placement has
no Rollout, and so no revisions that would tell, each change of what it sends is recorded with the
digests before and after, and without content: what changes within ten seconds once, however often
it does. What happens to a placement meanwhile is written together, one record an object.

What is withheld was recorded by whoever led before, too: it is read once, for placements that are
found with problems. A change that nobody saw, because no translator ran, is not recorded; the
digests of the next one show that.

A change has a beginning and an end by digest, and changes that follow each other are one: from the
first beginning to the last end. An object that is changed and changed back within ten seconds is
therefore recorded as nothing. While a record is being written the object may change again; what
came meanwhile begins where the written record ended, so the records of one object always join.

Records are chained, and a chain has one writer: whoever leads. Only the end of it is kept in
memory. Whenever it is in doubt (somebody else led, a record was there already, the server refused
one) it is forgotten and read again before the next record, and nothing is read as long as there is
nothing to write.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from skerry.api.edge import DECISION_RECORDS, EDGE_PLACEMENTS
from skerry.api.errors import ApiError
from skerry.api.objects import Object, revision_of
from skerry.api.refs import ClusterName, ObjectRef
from skerry.kit.log import Logger
from skerry.logic.fleet.history.objects import Sent, Withheld, object_decisions, withheld_in
from skerry.logic.fleet.history.record import (
    Head,
    Maker,
    Subject,
    head_of,
    in_order,
    order_of,
    records_of,
)
from skerry.logic.fleet.history.retention import Limits, is_kept
from skerry.logic.fleet.history.writing import REFUSALS, creation, made_by
from skerry.logic.machinery.plan import Plan
from skerry.runtime.client import Client, Selection
from skerry.runtime.execute import Executor, Outcome

# What happens to a placement within this time is written together; what is edited all the time is
# recorded less often.
_WITHHELD_SECONDS, _REVISED_SECONDS = 1.0, 10.0
# Objects whose change is attributed in one batch; of more nobody would read it.
_MAX_ATTRIBUTED = 20

# As records name who made them.
CONTROLLER = "placement-translator"

_log = Logger(f"{CONTROLLER}-history")


@dataclass(frozen=True, slots=True)
class ObjectHistorySettings:
    """How much placements keep, and the version that records are made by."""

    limits: Limits = field(default_factory=Limits)
    version: str = ""


class _HistoryHead(NamedTuple):
    """What is recorded of a placement: the end of our chain, and what is withheld by it."""

    uid: str
    head: Head | None
    withheld: Withheld


class ObjectHistory:
    """What is to be recorded about the objects of placements, and what has been."""

    def __init__(self, enqueue_after: Callable[[ObjectRef, float], None]) -> None:
        self._enqueue_after = enqueue_after
        self._changed: dict[ObjectRef, dict[ObjectRef, Sent]] = {}
        self._cache: dict[ObjectRef, _HistoryHead] = {}
        # Found with problems, of which something may be recorded.
        self._unread: set[ObjectRef] = set()

    def clear(self) -> None:
        """Forget what happened while somebody else led, who has recorded it."""
        self._changed.clear()
        self._unread.update(self._cache)
        self._cache.clear()

    def placement_changed(self, old: Object | None, new: Object | None) -> None:
        """Take an EdgePlacement."""
        obj = new or old
        if obj is None:
            return
        ref = ObjectRef.of(EDGE_PLACEMENTS.group_resource, obj)
        if new is None:
            self._changed.pop(ref, None)
            self._cache.pop(ref, None)
            self._unread.discard(ref)
        elif old is None and (new.get("status") or {}).get("problems"):
            self._unread.add(ref)

    def problems_changed(self, placement: ObjectRef) -> None:
        """Take that something else is withheld of a placement."""
        self._enqueue_after(placement, _WITHHELD_SECONDS)

    def revised(self, placements: Iterable[ObjectRef], item: ObjectRef, sent: Sent) -> None:
        """Take that placements send an object in another form."""
        for placement in placements:
            changed = self._changed.setdefault(placement, {})
            before = changed.get(item)
            changed[item] = sent if before is None else sent._replace(start=before.start)
            self._enqueue_after(placement, _REVISED_SECONDS)

    def changed(self, placement: ObjectRef) -> Mapping[ObjectRef, Sent]:
        """Return what is sent in another form, and not recorded."""
        return dict(self._changed.get(placement, {}))

    def known(self, placement: ObjectRef, uid: str) -> _HistoryHead | None:
        """Return what is recorded; None: that must be read."""
        found = self._cache.get(placement)
        return found if found is not None and found.uid == uid else None

    def may_be_recorded(self, placement: ObjectRef) -> bool:
        """Tell whether somebody may have recorded that something is withheld."""
        return placement in self._unread

    def note(
        self, placement: ObjectRef, known: _HistoryHead, written: Mapping[ObjectRef, Sent]
    ) -> None:
        """Take that this is recorded."""
        self._cache[placement] = known
        self._unread.discard(placement)
        self._drop(placement, written)

    def forget(self, placement: ObjectRef, written: Mapping[ObjectRef, Sent]) -> None:
        """Take that this is recorded, or never will be, and that the end must be read again."""
        self._cache.pop(placement, None)
        self._unread.add(placement)
        self._drop(placement, written)

    def _drop(self, placement: ObjectRef, written: Mapping[ObjectRef, Sent]) -> None:
        changed = self._changed.get(placement, {})
        for item, sent in written.items():
            later = changed.pop(item, None)
            if later is not None and later.to != sent.to:
                changed[item] = later._replace(start=sent.to)
        if not changed:
            self._changed.pop(placement, None)


@dataclass(frozen=True, slots=True)
class ObservedObjects:
    """A placement, what is recorded of its objects, and what is so."""

    placement: Object
    known: _HistoryHead
    withheld: Withheld
    changed: Mapping[ObjectRef, Sent]
    destinations: int


@dataclass(frozen=True, slots=True)
class HistoryPlan(Plan):
    """Records to write, and what is known when they are."""

    placement: ObjectRef | None = field(default=None)
    known: _HistoryHead | None = field(default=None)
    changed: Mapping[ObjectRef, Sent] = field(default_factory=dict)


class HistoryObserver:
    """Reads what is to be recorded of one placement."""

    def __init__(
        self,
        client: Client,
        history: ObjectHistory,
        limits: Limits,
        placement: Callable[[ObjectRef], Object | None],
        withheld: Callable[[ObjectRef], Withheld | None],
        destinations: Callable[[ObjectRef], int],
        manager: Callable[[ClusterName, ObjectRef], Awaitable[str]],
    ) -> None:
        """*withheld* returns None while that is not known for every destination."""
        self._client = client
        self._history = history
        self._limits = limits
        self._placement = placement
        self._withheld = withheld
        self._destinations = destinations
        self._manager = manager

    async def observe(self, ref: ObjectRef) -> ObservedObjects | None:
        placement = self._placement(ref)
        if placement is None or not is_kept(placement, self._limits):
            return None
        changed, withheld = self._history.changed(ref), self._withheld(ref)
        uid = placement["metadata"]["uid"]
        known = self._history.known(ref, uid)
        if known is None:
            if not changed and not withheld and not self._history.may_be_recorded(ref):
                return None
            known = await self._read(ref, uid)
        if withheld is None:
            withheld = known.withheld
        if withheld.keys() == known.withheld.keys() and not changed:
            return None
        attributed = {
            item: sent._replace(manager=await self._manager(ref.cluster, item))
            if number < _MAX_ATTRIBUTED and sent.to
            else sent
            for number, (item, sent) in enumerate(sorted(changed.items()))
        }
        return ObservedObjects(placement, known, withheld, attributed, self._destinations(ref))

    async def _read(self, ref: ObjectRef, uid: str) -> _HistoryHead:
        """Read what was recorded of a placement's objects; once, when something is to be."""
        labels = made_by(CONTROLLER, ref.name)
        try:
            client = self._client.for_cluster(ref.cluster)
            listed = await client.list(DECISION_RECORDS, Selection(labels=labels))
        except ApiError as error:
            if error.code not in REFUSALS:
                raise
            return _HistoryHead(uid, None, {})
        own = [each for each in in_order(listed.items) if _is_of(each, uid)]
        if not own:
            return _HistoryHead(uid, None, {})
        return _HistoryHead(uid, head_of(own[-1]), withheld_in(own))


def _is_of(record: Object, uid: str) -> bool:
    named = order_of(record["metadata"]["name"]) is not None
    return named and (record.get("placement") or {}).get("uid") == uid


def decide_history(observed: ObservedObjects, maker: Maker, now: datetime) -> HistoryPlan:
    """Return the records of what has changed, chained to those before."""
    ref = ObjectRef.of(EDGE_PLACEMENTS.group_resource, observed.placement)
    metadata, known = observed.placement["metadata"], observed.known
    decisions = object_decisions(
        ref.cluster, known.withheld, observed.withheld, observed.changed, observed.destinations
    )
    versions = (sent.resource_version for sent in observed.changed.values())
    records = records_of(
        decisions,
        Subject(ref.name, known.uid, int(metadata.get("generation") or 0)),
        maker,
        follows=max(map(revision_of, [metadata.get("resourceVersion"), *versions])),
        head=known.head,
        now=now,
    )
    head = (head_of(records[-1]) if records else None) or known.head
    return HistoryPlan(
        [creation(ref.cluster, each) for each in records],
        placement=ref,
        known=_HistoryHead(known.uid, head, observed.withheld),
        changed=observed.changed,
    )


class HistoryExecutor(Executor):
    """Writes records, and has them known when they are written, or never will be."""

    def __init__(self, history: ObjectHistory, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._history = history

    async def execute(self, plan: Plan) -> list[Outcome]:
        try:
            outcomes = await super().execute(plan)
        except ApiError as error:
            if error.code not in REFUSALS:
                raise
            _log.warning("objects not recorded", error=str(error))
            outcomes = []
        if isinstance(plan, HistoryPlan) and plan.placement is not None and plan.known is not None:
            # What was there already may follow another record than ours would have.
            if len(outcomes) == len(plan) and all(each.result == "created" for each in outcomes):
                self._history.note(plan.placement, plan.known, plan.changed)
            else:
                self._history.forget(plan.placement, plan.changed)
        return outcomes
