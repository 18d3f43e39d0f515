"""Carries plans out and tells of slices in the words the first edge scheduler had."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from skerry.api.edge import edge_placement_ref, placement_of_slice, slice_ref
from skerry.api.refs import ObjectRef
from skerry.controllers.edge_scheduler.decide import SlicePlan
from skerry.controllers.edge_scheduler.keys import NAME, Cause, Waking
from skerry.controllers.edge_scheduler.running import Running
from skerry.controllers.edge_scheduler.written import WrittenSlices
from skerry.kit.log import Logger
from skerry.logic.fleet.placement.slices import digest_of
from skerry.logic.machinery.plan import Create, Plan, Update
from skerry.runtime.client import Client
from skerry.runtime.execute import Executor, Outcome
from skerry.runtime.metrics import RuntimeMetrics

_log = Logger(NAME)
_KEYS = {
    "Location": ("locationWorkspace", "location"),
    "SyncTarget": ("syncTargetWorkspace", "syncTarget"),
    "EdgePlacement": ("workspace", "edgePlacement"),
    "Workspace": ("parentWorkspace", "workspace"),
    "SinglePlacementSlice": ("workspace", "slice"),
    "LocationGrant": ("locationWorkspace", "locationGrant"),
    "LocationConsent": ("locationWorkspace", "locationConsent"),
}


class SliceExecutor(Executor):
    """An executor that remembers the slices it wrote."""

    def __init__(
        self,
        client: Client,
        written: WrittenSlices,
        waking: Waking,
        running: Running,
        *,
        metrics: RuntimeMetrics,
        dry_run: bool = False,
    ) -> None:
        super().__init__(client, NAME, metrics=metrics, dry_run=dry_run)
        # We write nothing twice and nothing unknown, so the server need not look for it; and we
        # know what we sent, so it need not send it back.
        self._options = replace(self._options, field_validation="Ignore", metadata_only=True)
        self._written = written
        self._waking = waking
        self._running = running
        self._remembers = not dry_run

    async def execute(self, plan: Plan) -> list[Outcome]:
        if not isinstance(plan, SlicePlan) or plan.ref is None or not self._remembers:
            return await self._written_by(plan)
        # Until everything is written nobody knows which of it is.
        self._running.forget(plan.ref)
        outcomes = await self._written_by(plan)
        self._running.note(plan.ref, plan.destinations)
        return outcomes

    async def _written_by(self, plan: Plan) -> list[Outcome]:
        digests: dict[ObjectRef, str] = {}
        for action in plan:
            if isinstance(action, Create | Update) and self._remembers:
                ref = slice_ref(action.target.cluster, action.target.name)
                digests[ref] = digest_of(action.object["destinations"])
                self._written.expect(ref, digests[ref])
        try:
            outcomes = await super().execute(plan)
        finally:
            for ref in digests:
                self._written.expect_nothing(ref)
        for outcome in outcomes:
            self._tell(outcome, digests)
        return outcomes

    def _tell(self, outcome: Outcome, digests: Mapping[ObjectRef, str]) -> None:
        action, answer = outcome.action, outcome.object
        if answer is None or not isinstance(action, Create | Update):
            return
        digest = digests.get(slice_ref(action.target.cluster, action.target.name))
        if digest is not None:
            self._written.note(answer, digest)
        cluster = action.target.cluster
        cause = self._waking.cause(edge_placement_ref(cluster, placement_of_slice(answer)))
        _log.info(
            f"{outcome.result} SinglePlacementSlice",
            v=2,
            triggeringKind=cause.kind,
            key=cause.ref.qualified_name,
            **_named(cause),
            workloadWorkspace=cluster,
            singlePlacementSlice=action.target.name,
            resourceVersion=answer["metadata"].get("resourceVersion", ""),
        )


def _named(cause: Cause) -> dict[str, str]:
    workspace, name = _KEYS[cause.kind]
    return {workspace: cause.ref.cluster, name: cause.ref.name}
