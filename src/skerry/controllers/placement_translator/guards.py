"""Copies whose objects are no longer selected, and that guards keep in mailboxes for now.

``ObjectsRemoved`` counts what placements of a workspace stop sending: objects deleted or
deselected, each once however many edges have a copy. A copy that goes because its *destination*
went is not counted here; the edge scheduler has decided on that.

Which placement sent an object that is gone, nobody can say afterwards; so the first of its
workspace that still goes to that mailbox, and that a guard concerns, answers for it. Its book is
the part for objects of that placement's ``status.removals``.

A copy waits in its mailbox until the book lets it go: until what goes within a budget's window is
charged, or until a person has confirmed the name of what is held. The book is written first, with
the version that was read, the copies go after that. A process that dies in between has charged too
much, or asks again.

The way of one copy, with the method that each step is::

    delete   the row of ``difference`` says so, as its object was deleted or deselected
    judged   its placement's guards are asked, with all else that waits there      (pure)
    note     it waits: the row becomes "none", and the placement's status is enqueued
    book     the status takes the charge or the hold, with the version that was read
    release  written: the copy is marked, and passes ``judged`` without being asked about
    delete   the row says so again, and now it goes

Judging is apart from noting because a plan may fail between the two, and because a mailbox that is
evaluated twice must not be counted twice. An object waits at each mailbox that has a copy, and is
one member of the hold all the same: the book counts objects, and ``_waiting`` knows where they are.

A release is remembered per copy and not written anywhere. Whoever leads next does not know of it
and asks again, which is safe: what was charged lately is counted once. For the same reason a
release ends as soon as the object is wanted again, or its copy is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from skerry.api.edge import CONFIRM, EDGE_PLACEMENTS, PLACEMENT_GUARDS, Mailbox
from skerry.api.objects import Object
from skerry.api.refs import CLUSTER_ANNOTATION, ClusterName, ObjectRef
from skerry.logic.fleet.guards.book import NOBODY, Book, Hold, Members, book_of
from skerry.logic.fleet.guards.book import OBJECTS as BOOK
from skerry.logic.fleet.guards.budget import OBJECTS as OBJECTS_TEXT
from skerry.logic.fleet.guards.budget import Loss, judge, rules_of
from skerry.logic.fleet.guards.budget import Verdict as Judged
from skerry.logic.fleet.guards.index import GuardIndex
from skerry.logic.fleet.guards.spec import OBJECTS, Guard, guard_of
from skerry.logic.fleet.guards.token import member
from skerry.logic.fleet.tables.completeness import Verdict
from skerry.logic.fleet.translation.categories import NAMESPACES
from skerry.logic.fleet.translation.difference import ItemDiff
from skerry.logic.fleet.translation.dirty import CONFIG
from skerry.logic.fleet.translation.route import Route
from skerry.logic.fleet.translation.workspaces import Workspaces
from skerry.logic.machinery.plan import Plan, Target, Update
from skerry.runtime.client import Client
from skerry.runtime.execute import Announce, Executor, Outcome
from skerry.runtime.metrics import RuntimeMetrics

Copy = tuple[Mailbox, ObjectRef]
_NOTHING: frozenset[ObjectRef] = frozenset()


class Kept(NamedTuple):
    """What the guards of one placement say of copies that are to go from a mailbox.

    ``items`` stay there for now. Without any the placement holds nothing any more, unless ``hold``
    or ``charging`` says so: objects that have to be charged before they go need its status written.
    """

    placement: ObjectRef
    items: frozenset[ObjectRef]
    hold: Hold | None
    charging: bool

    @property
    def frees(self) -> bool:
        """Whether nothing that the placement answers for has to wait."""
        return self.hold is None and not self.charging


class Judgement(NamedTuple):
    """Rows of a mailbox with nothing to be done about those that are held, and what follows.

    ``settled`` are the copies that are not to go, or have gone.
    """

    mailbox: Mailbox
    rows: tuple[ItemDiff, ...]
    settled: AbstractSet[ObjectRef] = _NOTHING
    kept: tuple[Kept, ...] = ()


class GuardedObjects:
    """What is held, by the placement that answers for it, and what may go."""

    def __init__(
        self,
        workspaces: Workspaces,
        route: Route,
        now: Callable[[], datetime],
        mark: Callable[[Mailbox, Iterable[ObjectRef]], None],
        enqueue_status: Callable[[ObjectRef], None],
        provider: ClusterName = "",
    ) -> None:
        """*mark* has rows evaluated again; *enqueue_status* has a placement's status written."""
        self._workspaces = workspaces
        self._route = route
        self._now = now
        self._mark = mark
        self._enqueue_status = enqueue_status
        self._guards = GuardIndex(provider)
        # Labels of workspaces by cluster, as far as they are known.
        self._labels: dict[ClusterName, Mapping[str, str]] = {}
        self._placements: dict[ObjectRef, Object] = {}
        # Copies that wait, by the placement that answers for them.
        self._waiting: dict[ObjectRef, dict[ObjectRef, set[Mailbox]]] = {}
        self._holds: dict[ObjectRef, Hold] = {}
        self._released: set[Copy] = set()

    # -- events ------------------------------------------------------------------------------

    def guard_changed(self, old: Object | None, new: Object | None) -> None:
        obj = new or old
        if obj is None:
            return
        if new is None:
            self._guards.remove(ObjectRef.of(PLACEMENT_GUARDS.group_resource, obj))
        else:
            self._guards.put(guard_of(new))
        self._evaluate(self._waiting)

    def workspace_changed(self, old: Object | None, new: Object | None) -> None:
        obj = new or old
        cluster = ((obj or {}).get("spec") or {}).get("cluster", "")
        if new is None:
            self._labels.pop(cluster, None)
        else:
            self._labels[cluster] = new["metadata"].get("labels") or {}

    def placement_changed(self, old: Object | None, new: Object | None) -> None:
        """Take the labels of a placement, and what it says is held of it."""
        obj = new or old
        if obj is None:
            return
        ref = ObjectRef.of(EDGE_PLACEMENTS.group_resource, obj)
        if new is None:
            self._placements.pop(ref, None)
            self._holds.pop(ref, None)
            self._waiting.pop(ref, None)
            return
        self._placements[ref] = new
        if old is None:
            self._adopt(ref, new)
        elif ref not in self._waiting and book_of(new.get("status"), BOOK).hold is None:
            # What was adopted turned out to concern nothing, and its status says so by now.
            self._holds.pop(ref, None)

    def _adopt(self, ref: ObjectRef, placement: Object) -> None:
        """Hold on to what a placement says was held by whoever led before."""
        hold = book_of(placement.get("status"), BOOK).hold
        if hold is not None:
            self._holds[ref] = hold

    # -- deciding ----------------------------------------------------------------------------

    def judged(self, mailbox: Mailbox, cluster: ClusterName, rows: Sequence[ItemDiff]) -> Judgement:
        """Decide which rows of a mailbox are held. Changes nothing: ``note`` takes what follows."""
        if not self._guards and not self._holds:
            return Judgement(mailbox, tuple(rows))
        settled = {
            row.item for row in rows if row.verdict is not Verdict.DELETE or row.item == CONFIG
        }
        lost: dict[ObjectRef, set[ObjectRef]] = {}
        for row in rows:
            if row.item in settled or (mailbox, row.item) in self._released:
                continue
            responsible = self._responsible(mailbox, cluster, row.item)
            if responsible is not None:
                lost.setdefault(responsible, set()).add(row.item)
        kept = tuple(self._kept(each, mailbox, lost[each], settled) for each in lost)
        held = _NOTHING.union(*(each.items for each in kept))
        found = (replace(r, verdict=Verdict.NONE) if r.item in held else r for r in rows)
        return Judgement(mailbox, tuple(found), settled, kept)

    def note(self, judgement: Judgement) -> None:
        """Take what a judgement says; nothing may have happened since it was made."""
        mailbox = judgement.mailbox
        for item in judgement.settled:
            self._settled(mailbox, item)
        for each in judgement.kept:
            if each.frees:
                self._free(each.placement)
                continue
            for item in each.items:
                self._waiting.setdefault(each.placement, {}).setdefault(item, set()).add(mailbox)
            self._hold(each.placement, each.hold)
            if each.charging:
                self._enqueue_status(each.placement)

    def _responsible(
        self, mailbox: Mailbox, cluster: ClusterName, item: ObjectRef
    ) -> ObjectRef | None:
        """Return the placement that answers for a copy; None where no guard has a say."""
        record = self._workspaces.record(cluster, item)
        there = self._route.contributors(mailbox)
        owner = record.owned.cluster if record is not None and record.owned is not None else ""
        if not owner and len(there) == 1:
            owner = next(iter(there))
        if owner not in there or self._is_sent(owner, item):
            return None
        found = (each for each in there[owner] if each in self._holds or self._of(each))
        return next(found, None)

    def _is_sent(self, owner: ClusterName, item: ObjectRef) -> bool:
        """Tell whether an object is there and selected: not going here is for others to judge."""
        exists = self._workspaces.record(owner, item) is not None
        return exists and bool(self._route.sending(owner, item))

    def _of(self, placement: ObjectRef) -> tuple[Guard, ...]:
        """Return the guards of a placement that say something about objects."""
        if not self._guards:
            return ()
        metadata = self._placements.get(placement, {}).get("metadata") or {}
        labels = self._labels.get(placement.cluster, {})
        return tuple(
            guard
            for guard in self._guards.of(placement, labels, metadata.get("labels") or {})
            if any(each.of == OBJECTS for each in guard.budgets)
            or any(each.kind == "Namespace" for each in guard.protections)
        )

    def _kept(
        self,
        placement: ObjectRef,
        mailbox: Mailbox,
        items: set[ObjectRef],
        settled: AbstractSet[ObjectRef],
    ) -> Kept:
        """Return which of the lost objects stay in a mailbox for now."""
        waiting = self._waiting.get(placement, {})
        still = {item for item, at in waiting.items() if item not in settled or at != {mailbox}}
        # With the last that waited, what was held of a placement is settled too.
        hold = None if waiting and not still else self._holds.get(placement)
        judged = self._judge(placement, still | items, hold)
        stays = judged.held | self._uncharged(placement, judged)
        kept = frozenset(each for each in items if member(each) in stays)
        return Kept(placement, kept, judged.book.hold, bool(stays) and not judged.held)

    def _judge(self, placement: ObjectRef, lost: set[ObjectRef], hold: Hold | None) -> Judged:
        """Decide what of *lost* may go, by the charges as they were last seen."""
        guards = self._of(placement)
        loss = Loss(
            self._uid(placement),
            frozenset(member(each) for each in lost),
            len(lost) + sum(1 for _ in self._route.items(placement)),
            dict(self._protected(placement.cluster, lost, guards)),
            OBJECTS_TEXT,
        )
        book = Book(self._book(placement).charges, hold)
        return judge(loss, rules_of(guards, OBJECTS, floor=False), book, "", self._now())

    def _book(self, placement: ObjectRef) -> Book:
        return book_of(self._placements.get(placement, {}).get("status"), BOOK)

    def _uncharged(self, placement: ObjectRef, judged: Judged) -> Members:
        """Return what has to be charged before it goes."""
        charges = judged.book.charges
        return charges[-1].members if charges != self._book(placement).charges else NOBODY

    def _hold(self, placement: ObjectRef, hold: Hold | None) -> None:
        if hold == self._holds.get(placement):
            return
        if hold is None:
            del self._holds[placement]
        else:
            self._holds[placement] = hold
        self._enqueue_status(placement)

    def _protected(
        self, cluster: ClusterName, items: Iterable[ObjectRef], guards: Iterable[Guard]
    ) -> Iterable[tuple[bytes, tuple[str, str]]]:
        for guard in guards:
            for each in guard.protections if guard.enforces else ():
                for item in items if each.kind == "Namespace" else ():
                    labels = self._route.candidates.at(cluster, item)
                    against = {"Delete"} if labels is None else {"Deselect", "Relabel"}
                    if item.group_resource != NAMESPACES or not each.against & against:
                        continue
                    if each.covers(item.name, None if labels is None else dict(labels)):
                        text = f"PlacementGuard {guard.name} protects Namespace {item.name}"
                        yield member(item), (guard.name, text)

    def _settled(self, mailbox: Mailbox, item: ObjectRef) -> None:
        """Take that a copy is wanted again, or gone; what is left may fit the budget now."""
        self._released.discard((mailbox, item))
        for placement, waiting in list(self._waiting.items()):
            at = waiting.get(item)
            if at is None or mailbox not in at:
                continue
            at.discard(mailbox)
            if not at:
                del waiting[item]
                self._evaluate([placement])
            if not waiting:
                self._free(placement)

    def _free(self, placement: ObjectRef) -> None:
        """Hold nothing of a placement any more."""
        self._mark_copies(self._waiting.pop(placement, {}))
        if self._holds.pop(placement, None) is not None:
            self._enqueue_status(placement)

    def _evaluate(self, placements: Iterable[ObjectRef]) -> None:
        for placement in list(placements):
            self._mark_copies(self._waiting.get(placement, {}))

    def _mark_copies(self, held: Mapping[ObjectRef, set[Mailbox]]) -> None:
        by_mailbox: dict[Mailbox, set[ObjectRef]] = {}
        for item, mailboxes in held.items():
            for mailbox in mailboxes:
                by_mailbox.setdefault(mailbox, set()).add(item)
        for mailbox in sorted(by_mailbox):
            self._mark(mailbox, by_mailbox[mailbox])

    def _uid(self, placement: ObjectRef) -> str:
        metadata = self._placements.get(placement, {}).get("metadata") or {}
        return str(metadata.get("uid", ""))

    # -- reporting ---------------------------------------------------------------------------

    def book(self, placement: ObjectRef) -> Book:
        """Return the part for objects as a placement is to have it, by what it has now.

        To be asked once all mailboxes of the placement were evaluated.
        """
        waiting = self._waiting.get(placement)
        if not waiting:
            return Book(self._book(placement).charges)
        return self._judge(placement, set(waiting), self._holds.get(placement)).book

    def start(self) -> None:
        """Begin to lead: whoever led meanwhile may have taken confirmations, and held more."""
        self._released.clear()
        for ref, placement in self._placements.items():
            if ref not in self._holds:
                self._adopt(ref, placement)

    def release(self, placement: ObjectRef, members: Members | None) -> None:
        """Let copies of *members* go: they are charged. None: a person has confirmed them all."""
        waiting = self._waiting.get(placement, {})
        going = [each for each in waiting if members is None or member(each) in members]
        self._released.update((mailbox, item) for item in going for mailbox in waiting[item])
        if len(going) == len(waiting):
            self._free(placement)
        else:
            self._mark_copies({item: waiting.pop(item) for item in going})


