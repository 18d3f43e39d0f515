"""Wiring: every autoscaler is looked at four times a minute, and when its wishes change."""

from __future__ import annotations

from collections.abc import Callable

from skerry.api.errors import ApiError, Conflict
from skerry.api.objects import Object
from skerry.controllers.workload.autoscaler.decide import AUTOSCALERS, Decision, decide, refused
from skerry.controllers.workload.autoscaler.observe import IN_NAMESPACE, Observed, Observer
from skerry.controllers.workload.kinds import PODS
from skerry.logic.machinery.plan import Plan
from skerry.logic.workloads.scaling.bounds import History
from skerry.runtime.context import ControllerContext
from skerry.runtime.controller import Controller, Reconciler
from skerry.runtime.execute import Executor, Outcome
from skerry.runtime.index import Key, by_namespace, key_of
from skerry.runtime.informer import Handler
from skerry.runtime.workqueue import WorkQueue

NAME = "horizontal-pod-autoscaler"


class _HistoryExecutor(Executor):
    """Carries decisions out, says where a workload could not be scaled, and keeps histories."""

    def __init__(self, context: ControllerContext) -> None:
        announce = context.recorder.announce if context.recorder else None
        super().__init__(
            context.client,
            NAME,
            metrics=context.metrics,
            dry_run=context.dry_run,
            announce=announce,
        )
        self._clock = context.client.clock
        self.histories: dict[Key, History] = {}
        self._decided: dict[int, tuple[Key, Decision]] = {}

    def decide(self, observed: Observed) -> Plan:
        decision = decide(observed, self._clock.now())
        key = key_of(observed.autoscaler)
        self.histories[key] = decision.history
        self._decided[id(decision.plan)] = key, decision
        return decision.plan

    async def execute(self, plan: Plan) -> list[Outcome]:
        key, decision = self._decided.pop(id(plan))
        try:
            outcomes = await super().execute(plan)
        except Conflict:
            raise  # losing a race is no refusal
        except ApiError as error:
            await super().execute(refused(plan, error, self._clock.now()))
            return []
        if key in self.histories:
            self.histories[key] = decision.scaled
        return outcomes


def build(context: ControllerContext) -> Controller[Key, Observed]:
    """Return the controller."""
    autoscalers, pods = (context.factory.informer(each) for each in (AUTOSCALERS, PODS))
    pods.index.add_index(IN_NAMESPACE, by_namespace)
    queue: WorkQueue[Key] = context.queue(NAME)
    executor = _HistoryExecutor(context)
    observer = Observer(context.client, autoscalers, pods, executor.histories)

    def forget(key: Key) -> None:
        executor.histories.pop(key, None)
        observer.forget(key)

    autoscalers.add_handler(_enqueue_wishes(queue.add, forget))
    reconciler = Reconciler(observer.observe, executor.decide, executor)
    return context.controller(NAME, reconciler, queue, [autoscalers, pods])


def _enqueue_wishes(add: Callable[[Key], None], forget: Callable[[Key], None]) -> Handler:
    """Enqueue an autoscaler whose spec changed; what it says of itself changes all the time."""

    def handle(old: Object | None, new: Object | None) -> None:
        if new is None:
            forget(key_of(old or {}))
        elif old is None or old.get("spec") != new.get("spec"):
            add(key_of(new))

    return handle
