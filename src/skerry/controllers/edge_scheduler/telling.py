"""Carries plans out and tells of slices in the words the first edge scheduler had."""

from __future__ import annotations

from dataclasses import replace

from skerry.controllers.edge_scheduler.keys import NAME, Cause, Waking
from skerry.controllers.edge_scheduler.written import WrittenSlices
from skerry.kit.log import Logger
from skerry.logic.placement.records import Place
from skerry.logic.placement.slices import placement_name
from skerry.logic.plan import Create, Plan, Update
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
}


class SliceExecutor(Executor):
    """An executor that remembers the slices it wrote."""

    def __init__(
        self,
        client: Client,
        written: WrittenSlices,
        waking: Waking,
        *,
        metrics: RuntimeMetrics,
        dry_run: bool = False,
    ) -> None:
        super().__init__(client, NAME, metrics=metrics, dry_run=dry_run)
        # We write nothing twice and nothing unknown, so the server need not look for it.
        self._options = replace(self._options, field_validation="Ignore")
        self._written = written
        self._waking = waking
        self._remembers = not dry_run

    async def execute(self, plan: Plan) -> list[Outcome]:
        places: list[Place] = []
        for action in plan:
            if isinstance(action, Create | Update) and self._remembers:
                places.append(Place(action.target.cluster, action.target.name))
                self._written.expect(places[-1], action.object["destinations"])
        try:
            outcomes = await super().execute(plan)
        finally:
            for place in places:
                self._written.expect_nothing(place)
        for outcome in outcomes:
            self._tell(outcome)
        return outcomes

    def _tell(self, outcome: Outcome) -> None:
        action, answer = outcome.action, outcome.object
        if answer is None or not isinstance(action, Create | Update):
            return
        if self._remembers:
            self._written.note(answer)
        cluster = action.target.cluster
        cause = self._waking.cause(Place(cluster, placement_name(answer)))
        _log.info(
            f"{outcome.result} SinglePlacementSlice",
            v=2,
            triggeringKind=cause.kind,
            key=str(cause.place),
            **_named(cause),
            workloadWorkspace=cluster,
            singlePlacementSlice=action.target.name,
            resourceVersion=answer["metadata"].get("resourceVersion", ""),
        )


def _named(cause: Cause) -> dict[str, str]:
    workspace, name = _KEYS[cause.kind]
    return {workspace: cause.place.cluster, name: cause.place.name}