@dataclass(frozen=True, slots=True)
class ReleasePlan(Plan):
    """A plan after which copies of objects that a placement answers for may go.

    ``charged`` are those objects; None: all that wait, because a person has confirmed them.
    """

    releases: ObjectRef | None = field(default=None)
    charged: Members | None = field(default=None)


def taken(placement: Object, hold: Hold | None) -> ReleasePlan | None:
    """Return the plan that takes a person's confirmation of *hold*; None when there is none."""
    metadata = placement["metadata"]
    annotations = metadata.get("annotations") or {}
    if hold is None or annotations.get(CONFIRM) != hold.name:
        return None
    kept = {key: value for key, value in annotations.items() if key != CONFIRM}
    ref = ObjectRef.of(EDGE_PLACEMENTS.group_resource, placement)
    target = Target(EDGE_PLACEMENTS, metadata["name"], "", annotations[CLUSTER_ANNOTATION])
    obj = {**placement, "metadata": {**metadata, "annotations": kept}}
    return ReleasePlan([Update(target, obj, "RemovalConfirmed")], releases=ref)


def newly_charged(status: Object, book: Book) -> Members | None:
    """Return what a book charges that a status does not; None for nothing."""
    known = book_of(status, BOOK).charges
    found = [each.members for each in book.charges if each not in known]
    return NOBODY.union(*found) if found else None


class ReleasingExecutor(Executor):
    """Lets copies go when, and only when, the book that lets them go has been written."""

    def __init__(
        self,
        client: Client,
        controller: str,
        release: Callable[[ObjectRef, Members | None], None],
        *,
        metrics: RuntimeMetrics,
        announce: Announce | None,
        dry_run: bool = False,
    ) -> None:
        super().__init__(client, controller, metrics=metrics, dry_run=dry_run, announce=announce)
        self._release = release
        self._acts = not dry_run

    async def execute(self, plan: Plan) -> list[Outcome]:
        outcomes = await super().execute(plan)
        if isinstance(plan, ReleasePlan) and plan.releases is not None and self._acts:
            self._release(plan.releases, plan.charged)
        return outcomes
