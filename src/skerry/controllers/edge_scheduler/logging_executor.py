"""Carries out the plans for slices, and logs them in the words the first edge scheduler had."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from skerry.api.errors import ApiError
from skerry.api.refs import ObjectRef
from skerry.controllers.edge_scheduler.decide import SlicePlan
from skerry.controllers.edge_scheduler.history import ended
from skerry.controllers.edge_scheduler.history_writer import HistoryWriter
from skerry.controllers.edge_scheduler.memory import PlacementMemory
from skerry.controllers.edge_scheduler.observe import NAME
from skerry.controllers.edge_scheduler.observed import Cause, Gone
from skerry.kit.log import Logger
from skerry.logic.machinery.plan import Action, Create, Plan, Update
from skerry.runtime.client import Client
from skerry.runtime.execute import Announce, Executor, Outcome, WriteRecorder
from skerry.runtime.metrics import RuntimeMetrics
from skerry.runtime.transport import TransportError

_log = Logger(NAME)
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


class LoggingExecutor(Executor):
    """An executor of ``SlicePlan``: receivers before givers, and a memory of what is found."""

    def __init__(
        self,
        client: Client,
        overlay: WriteRecorder,
        memory: PlacementMemory,
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
        self._first = Executor(client, NAME, metrics=metrics, dry_run=dry_run, announce=announce)
        super().__init__(client, NAME, metrics=metrics, dry_run=dry_run, overlay=overlay)
        # We write nothing twice and nothing unknown, so the server need not look for it; and we
        # know what we sent, so it need not send it back.
        self._options = replace(self._options, field_validation="Ignore", metadata_only=True)
        self._memory = memory
        self._reconciling = reconciling
        self._history = history
        self._writes = not dry_run

    async def _write_before(self, ref: ObjectRef, plan: SlicePlan) -> None:
        """Write what has to be there before slices change: records, then guards and rollouts.

        The finalizer comes before the records: they are known by their version for younger than
        the placement as long as no slice has followed.
        """
        before = plan.before
        self._memory.guards.expect_finalizer(ref, expected=plan.finalizes and self._writes)
        if plan.finalizes:
            await self._finalize(ref, before[0])
            before = before[1:]
        if plan.story is not None and self._history is not None:
            await self._history.write(ref, plan.story)
        written = await self._first.execute(Plan(before, plan.announcements))
        if self._memory.rollouts is not None:
            self._memory.rollouts.note(ref, written)

    async def _finalize(self, ref: ObjectRef, finalizer: Action) -> None:
        try:
            await self._first.execute(Plan((finalizer,)))
        except (ApiError, TransportError):
            self._memory.guards.expect_finalizer(ref, expected=False)
            raise

    async def execute(self, plan: Plan) -> list[Outcome]:
        if not isinstance(plan, SlicePlan) or plan.observed is None:
            return await super().execute(plan)
        observed = plan.observed
        if isinstance(observed, Gone):
            if self._history is not None:
                known = self._memory.result(observed.ref)
                await self._history.end(
                    observed.ref, ended(observed, known.destinations if known is not None else 0)
                )
            await self._first.execute(Plan(plan.before))
            self._memory.forget(observed.ref)
            return []
        self._reconciling(observed.ref)
        self._memory.found(observed)
        if observed.tracked and self._writes:
            # Until everything is written nobody knows which of it is.
            self._memory.running.forget(observed.ref)
        if plan.examine:
            self._memory.guards.examine(observed.ref)
        await self._write_before(observed.ref, plan)
        first, rest = plan.actions[: plan.receivers], plan.actions[plan.receivers :]
        outcomes = await super().execute(Plan(first, unordered=True))
        outcomes += await super().execute(Plan(rest))
        if self._history is not None:
            self._history.settled(observed.ref, plan.seen)
        if observed.tracked and self._writes:
            self._memory.running.note(observed.ref, observed.destinations)
        self._memory.guards.settle(observed)
        for outcome in outcomes:
            _log_slice(outcome, observed.causes.newest or Cause("EdgePlacement", observed.ref))
        if not plan.undecided:
            self._memory.causes.discharge(observed.ref, observed.causes)
        return outcomes


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
