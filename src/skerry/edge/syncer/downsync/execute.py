"""Plans for objects that go down, carried out at the edge, and what came of them.

What the edge refuses is no failure of the syncer but a state of the object: it is said in the
object's outcome, and the object is tried again later while all others go on.

A plan begins with what is to be recorded, and the journal is flushed before the edge is asked. So
whatever is at the edge because of us is in the journal, also when the process dies before the
answer: ownership is known from then on, and a deletion never rests on a guess. A write whose answer
was lost is marked (``edge_writes.lost``), because the cache may show either state for a while.

Refusals come in four sorts. A field that cannot change is final for this content: it is remembered
by digest, and ``difference`` decides what replaces the object. Other invalid content may become
valid, by another definition or quota, and is tried again. A missing namespace or kind enqueues what
would bring it. A missing right is collected, for one sentence about all of them.
"""

from __future__ import annotations

from skerry.api.edge import EDGE_FIELD_MANAGER
from skerry.api.errors import ApiError, Invalid, NotFound
from skerry.api.refs import ObjectRef, namespace_ref
from skerry.edge.syncer.state import SyncerState
from skerry.kit.invariant import InvariantError
from skerry.kit.log import Logger
from skerry.logic.fleet.syncing.difference import DownsyncPlan
from skerry.logic.fleet.syncing.outcome import ORPHANED, SyncOutcome, refused
from skerry.logic.machinery.edges.scope import NAMESPACES
from skerry.logic.machinery.plan import Apply, Delete, Plan, Record
from skerry.runtime.execute import Executor, Outcome
from skerry.runtime.transport import TransportError

# How servers say that a field cannot change; there is no reason of its own for it.
_IMMUTABLE = ("immutable", "may not change fields", "other than", "may not be changed")

# A kind that is on its way itself, a namespace that comes: reported when that takes long.
_WAITING_SECONDS = 5.0

_log = Logger("syncer-downsync")


class NotYet(Exception):
    """The object is not as wanted; to be tried again later."""


class DownsyncExecutor(Executor):
    """Carries out plans at the edge; raises ``NotYet`` when another try is due."""

    def __init__(self, state: SyncerState, *, dry_run: bool = False) -> None:
        super().__init__(
            state.edge,
            EDGE_FIELD_MANAGER,
            metrics=state.metrics.runtime,
            dry_run=dry_run,
            journal=state.records,
        )
        self._s = state
        self._dry_run = dry_run

    async def execute(self, plan: Plan) -> list[Outcome]:
        if not isinstance(plan, DownsyncPlan):
            raise InvariantError(f"not a plan of difference: {plan}")
        if self._dry_run:
            return await super().execute(plan)
        self._count_deletion(plan)
        if plan and not isinstance(plan.actions[0], Record):
            # Nothing new to record; but what a full disk refused before must be tried again.
            await self._s.records.flush()
        try:
            outcomes = await super().execute(plan)
        except Invalid as error:
            self._invalid(plan, error)
            return []
        except ApiError as error:
            self._failed(plan.ref, refused(error, "patch", plan.ref), "patch")
            if isinstance(error, NotFound):
                self._missing(plan.ref)
            raise NotYet(error.message) from error
        except TransportError as error:
            self._s.edge_writes.lost(plan.ref)
            raise NotYet(str(error)) from error
        self._settle(plan, outcomes)
        return outcomes

    def _count_deletion(self, plan: DownsyncPlan) -> None:
        """Keep the budget of deletions up, before anything is deleted: it counts intentions."""
        if plan.deletes:
            self._s.budget.propose((plan.ref,))
        elif plan.outcome == ORPHANED:
            self._s.budget.release(plan.ref)
        else:
            self._s.budget.withdraw(plan.ref)

    def _settle(self, plan: DownsyncPlan, outcomes: list[Outcome]) -> None:
        """Take note of what was done, and of how things stand now."""
        s, ref = self._s, plan.ref
        for outcome in outcomes:
            self._note(plan, outcome)
        if plan.retry:
            self._failed(ref, plan.outcome, "get")
            raise NotYet(plan.outcome.message)
        if plan.outcome.reason == "KindUnknown":
            self._failed(ref, plan.outcome)
            s.edge_types.suspect()
            return
        arrived = plan.outcome.state == "Applied" != s.outcomes.get(ref).state
        s.outcomes.set(ref, plan.outcome)
        s.back.add_after(ref, s.settings.return_seconds)
        if arrived and ref.group_resource == NAMESPACES:
            for waiting in s.outcomes.waiting_in(ref.name):
                s.down.add(waiting)

    def _note(self, plan: DownsyncPlan, outcome: Outcome) -> None:
        if isinstance(outcome.action, Record):
            return
        self._s.edge_writes.settled(plan.ref)
        if isinstance(outcome.action, Delete):
            self._s.budget.deleted(plan.ref)
        elif outcome.object is not None and plan.record is not None:
            self._s.records.set_placed(plan.ref, plan.record.after(outcome.object))
            self._s.edge_writes.answered(plan.ref, outcome.object)

    def _invalid(self, plan: DownsyncPlan, error: Invalid) -> None:
        """Take a refusal of the content: final for an immutable field, else worth another try."""
        immutable = any(word in error.message for word in _IMMUTABLE)
        applies = any(isinstance(action, Apply) for action in plan)
        if not immutable or plan.record is None or not applies:
            self._failed(plan.ref, SyncOutcome("Failed", "Rejected", error.message))
            raise NotYet(error.message) from error
        self._s.edge_writes.refuse(plan.ref, plan.record.desired.digest)
        self._failed(plan.ref, SyncOutcome("Failed", "ImmutableField", error.message))
        self._s.down.add(plan.ref)

    def _missing(self, ref: ObjectRef) -> None:
        """Look again for what an object lacks: its namespace may have gone, or its kind."""
        if ref.namespace:
            self._s.down.add(namespace_ref(ref.namespace))
        self._s.edge_types.suspect()

    def _failed(self, ref: ObjectRef, outcome: SyncOutcome, verb: str = "") -> None:
        s = self._s
        if s.outcomes.get(ref) != outcome:
            _log.warning(
                "object not applied", key=ref.text, reason=outcome.reason, error=outcome.message
            )
        s.outcomes.set(ref, outcome)
        waits = outcome.state == "Waiting"
        s.back.add_after(ref, _WAITING_SECONDS if waits else s.settings.return_seconds)
        if outcome.reason == "EdgeForbidden":
            s.rights.miss(ref, verb)
