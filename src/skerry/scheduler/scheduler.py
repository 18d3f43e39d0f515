"""The pod scheduler: takes pods from the queue, decides, and binds.

Deciding is strictly one pod after the other and does not wait for anything, except extenders where
they are configured. A decided pod is assumed at once; reserving and permitting follow; binding runs
beside the next decisions. Whatever fails on the way is undone in reverse order, and the pod goes
back to the queue knowing who turned it down.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from skerry.kit.clock import Clock, SystemClock
from skerry.kit.ids import IdSource, SystemIds
from skerry.kit.log import Logger
from skerry.logic.machinery.plan import EventType
from skerry.scheduler.cache.cluster import AssumeError, Cluster
from skerry.scheduler.cache.node import NodeInfo
from skerry.scheduler.cache.pod import PodInfo
from skerry.scheduler.config.errors import ConfigurationError
from skerry.scheduler.config.load import Configuration
from skerry.scheduler.cycle import Decider, DecisionFailed, Found, Profile, Ties
from skerry.scheduler.explain import Explanation, explain
from skerry.scheduler.extender import (
    EXTENDER_NAME,
    HttpExtender,
    extender_points,
    passing_extenders,
)
from skerry.scheduler.framework.evaluation import Evaluator
from skerry.scheduler.framework.events import ANY_EVENT, ASSIGNED_POD_DELETE, Registration
from skerry.scheduler.framework.handle import (
    Events,
    ExtenderError,
    Handle,
    NoEvents,
    NominationTable,
    NoWriter,
    Writer,
)
from skerry.scheduler.framework.plugin import Diagnosis
from skerry.scheduler.framework.profile import ProfileError, assemble
from skerry.scheduler.framework.registry import Registry
from skerry.scheduler.framework.runner import Framework, PluginRaised, status_label
from skerry.scheduler.framework.state import CycleState
from skerry.scheduler.framework.status import Code, Status, error, unschedulable
from skerry.scheduler.metrics import SchedulerMetrics, Sizes
from skerry.scheduler.outcome import Placed, Refused
from skerry.scheduler.queue import QueuedPod, QueueProfile, QueueSettings, SchedulingQueue
from skerry.scheduler.refusals import Refusals
from skerry.scheduler.waiting import WaitingPods

_log = Logger("scheduler")


@dataclass(slots=True)
class Parts:
    """What a scheduler is made of; everything that touches the world is handed in."""

    writer: Writer = field(default_factory=NoWriter)
    events: Events = field(default_factory=NoEvents)
    clock: Clock = field(default_factory=SystemClock)
    ids: IdSource = field(default_factory=SystemIds)
    metrics: SchedulerMetrics = field(default_factory=SchedulerMetrics)
    extenders: Sequence[HttpExtender] = ()
    ties: Ties = "random"
    # Score as few nodes as kube-scheduler would when no percentage is configured.
    adaptive_sampling: bool = False
    max_unschedulable: float = 300.0
    # Ask plugins whether an event may help a pod they turned down; else any registered one does.
    queueing_hints: bool = True


class PodScheduler:
    """See the module's theory."""

    def __init__(
        self,
        configuration: Configuration,
        registry: Registry,
        parts: Parts | None = None,
        cluster: Cluster | None = None,
    ) -> None:
        self._parts = parts or Parts()
        self.cluster = cluster or Cluster()
        self.metrics = self._parts.metrics
        self.nominations = NominationTable()
        self.waiting = WaitingPods()
        # Pods without a node that some profile is responsible for, as the server last had them.
        self.unscheduled: dict[str, PodInfo] = {}
        self._clock = self.clock = self._parts.clock
        self._extenders = self._parts.extenders
        self.profiles = self._make_profiles(configuration, registry, self._extenders)
        self._decider = Decider(
            self.cluster,
            self.nominations,
            self._parts.ids,
            self._parts.ties,
            self._clock.monotonic,
        )
        self.queue = SchedulingQueue(
            self._queue_profiles(),
            self._sort_key(),
            self._clock.monotonic,
            self.nominations,
            self._queue_settings(configuration),
            self.metrics,
        )
        self.refusals = Refusals(
            self.queue,
            self.nominations,
            self._parts.writer,
            self._parts.events,
            self.metrics,
            self._clock,
            self._last_seen,
        )
        self.binding = 0
        self._connect_gauges()

    def _last_seen(self, pod: PodInfo) -> PodInfo | None:
        found = self.unscheduled.get(pod.uid)
        return found if found is not None else self.cluster.pod(pod.uid)

    def _make_profiles(
        self, configuration: Configuration, registry: Registry, extenders: Sequence[HttpExtender]
    ) -> dict[str, Profile]:
        """Assemble all profiles; raises ConfigurationError in kube-scheduler's words."""
        found: dict[str, Profile] = {}
        for spec in configuration.profiles:
            name = spec.scheduler_name
            handle = Handle(
                self.cluster,
                self._parts.writer,
                self._parts.events,
                self.nominations,
                self._clock,
                self._parts.ids,
                extenders,
                self.waiting.reject,
                self.metrics.preemption_victims.observe,
                lambda name=name: found[name].framework,  # type: ignore[misc]
            )
            try:
                assembled = assemble(spec, registry, handle)
            except ProfileError as problem:
                raise ConfigurationError(
                    f"initializing profiles: creating profile for scheduler name {name}: {problem}"
                ) from problem
            framework: Framework[PodInfo, NodeInfo] = Framework(
                assembled, self.metrics, self._clock.monotonic
            )
            percentage = spec.percentage_of_nodes_to_score
            if percentage is None:
                percentage = configuration.percentage_of_nodes_to_score
            found[name] = Profile(
                framework,
                Evaluator(framework, self.cluster.table),
                percentage or (0 if self._parts.adaptive_sampling else None),
            )
        return found

    def _queue_profiles(self) -> dict[str, QueueProfile]:
        found: dict[str, QueueProfile] = {}
        for name, profile in self.profiles.items():
            registrations = profile.framework.registrations()
            if self._extenders:
                registrations[EXTENDER_NAME] = ANY_EVENT
            if not self._parts.queueing_hints:
                registrations = {name: _unjudged(said) for name, said in registrations.items()}
            found[name] = QueueProfile(registrations, profile.framework.run_pre_enqueue)
        return found

    def _sort_key(self) -> Callable[[QueuedPod], Any]:
        # Validation has made sure that all profiles share one order.
        key: Callable[[QueuedPod], Any] = next(
            iter(self.profiles.values())
        ).framework.queue_sort.sort_key
        return key

    def _queue_settings(self, configuration: Configuration) -> QueueSettings:
        return QueueSettings(
            configuration.initial_backoff_seconds,
            configuration.max_backoff_seconds,
            self._parts.max_unschedulable,
        )

    def reconfigure(
        self,
        configuration: Configuration,
        registry: Registry,
        extenders: Sequence[HttpExtender] = (),
    ) -> None:
        """Change profiles, extenders and back-offs; raises and changes nothing when invalid.

        Pods in the queue stay, their order and gates are worked out anew. Whoever is being decided
        upon keeps the profile and the extenders the attempt began with.
        """
        self.profiles = self._make_profiles(configuration, registry, extenders)
        self._extenders = extenders
        self.queue.reconfigure(
            self._queue_profiles(), self._sort_key(), self._queue_settings(configuration)
        )

    def _connect_gauges(self) -> None:
        self.metrics.sizes = Sizes(
            pending_pods=lambda: _keyed(self.queue.sizes()),
            unschedulable_pods=lambda: {
                key: float(count) for key, count in self.queue.blamed().items()
            },
            cache_size=lambda: _keyed(self.cluster.counts),
            tasks=lambda: {("binding",): self.binding},
            inflight_events=lambda: _keyed(self.queue.in_flight_events()),
            refresh=self._count_evaluations,
        )

    def _count_evaluations(self) -> None:
        for profile in self.profiles.values():
            profile.evaluator.count_evaluations()

    def explain(self, pod: PodInfo) -> Explanation:
        """Tell what would be decided for *pod* now, and why, without doing anything."""
        profile = self.profiles.get(pod.spec.scheduler_name)
        if profile is None:
            text = f'profile not found for scheduler name "{pod.spec.scheduler_name}"'
            return Explanation(pod.key, "", text, ())
        return explain(self.cluster, self._decider, profile, pod)

    # One attempt.

    def attempt(self, queued: QueuedPod) -> Placed | Refused | None:
        """Decide for one popped pod without extenders; None when it needs no node any more."""
        profile = self._profile_for(queued)
        if profile is None:
            return None
        began = self._clock.monotonic()
        try:
            node, found = self._decider.decide(profile, queued.pod)
        except DecisionFailed as failure:
            return self._failed(queued, profile, failure.status, began)
        self.metrics.algorithm_duration.observe(self._clock.monotonic() - began)
        return self._settle(queued, profile, node, found, began)

    async def attempt_with_extenders(self, queued: QueuedPod) -> Placed | Refused | None:
        """Decide, asking extenders between filtering and scoring."""
        profile = self._profile_for(queued)
        if profile is None:
            return None
        began = self._clock.monotonic()
        pod, table = queued.pod, self.cluster.table
        extenders = self._extenders
        try:
            found = self._decider.find(profile, pod)
            refusals = await passing_extenders(extenders, pod, found, table)
            if refusals:
                if not len(found.feasible()):
                    self._decider.refused_all(profile, pod, found, refusals)
                found.diagnosis.rejectors.add(EXTENDER_NAME)
            extra = await extender_points(extenders, pod, found.feasible(), table)
            node = self._decider.choose(profile, pod, found, extra)
        except DecisionFailed as failure:
            return self._failed(queued, profile, failure.status, began)
        except ExtenderError as problem:
            return self._failed(queued, profile, error(str(problem), problem), began)
        self.metrics.algorithm_duration.observe(self._clock.monotonic() - began)
        return self._settle(queued, profile, node, found, began)

    def _profile_for(self, queued: QueuedPod) -> Profile | None:
        pod = queued.pod
        profile = self.profiles.get(pod.spec.scheduler_name)
        if profile is None:
            _log.error("no profile for pod", key=pod.key, scheduler=pod.spec.scheduler_name)
        elif pod.terminating:
            note = f"skip schedule deleting pod: {pod.key}"
            self._event(pod, "Warning", "FailedScheduling", "Scheduling", note)
            profile = None
        elif self.cluster.is_assumed(pod.uid):
            profile = None
        if profile is None:
            self.queue.done(pod.uid)
        return profile

    def _failed(self, queued: QueuedPod, profile: Profile, status: Status, began: float) -> Refused:
        self.metrics.algorithm_duration.observe(self._clock.monotonic() - began)
        return Refused(queued, profile, status, status.message, began)

    def _settle(
        self, queued: QueuedPod, profile: Profile, node: str, found: Found, began: float
    ) -> Placed | Refused:
        if not node:
            status = unschedulable("no node fits")
            return Refused(
                queued, profile, status, "", began, found.diagnosis, found.state, nominated=None
            )
        return self._reserve(queued, profile, node, found.state, began)

    def _reserve(
        self, queued: QueuedPod, profile: Profile, node: str, state: CycleState, began: float
    ) -> Placed | Refused:
        """Assume, reserve and ask for permission; undo all of it when refused."""
        try:
            pod = self.cluster.assume(queued.pod, node)
        except AssumeError as problem:
            return Refused(queued, profile, error(str(problem), problem), str(problem), began)
        self.nominations.withdraw(pod.uid)
        framework = profile.framework
        reserving = self._clock.monotonic()
        try:
            status = framework.run_reserve(state, pod, node)
            self._record(profile, "Reserve", reserving, status)
            waiting: tuple[tuple[str, float], ...] = ()
            if status is None and framework.permit:
                permitting = self._clock.monotonic()
                permitted = framework.run_permit(state, pod, node)
                status, waiting = permitted.status, permitted.waiting
                self._record(profile, "Permit", permitting, status)
        except PluginRaised as problem:
            status, waiting = problem.status(), ()
        if status is None or status.code is Code.WAIT:
            return Placed(queued, pod, profile, node, state, began, waiting)
        self._undo(framework, state, pod, node)
        return self._refused_on(queued, profile, node, status, began)

    def _undo(
        self, framework: Framework[PodInfo, NodeInfo], state: CycleState, pod: PodInfo, node: str
    ) -> bool:
        """Give back what was reserved and forget the assumption; tells whether there was one."""
        try:
            framework.run_unreserve(state, pod, node)
        except PluginRaised as problem:
            _log.error("unreserve failed", key=pod.key, error=problem)
        try:
            self.cluster.forget(pod.uid)
        except AssumeError as problem:
            _log.warning("cannot forget pod", key=pod.key, error=problem)
            return False
        return True

    def _refused_on(
        self, queued: QueuedPod, profile: Profile, node: str, status: Status, began: float
    ) -> Refused:
        """Describe a refusal that came after a node had been chosen."""
        if not status.rejected:
            return Refused(queued, profile, status, status.message, began)
        diagnosis = Diagnosis(total=1, absent=status)
        diagnosis.blame(status)
        return Refused(queued, profile, status, diagnosis.message(), began, diagnosis)

    # What follows a decision.

    async def bind(self, placed: Placed) -> None:
        """Carry a placement through to its binding, or undo it."""
        self.binding += 1
        try:
            status = await self._bind(placed)
        except PluginRaised as problem:
            status = problem.status()
        finally:
            self.binding -= 1
        if status is None:
            self._bound(placed)
            return
        await self._unbind(placed, status)

    async def _bind(self, placed: Placed) -> Status | None:
        framework, state = placed.profile.framework, placed.state
        pod, node = placed.pod, placed.node
        if placed.waiting:
            status = await self._permission(placed)
            if status is not None:
                return status
        if framework.pre_bind:
            began = self._clock.monotonic()
            status = await framework.run_pre_bind(state, pod, node)
            self._record(placed.profile, "PreBind", began, status)
            if status is not None:
                return status
        # From here on a failure says nothing about the pod's chances elsewhere.
        self.queue.done(pod.uid)
        for extender in self._extenders:
            if extender.binds and extender.interested(pod):
                return await _bind_by_extender(extender, pod, node)
        began = self._clock.monotonic()
        status = await framework.run_bind(state, pod, node)
        self._record(placed.profile, "Bind", began, status)
        return status

    def _record(
        self, profile: Profile, point: str, began: float, status: Status | None = None
    ) -> None:
        seconds = self._clock.monotonic() - began
        self.metrics.point(point, status_label(status), profile.name, seconds)

    async def _permission(self, placed: Placed) -> Status | None:
        began = self._clock.monotonic()
        held = self.waiting.hold(placed.pod, dict(placed.waiting))
        try:
            status = await held.wait(self._clock)
        finally:
            self.waiting.release(placed.pod.uid)
        label = "Success" if status is None else status.code.label
        self.metrics.permit_duration.observe(self._clock.monotonic() - began, (label,))
        return status

    def _bound(self, placed: Placed) -> None:
        pod, node, queued = placed.pod, placed.node, placed.queued
        now = self._clock.monotonic()
        self.metrics.attempted("scheduled", placed.profile.name, now - placed.began)
        first = queued.first_attempt if queued.first_attempt is not None else now
        self.metrics.scheduled(queued.attempts, now - first)
        note = f"Successfully assigned {pod.key} to {node}"
        self._event(pod, "Normal", "Scheduled", "Binding", note)
        try:
            placed.profile.framework.run_post_bind(placed.state, pod, node)
        except PluginRaised as problem:
            _log.error("post-bind failed", key=pod.key, error=problem)

    async def _unbind(self, placed: Placed, status: Status) -> None:
        pod = placed.pod
        _log.info("binding failed", key=pod.key, node=placed.node, error=status.message)
        forgotten = self._undo(placed.profile.framework, placed.state, pod, placed.node)
        refused = self._refused_on(placed.queued, placed.profile, placed.node, status, placed.began)
        refused.nominated = ""
        if forgotten and not status.rejected:
            self.queue.move(ASSIGNED_POD_DELETE, pod, None)
        await self.refuse(refused)
        if forgotten and status.rejected:
            # Reported last, and not to itself: it would only requeue what was just turned down.
            self.queue.move(ASSIGNED_POD_DELETE, pod, None, lambda other: other.uid != pod.uid)

    async def refuse(self, refused: Refused) -> None:
        """Do everything a refusal asks for, here and now."""
        await self.refusals.settle(refused, self.refusals.make_room(refused))

    def _event(self, pod: PodInfo, type_: EventType, reason: str, action: str, note: str) -> None:
        self._parts.events.event(pod.pod, type_, reason, action, note)

    # The loop.

    async def step(
        self, queued: QueuedPod, spawn: Callable[[Coroutine[None, None, None]], None]
    ) -> None:
        """Make one attempt; *spawn* runs beside whatever then needs the server."""
        if self._extenders:
            outcome = await self.attempt_with_extenders(queued)
        else:
            outcome = self.attempt(queued)
        if isinstance(outcome, Placed):
            spawn(self.bind(outcome))
        elif outcome is not None:
            spawn(self.refusals.settle(outcome, self.refusals.make_room(outcome)))


async def _bind_by_extender(extender: HttpExtender, pod: PodInfo, node: str) -> Status | None:
    try:
        await extender.bind(pod, node)
    except ExtenderError as problem:
        return error(str(problem), problem)
    return None


def _unjudged(registrations: Sequence[Registration]) -> list[Registration]:
    """Return registrations for the same events without anybody's opinion of them."""
    return [replace(registration, hint=None) for registration in registrations]


def _keyed(sizes: Mapping[str, int]) -> dict[tuple[str, ...], float]:
    return {(name,): float(size) for name, size in sizes.items()}
