"""The control loop: observe, decide, execute; again when something changed or failed.

A key is taken from the queue, ``observe`` reads what matters about it from caches (None: nothing
to do), ``decide`` turns that into a plan without doing anything, the executor carries it out.
Failure means another try after a back-off that doubles per key; ``Terminal`` means none until the
object changes. A broken invariant is a bug and stops the process.

This is the one place in the runtime that catches everything: a mistake in one reconciliation must
not end the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from skerry.api.errors import Conflict
from skerry.api.refs import ObjectRef
from skerry.kit.ids import IdSource
from skerry.kit.invariant import InvariantError
from skerry.kit.log import Logger
from skerry.logic.machinery.plan import Plan, Terminal
from skerry.runtime.execute import Executor
from skerry.runtime.informer import Informer
from skerry.runtime.metrics import RuntimeMetrics
from skerry.runtime.workqueue import WorkQueue

K = TypeVar("K", bound=Hashable)
O = TypeVar("O")  # noqa: E741 - what was observed

# Enough to hide one round trip each; the loop is one thread whatever the number.
WORKERS = 4
_RESULTS = ("success", "error", "terminal")


@dataclass(frozen=True, slots=True)
class Reconciler(Generic[K, O]):
    """The three steps of one controller."""

    observe: Callable[[K], Awaitable[O | None]]
    decide: Callable[[O], Plan]
    executor: Executor


class Controller(Generic[K, O]):
    """Runs one reconciler over one queue."""

    def __init__(
        self,
        name: str,
        reconciler: Reconciler[K, O],
        queue: WorkQueue[K],
        *,
        ids: IdSource,
        informers: Sequence[Informer] = (),
        workers: int = WORKERS,
        metrics: RuntimeMetrics | None = None,
    ) -> None:
        """No key is taken before every one of *informers* is synced."""
        self.name = name
        self.queue = queue
        self._reconciler = reconciler
        self._ids = ids
        self._informers = informers
        self._workers = workers
        reconciled = (metrics or RuntimeMetrics()).reconciled
        self._counts = {result: reconciled.labels(name, result) for result in _RESULTS}
        self._log = Logger(name)

    async def run(self) -> None:
        """Work until cancelled."""
        for informer in self._informers:
            await informer.wait_synced()
        self._log.info("starting workers", v=2, workers=self._workers)
        async with asyncio.TaskGroup() as tasks:
            for _ in range(self._workers):
                tasks.create_task(self._work())

    async def _work(self) -> None:
        while True:
            key = await self.queue.get()
            try:
                await self._reconcile(key)
            finally:
                self.queue.done(key)

    async def _reconcile(self, key: K) -> None:
        try:
            plan = await self._attempt(key)
        except InvariantError:
            raise
        except Terminal as error:
            self.queue.forget(key)
            self._count("terminal")
            self._about(key).error("giving up until the object changes", error=error)
        except Exception as error:  # noqa: BLE001 - the loop's own promise, see above
            attempt = self.queue.failures(key) + 1
            delay = self.queue.retry(key)
            self._count("error")
            log = self._about(key)
            # Losing a race is ordinary; only a person's concern if it goes on.
            log_at = log.debug if isinstance(error, Conflict) and attempt < 5 else log.warning
            log_at("reconcile failed", attempt=attempt, seconds=round(delay, 3), error=error)
        else:
            self.queue.forget(key)
            self._count("success")
            if plan is not None and plan.requeue_after_seconds is not None:
                self.queue.add_after(key, plan.requeue_after_seconds)

    async def _attempt(self, key: K) -> Plan | None:
        observed = await self._reconciler.observe(key)
        if observed is None:
            return None
        plan = self._reconciler.decide(observed)
        await self._reconciler.executor.execute(plan)
        return plan

    def _about(self, key: K) -> Logger:
        """Return the log of one reconcile; most have nothing to say, and need none."""
        # The type is the controller's own; the workspace is what tells namesakes apart.
        text = key.qualified_name if isinstance(key, ObjectRef) else str(key)
        return self._log.bind(key=text, reconcile_id=self._ids.suffix(8))

    def _count(self, result: str) -> None:
        self._counts[result].inc()
