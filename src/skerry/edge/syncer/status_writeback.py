"""The controller that tells the mailbox how its objects fare: statuses and marks.

Bursts are gathered (``return_seconds``) so that they become one write.

Reads the mailbox's copy, the edge's object, the record and the last outcome of one object; writes
annotations and the status of the copy, never its content. It keeps no memory of what it wrote: what
the copy shows is compared each time, so a write that was lost is made again, and one that arrived
although its answer did not is found to be there.

The edge's object counts only where the record says that it is ours. One of the same name that was
there before us has a status too, which is not that of the copy.

Order of events does not matter. A status that is older than the edge's newest is written over when
the watch shows the newer one, which enqueues the key again.
"""

from __future__ import annotations

from skerry.api.edge import CAUSE, EDGE_FIELD_MANAGER
from skerry.api.errors import ApiError, Conflict, Forbidden, Invalid, NotFound
from skerry.api.refs import ObjectRef
from skerry.edge.syncer.state import SyncerState
from skerry.kit.log import Logger
from skerry.logic.fleet.syncing.status_writeback import MARKED, RETURNED, WritebackObserved
from skerry.logic.machinery.plan import Patch, Plan, target_text
from skerry.runtime.execute import Executor, Outcome

_log = Logger("syncer-status")


class WritebackObserver:
    """Reads one object on both sides."""

    def __init__(self, state: SyncerState) -> None:
        self._s = state

    async def observe(self, ref: ObjectRef) -> WritebackObserved | None:
        """Return what is to be compared; None for what the mailbox does not send down.

        Asks no server. The watch of the edge may lag: then the status is written with the next
        event. Looking for causes is begun here, for what is not well, and ended.
        """
        s = self._s
        copy = s.mailbox.get(ref)
        gvr = s.mailbox.followed(ref.group_resource)
        if copy is None or gvr is None or not s.config.scope.covers(ref):
            s.causes.forget(ref)
            return None
        live, record = s.edge_cache.get(gvr, ref), s.records.placed(ref)
        ours = live is not None and record is not None and record.is_of(live)
        return WritebackObserved(
            ref=ref,
            gvr=gvr,
            copy=copy,
            live=live,
            record=record,
            outcome=s.outcomes.get(ref),
            # Until the hub's types are known, as if it were apart, as nearly every status is.
            has_status=s.hub_types.has_status(gvr, unknown=True),
            cause=s.causes.of(ref, copy, live if ours else None),
        )


class WritebackExecutor(Executor):
    """Writes in the mailbox, and counts what it wrote.

    It does not raise for what another try would not mend; what it raises is retried by the queue.
    A hub of an earlier version refuses marks with a cause: then none is written for some minutes,
    and the next try is made without.
    """

    def __init__(self, state: SyncerState, *, dry_run: bool = False) -> None:
        super().__init__(
            state.hub, EDGE_FIELD_MANAGER, metrics=state.metrics.runtime, dry_run=dry_run
        )
        self._returned = state.metrics.returned
        self._causes = state.causes
        self._dry_run = dry_run

    async def execute(self, plan: Plan) -> list[Outcome]:
        try:
            outcomes = await super().execute(plan)
        except (NotFound, Conflict, Invalid) as error:
            # It went or changed meanwhile, which an event tells; or the hub rejects the status.
            _log.debug("status not returned", key=_about(plan), error=error.message)
            return []
        except Forbidden as error:
            if _has_cause(plan):
                self._causes.refused(error.message)
            raise
        except ApiError as error:
            _log.warning("status not returned", key=_about(plan), error=error.message)
            raise
        for outcome in () if self._dry_run else outcomes:
            what = "status" if outcome.action.reason == RETURNED else "mark"
            self._returned.labels(what).inc()
        return outcomes


def _has_cause(plan: Plan) -> bool:
    """Tell whether a plan writes a cause as a mark of its own, not together with a status."""
    return any(
        CAUSE in action.patch["metadata"]["annotations"]
        for action in plan
        if isinstance(action, Patch) and action.reason == MARKED
    )


def _about(plan: Plan) -> str:
    return next((target_text(action) for action in plan), "")
