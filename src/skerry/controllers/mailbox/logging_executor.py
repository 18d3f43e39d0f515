"""Carries plans out and tells of mailboxes in the words the first mailbox controller had.

Text and keys are constant, so what searches for those lines finds them. Only what changed something
has one: what existed already, or was gone, has none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from weakref import WeakKeyDictionary

from skerry.api.kcp.resources import API_BINDINGS, WORKSPACES
from skerry.controllers.mailbox.events import NAME
from skerry.kit.log import Logger
from skerry.logic.machinery.plan import Create, Delete, Plan
from skerry.runtime.client import Client
from skerry.runtime.execute import Executor, Outcome
from skerry.runtime.metrics import RuntimeMetrics

_log = Logger()


class MailboxExecutor(Executor):
    """An executor whose deeds can be followed in the log."""

    def __init__(
        self,
        client: Client,
        workspace_of: Callable[[str], str],
        *,
        metrics: RuntimeMetrics,
        dry_run: bool = False,
    ) -> None:
        """*workspace_of* names the mailbox whose content is a logical cluster."""
        super().__init__(client, NAME, metrics=metrics, dry_run=dry_run)
        self._workspace_of = workspace_of
        self._workers: WeakKeyDictionary[asyncio.Task[object], int] = WeakKeyDictionary()

    async def execute(self, plan: Plan) -> list[Outcome]:
        """Carry out a plan and log what was done; a plan that fails half way has no line of it."""
        outcomes = await super().execute(plan)
        for outcome in outcomes:
            self._log_outcome(outcome)
        return outcomes

    def _log_outcome(self, outcome: Outcome) -> None:
        action = outcome.action
        worker = self._worker()
        if isinstance(action, Delete):
            if action.target.gvr == WORKSPACES and outcome.result == "deleted":
                _log.info(
                    "Deleted unwanted workspace", v=2, worker=worker, mbwsName=action.target.name
                )
        elif not isinstance(action, Create) or outcome.object is None:
            return
        elif action.target.gvr == WORKSPACES:
            _log.info("Created missing workspace", v=2, worker=worker, mbwsName=action.target.name)
        elif action.target.gvr == API_BINDINGS:
            _log.info(
                "Created APIBinding",
                v=2,
                worker=worker,
                mbwsName=self._workspace_of(action.target.cluster),
                mbwsCluster=action.target.cluster,
                bindingName=action.target.name,
                resourceVersion=outcome.object["metadata"].get("resourceVersion", ""),
            )

    def _worker(self) -> int:
        """Return a small number for the task that works; the first has 0."""
        task = asyncio.current_task()
        if task is None:
            return 0
        return self._workers.setdefault(task, len(self._workers))
