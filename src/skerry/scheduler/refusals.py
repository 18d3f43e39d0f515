"""What becomes of a pod that was not placed.

Room is looked for at once, on the very state the attempt saw; carrying that out (victims to be
deleted, extenders to be asked), writing the pod's condition and recording the event need the
server and run beside the next decisions. The promise to the pod is made first, so that nobody
takes the room meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable

from skerry.api.errors import ApiError
from skerry.kit.clock import Clock
from skerry.kit.log import Logger
from skerry.kit.timestamps import rfc3339
from skerry.runtime.transport import TransportError
from skerry.scheduler.cache.pod import PodInfo
from skerry.scheduler.framework.handle import Events, NominationTable, Writer
from skerry.scheduler.framework.plugin import PostFilterResult
from skerry.scheduler.framework.runner import PluginRaised, status_label
from skerry.scheduler.framework.status import Code, Status
from skerry.scheduler.metrics import SchedulerMetrics
from skerry.scheduler.outcome import Refused, pod_status_change
from skerry.scheduler.queue import SchedulingQueue

_log = Logger("scheduler")

# The longest note the Events API takes.
_NOTE_LIMIT = 1024


class Refusals:
    """Makes room, returns pods to the queue, and tells people why."""

    def __init__(
        self,
        queue: SchedulingQueue,
        nominations: NominationTable,
        writer: Writer,
        events: Events,
        metrics: SchedulerMetrics,
        clock: Clock,
        last_seen: Callable[[PodInfo], PodInfo | None],
    ) -> None:
        self._queue = queue
        self._nominations = nominations
        self._writer = writer
        self._events = events
        self._metrics = metrics
        self._clock = clock
        # Returns the pod as the server last had it; None when it is gone.
        self._last_seen = last_seen

    def make_room(self, refused: Refused) -> PostFilterResult | None:
        """Run PostFilter; returns what must still be carried out, if anything."""
        framework, diagnosis = refused.profile.framework, refused.diagnosis
        if refused.nominated is not None or diagnosis is None or refused.state is None:
            return None
        if not framework.post_filter:
            refused.message = diagnosis.message()
            return None
        self._metrics.preemption_attempts.inc()
        began, pod = self._clock.monotonic(), refused.queued.pod
        result: PostFilterResult | None = None
        try:
            result, status = framework.run_post_filter(refused.state, pod, diagnosis)
        except PluginRaised as problem:
            status = problem.status()
        seconds = self._clock.monotonic() - began
        self._metrics.point("PostFilter", status_label(status), framework.name, seconds)
        refused.nominated = None if result is None else result.nominated
        self._explain(refused, status)
        if result is None or result.resolve is None:
            return None
        if result.nominated:
            self._nominations.nominate(pod, result.nominated)
        return result

    def _explain(self, refused: Refused, status: Status | None) -> None:
        diagnosis = refused.diagnosis
        if diagnosis is None:
            return
        if status is not None:
            diagnosis.post_filter_message = status.message
            if status.code is Code.ERROR:
                # Making room failed for a reason of its own, which no event will cure: the pod
                # is retried after its back-off rather than left waiting.
                diagnosis.rejectors.clear()
                diagnosis.pending.clear()
        refused.message = diagnosis.message()

    async def settle(self, refused: Refused, room: PostFilterResult | None) -> None:
        """Carry out what makes room, return the pod to the queue, and tell people."""
        if room is not None:
            await self._carry_out(refused, room)
        result = "unschedulable" if refused.status.rejected else "error"
        elapsed = self._clock.monotonic() - refused.began
        self._metrics.attempted(result, refused.profile.name, elapsed)
        self._requeue(refused)
        await self._report(refused)

    async def _carry_out(self, refused: Refused, room: PostFilterResult) -> None:
        if room.resolve is None:
            return
        pod = refused.queued.pod
        nominated, status = await room.resolve()
        refused.nominated = nominated
        if nominated:
            self._nominations.nominate(pod, nominated)
        elif room.nominated:
            self._nominations.withdraw(pod.uid)
        if status is not None:
            self._explain(refused, status)

    def _requeue(self, refused: Refused) -> None:
        queued = refused.queued
        current = self._last_seen(queued.pod)
        if current is None or current.node_name:
            # Deleted, or bound by somebody: nothing to retry.
            self._queue.done(queued.pod.uid)
            return
        if refused.diagnosis is not None:
            queued.rejectors = set(refused.diagnosis.rejectors)
            queued.pending = set(refused.diagnosis.pending)
        queued.pod = current
        self._queue.add_unschedulable(queued)
        if refused.nominated:
            self._nominations.nominate(current, refused.nominated)
        elif refused.nominated == "":
            self._nominations.withdraw(current.uid)

    async def _report(self, refused: Refused) -> None:
        pod = refused.queued.pod
        note = refused.message
        if len(note) > _NOTE_LIMIT:
            note = note[: _NOTE_LIMIT - 4] + " ..."
        self._events.event(pod.pod, "Warning", "FailedScheduling", "Scheduling", note)
        reason = "Unschedulable" if refused.status.rejected else "SchedulerError"
        status = pod_status_change(pod, reason, refused, rfc3339(self._clock.now()))
        if not status:
            return
        try:
            await self._writer.patch_pod_status(pod, status)
        except (ApiError, TransportError) as problem:
            _log.warning("pod status not written", key=pod.key, error=problem)
