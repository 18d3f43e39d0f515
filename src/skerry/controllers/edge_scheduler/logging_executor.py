"""Carries out the plans for slices, and logs them in the words the first edge scheduler had.

What is remembered of a placement changes here and not in ``observe``, because an observation may
come to nothing: what was found is taken when its plan begins, what slices hold when it has ended. A
plan that fails in between leaves the causes as they are, so the log and the record of the next try
name the same events; and of a placement that some Location refuses it is unknown then what runs, so
that the next observation reads it from the server.

Writes go together where that makes something simpler to think about, and one by one otherwise:

    record and up to four slices    one transaction: no record without its slices
    finalizer of guards             in the same one, in front
    book or Rollout status as well  those between, so records are sent first and slices last
    more than four slices           side by side, after the records: one request would be too large
    the server takes no batches     one by one, in the order of ``_carry_out``

An answer that is lost fails the plan. The overlay then shows what the watch shows, and writes are
conditional on a version or on the name being free: the next plan is refused at worst, once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, TypeGuard

from skerry.api.errors import ApiError
from skerry.api.refs import ObjectRef
from skerry.controllers.edge_scheduler.decide import SlicePlan
from skerry.controllers.edge_scheduler.history import ended
from skerry.controllers.edge_scheduler.history_writer import Draft, HistoryWriter
from skerry.controllers.edge_scheduler.observe import NAME
from skerry.controllers.edge_scheduler.observed import Cause, Gone, Kept
from skerry.controllers.edge_scheduler.placement_cache import PlacementCache
from skerry.kit.log import Logger
from skerry.logic.machinery.plan import Action, Create, Plan, Update
from skerry.runtime.atomic import AtomicWriter
from skerry.runtime.client import Client
from skerry.runtime.execute import Announce, Executor, Outcome, WriteRecorder
from skerry.runtime.metrics import RuntimeMetrics
from skerry.runtime.together import Refused, Step, execute_together
from skerry.runtime.transport import TransportError

_log = Logger(NAME)
# Slices that are written with what explains them; more of them are large, and go side by side.
_MAX_SLICES_TOGETHER = 4
# As many writes as a server takes together.
_MAX_TOGETHER = 32
# How the log calls where a cause is and what it is named; of every kind that a Cause may have.
_KEYS = {
    "Location": ("locationWorkspace", "location"),
    "SyncTarget": ("syncTargetWorkspace", "syncTarget"),
    "EdgePlacement": ("workspace", "edgePlacement"),
    "Workspace": ("parentWorkspace", "workspace"),
    "SinglePlacementSlice": ("workspace", "slice"),
    "LocationGrant": ("locationWorkspace", "locationGrant"),
    "LocationConsent": ("locationWorkspace", "locationConsent"),
    "PlacementGuard": ("guardWorkspace", "placementGuard"),
    "Rollout": ("workspace", "rollout"),
    "PlacementRevision": ("workspace", "placementRevision"),
    "RolloutApproval": ("workspace", "rolloutApproval"),
}


class _Done(NamedTuple):
    """What of a plan was written at once: what precedes slices (``first``), and slices."""

    first: bool = False
    slices: tuple[Outcome, ...] = ()


_NOTHING_DONE = _Done()


class LoggingExecutor(Executor):
    """An executor of ``SlicePlan``: receivers before givers, and a cache of what is found."""

    def __init__(
        self,
        client: Client,
        overlay: WriteRecorder,
        cache: PlacementCache,
        reconciling: Callable[[ObjectRef], None],
        history: HistoryWriter | None = None,
        *,
        metrics: RuntimeMetrics,
        dry_run: bool = False,
        announce: Announce | None = None,
    ) -> None:
        """*reconciling* hears of each placement that a plan is for, before it is carried out.

        *history* records what a plan decides, before it is carried out.
        """
        # What is written before slices is no slice, and nothing for their overlay.
        self._first = Executor(
            client,
            NAME,
            metrics=metrics,
            dry_run=dry_run,
            announce=announce,
            overlay=cache.rollouts.writes if cache.rollouts is not None else None,
        )
        super().__init__(client, NAME, metrics=metrics, dry_run=dry_run, overlay=overlay)
        # We write nothing twice and nothing unknown, so the server need not look for it; and we
        # know what we sent, so it need not send it back.
        self._options = replace(self._options, field_validation="Ignore", metadata_only=True)
        self._cache = cache
        self._reconciling = reconciling
        self._history = history
        self._atomic = AtomicWriter(client)
        self._writes = not dry_run

    async def _carry_out(self, ref: ObjectRef, plan: SlicePlan) -> list[Outcome]:
        """Write what has to be there before slices change, then slices.

        First the finalizer of guards: records are known by their version for younger than the
        placement as long as no slice has followed. Then records, guards and rollouts. As much as
        can be is written in one transaction.
        """
        self._cache.guards.expect_finalizer(ref, expected=plan.finalizes and self._writes)
        draft = None
        if plan.story is not None and self._history is not None:
            draft = await self._history.draft(ref, plan.story)
        try:
            done = await self._together(ref, plan, draft)
            if plan.finalizes and not done.first:
                await self._first.execute(Plan(plan.before[:1]))
        except (ApiError, TransportError):
            self._cache.guards.expect_finalizer(ref, expected=False)
            raise
        if draft is not None and self._history is not None and not done.first:
            await self._history.send(draft)
        before = plan.before[1:] if plan.finalizes else plan.before
        await self._first.execute(Plan(before, plan.announcements))
        first, rest = plan.actions[: plan.receivers], plan.actions[plan.receivers :]
        outcomes = done.slices or await super().execute(Plan(first, unordered=True))
        return [*outcomes, *await super().execute(Plan(rest))]

    async def _together(self, ref: ObjectRef, plan: SlicePlan, draft: Draft | None) -> _Done:
        """Write finalizer, records and slices at once, if the server takes them so.

        A single write is left to the usual way. A record that is refused refuses nothing else:
        nothing was written then, and slices follow one by one, with or without it.
        """
        if not self._writes or self._history is None:
            return _NOTHING_DONE
        finalizers = plan.before[:1] if plan.finalizes else ()
        steps = [Step(self._first, each, quiet=True) for each in finalizers if _is_write(each)]
        creations = draft.creations if draft is not None else ()
        steps += [Step(self._history.executor, each, quiet=True) for each in creations]
        slices = [each for each in plan.actions[: plan.receivers] if _is_write(each)]
        alone = len(plan.before) > len(finalizers) or len(slices) > _MAX_SLICES_TOGETHER
        preceding = len(steps)
        if not alone:
            steps += [Step(self, each) for each in slices]
        if not preceding or not 1 < len(steps) <= _MAX_TOGETHER:
            return _NOTHING_DONE
        found = await execute_together(self._atomic, ref.cluster, steps)
        if isinstance(found, Refused):
            is_record = found.step is not None and len(finalizers) <= found.step < preceding
            if found.error is not None and not is_record:
                raise found.error
            return _NOTHING_DONE  # what a refused record is good for is found out step by step
        if draft is not None:
            self._history.sent(draft, found[len(finalizers) : preceding])
        return _Done(first=True, slices=tuple(found[preceding:]))

    async def _end(self, observed: Gone, plan: SlicePlan) -> None:
        """Record the end of a placement, write what it asks for, and forget it."""
        if self._history is not None:
            known = self._cache.result(observed.ref)
            await self._history.end(
                observed.ref, ended(observed, known.destinations if known is not None else 0)
            )
        await self._first.execute(Plan(plan.before))
        self._cache.forget(observed.ref)

    async def execute(self, plan: Plan) -> list[Outcome]:
        """Carry out the plan for one placement; raises what failed first, and is tried again."""
        if not isinstance(plan, SlicePlan) or plan.observed is None:
            return await super().execute(plan)
        observed = plan.observed
        if isinstance(observed, Gone):
            await self._end(observed, plan)
            return []
        if isinstance(observed, Kept):
            self._cache.pass_over(observed.ref)
            return []
        self._reconciling(observed.ref)
        self._cache.found(observed)
        if observed.tracked and self._writes:
            # Until everything is written nobody knows which of it is.
            self._cache.running.forget(observed.ref)
        if plan.examine:
            self._cache.guards.examine(observed.ref)
        outcomes = await self._carry_out(observed.ref, plan)
        if self._history is not None:
            self._history.settled(observed.ref, plan.seen)
        if observed.tracked and self._writes:
            self._cache.running.note(observed.ref, observed.destinations)
        self._cache.guards.settle(observed)
        for outcome in outcomes:
            _log_slice(outcome, observed.causes.newest or Cause("EdgePlacement", observed.ref))
        if not plan.undecided:
            self._cache.causes.discharge(observed.ref, observed.causes)
        return outcomes


def _is_write(action: Action) -> TypeGuard[Create | Update]:
    return isinstance(action, Create | Update)


def _log_slice(outcome: Outcome, cause: Cause) -> None:
    action, answer = outcome.action, outcome.object
    if answer is None or not isinstance(action, Create | Update):
        return
    workspace, name = _KEYS[cause.kind]
    _log.info(
        f"{outcome.result} SinglePlacementSlice",
        v=2,
        triggeringKind=cause.kind,
        key=cause.ref.qualified_name,
        **{workspace: cause.ref.cluster, name: cause.ref.name},
        workloadWorkspace=action.target.cluster,
        singlePlacementSlice=action.target.name,
        resourceVersion=answer["metadata"].get("resourceVersion", ""),
    )
