"""The pods that want a node, and when each is worth trying.

| part | order | leaves when |
|---|---|---|
| active | the profile's QueueSort | popped |
| backoff | end of the back-off | the back-off ends |
| unschedulable | none | an event some rejector cares about, or five minutes |
| in flight | as popped | done, or returned |

An event that arrives while a pod is being tried might be exactly what it failed for lack of. So
events are kept while any pod is in flight, and a pod that comes back hears all events since it was
popped. Without that it would sleep for five minutes next to a free node.

Time comes as a function, and nobody is notified but through ``ready``.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import count
from typing import Any, Protocol

from skerry.kit.log import Logger
from skerry.scheduler.cache.pod import PodInfo
from skerry.scheduler.framework.events import (
    FORCED_ACTIVATION,
    UNSCHEDULABLE_TIMEOUT,
    UNSCHEDULED_POD,
    UNSCHEDULED_POD_ADD,
    Action,
    ClusterEvent,
    Hint,
    HintFunction,
    Registration,
)
from skerry.scheduler.framework.handle import NominationTable
from skerry.scheduler.framework.status import Status
from skerry.scheduler.hints import Listeners

_log = Logger("scheduler")


class _Strategy(Enum):
    SKIP = 0
    AFTER_BACKOFF = 1
    AT_ONCE = 2


@dataclass(slots=True, eq=False)
class QueuedPod:
    """A pod with its history in the queue; times in seconds of the queue's clock."""

    pod: PodInfo
    timestamp: float
    attempts: int = 0
    first_attempt: float | None = None
    # Who turned it down last, and who among them only asked it to wait.
    rejectors: set[str] = field(default_factory=set)
    pending: set[str] = field(default_factory=set)
    gated_by: str = ""


class QueueObserver(Protocol):
    """Hears of every pod entering a part of the queue."""

    def incoming(self, queue: str, event: str) -> None:
        """Note that a pod entered *queue* because of *event*."""

    def hinted(self, plugin: str, event: str, hint: str, seconds: float) -> None:
        """Note that a plugin was asked what it thinks of an event."""


class NoObserver:
    """Hears nothing."""

    def incoming(self, queue: str, event: str) -> None:
        return

    def hinted(self, plugin: str, event: str, hint: str, seconds: float) -> None:
        return


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """Times in seconds; kube-scheduler's defaults."""

    initial_backoff: float = 1.0
    max_backoff: float = 10.0
    # A pod that no event has requeued is tried again after this long, in case a hint is wrong.
    max_unschedulable: float = 300.0


@dataclass(frozen=True, slots=True)
class QueueProfile:
    """What the queue must know of a profile."""

    registrations: Mapping[str, Sequence[Registration]]
    pre_enqueue: Callable[[PodInfo], Status | None] = field(default=lambda _: None)


class SchedulingQueue:
    """See the module's table."""

    def __init__(
        self,
        profiles: Mapping[str, QueueProfile],
        sort_key: Callable[[QueuedPod], Any],
        now: Callable[[], float],
        nominations: NominationTable | None = None,
        settings: QueueSettings | None = None,
        observer: QueueObserver | None = None,
    ) -> None:
        self._profiles = profiles
        self._listeners = _listeners(profiles)
        self._sort_key = sort_key
        self._now = now
        self.nominations = nominations if nominations is not None else NominationTable()
        self._settings = settings or QueueSettings()
        self._observer: QueueObserver = observer or NoObserver()
        self._sequence = count()
        self._active: dict[str, QueuedPod] = {}
        self._active_heap: list[tuple[Any, int, QueuedPod]] = []
        self._backoff: dict[str, QueuedPod] = {}
        self._backoff_heap: list[tuple[float, int, QueuedPod]] = []
        self._unschedulable: dict[str, QueuedPod] = {}
        # Popped pods with the number of events there had been; oldest first.
        self._in_flight: dict[str, int] = {}
        self._events: list[tuple[ClusterEvent, Any, Any]] = []
        self._events_before = 0
        self.moves = 0
        # Called when a pod becomes ready to be popped.
        self.ready: Callable[[], None] = lambda: None

    def reconfigure(
        self,
        profiles: Mapping[str, QueueProfile],
        sort_key: Callable[[QueuedPod], Any],
        settings: QueueSettings,
    ) -> None:
        """Take over other profiles; pods keep their place in time, not in order."""
        self._profiles = profiles
        self._listeners = _listeners(profiles)
        self._sort_key = sort_key
        self._settings = settings
        waiting = list(self._active.values())
        self._active.clear()
        self._active_heap.clear()
        for queued in waiting:
            self._to_active(queued, "ConfigurationChange")

    def add(self, pod: PodInfo) -> None:
        """Take in a new pod."""
        queued = QueuedPod(pod, self._now())
        self._nominate(pod)
        self._to_active(queued, UNSCHEDULED_POD_ADD.label)

    def pop(self) -> QueuedPod | None:
        """Take the first active pod in flight; None when there is none."""
        while self._active_heap:
            _, _, queued = heapq.heappop(self._active_heap)
            uid = queued.pod.uid
            if self._active.get(uid) is not queued:
                continue
            del self._active[uid]
            queued.attempts += 1
            if queued.first_attempt is None:
                queued.first_attempt = self._now()
            queued.rejectors.clear()
            queued.pending.clear()
            self._in_flight[uid] = self._events_before + len(self._events)
            return queued
        return None

    def done(self, uid: str) -> None:
        """Stop keeping events for a pod that will not come back."""
        if self._in_flight.pop(uid, None) is not None:
            self._trim()

    def _trim(self) -> None:
        if not self._in_flight:
            self._events_before += len(self._events)
            self._events.clear()
            return
        oldest = next(iter(self._in_flight.values()))
        if oldest - self._events_before > 1024:
            del self._events[: oldest - self._events_before]
            self._events_before = oldest

    def add_unschedulable(self, queued: QueuedPod) -> None:
        """Take back a pod that could not be placed.

        It goes where the events since it was popped say; without any rejector something
        internal failed, and it is simply tried again after its back-off.
        """
        uid = queued.pod.uid
        if self.holds(uid):
            self.done(uid)
            return
        queued.timestamp = self._now()
        strategy = self._missed(queued)
        self.done(uid)
        self._nominate(queued.pod)
        self._requeue(queued, strategy, "ScheduleAttemptFailure")

    def _missed(self, queued: QueuedPod) -> _Strategy:
        if not queued.rejectors and not queued.pending:
            return _Strategy.AFTER_BACKOFF
        since = self._in_flight.get(queued.pod.uid)
        if since is None:
            return _Strategy.AFTER_BACKOFF
        strategy = _Strategy.SKIP
        # Without a pending plugin no later event can do more than the first that helps.
        best = _Strategy.AT_ONCE if queued.pending else _Strategy.AFTER_BACKOFF
        for event, old, new in self._events[since - self._events_before :]:
            found = self._worth(queued, event, old, new)
            if found is not _Strategy.SKIP:
                strategy = found
            if found is best:
                break
        return strategy

    def update(self, old: PodInfo | None, new: PodInfo) -> None:
        """Take over a changed pod; a change that may cure its rejection moves it."""
        self._nominate(new)
        events = pod_changes(old, new)
        if new.uid in self._in_flight:
            self._events.extend((event, old, new) for event in events)
            return
        for part in (self._active, self._backoff):
            queued = part.get(new.uid)
            if queued is not None:
                queued.pod = new
                if part is self._active:
                    self._push_active(queued)
                return
        queued = self._unschedulable.get(new.uid)
        if queued is None:
            self.add(new)
            return
        queued.pod = new
        for event in events:
            strategy = self._worth(queued, event, old, new)
            if strategy is not _Strategy.SKIP:
                del self._unschedulable[new.uid]
                self._requeue(queued, strategy, event.label)
                return

    def delete(self, uid: str) -> None:
        """Forget a pod."""
        self.nominations.withdraw(uid)
        for part in (self._active, self._backoff, self._unschedulable):
            part.pop(uid, None)

    def activate(self, pods: Iterable[PodInfo]) -> None:
        """Force pods into the active queue, whatever their back-off."""
        for pod in pods:
            for part in (self._unschedulable, self._backoff):
                queued = part.pop(pod.uid, None)
                if queued is not None:
                    self._to_active(queued, FORCED_ACTIVATION.label)
            if pod.uid in self._in_flight:
                self._events.append((FORCED_ACTIVATION, None, pod))

    def move(
        self,
        event: ClusterEvent,
        old: Any = None,
        new: Any = None,
        check: Callable[[PodInfo], bool] | None = None,
    ) -> None:
        """Tell all waiting pods of an event; those it may help move on."""
        self.moves += 1
        if self._in_flight and self._listeners.interesting(event):
            self._events.append((event, old, new))
        if not self._unschedulable:
            return
        for uid, queued in list(self._unschedulable.items()):
            if check is not None and not check(queued.pod):
                continue
            strategy = self._worth(queued, event, old, new)
            if strategy is not _Strategy.SKIP:
                del self._unschedulable[uid]
                self._requeue(queued, strategy, event.label)

    def flush(self) -> None:
        """Move on whatever time alone has ripened."""
        now = self._now()
        while self._backoff_heap and self._backoff_heap[0][0] <= now:
            _, _, queued = heapq.heappop(self._backoff_heap)
            if self._backoff.get(queued.pod.uid) is queued:
                del self._backoff[queued.pod.uid]
                self._to_active(queued, "BackoffComplete")

    def flush_unschedulable(self) -> None:
        """Retry pods that have waited too long for an event."""
        limit = self._now() - self._settings.max_unschedulable
        for uid, queued in list(self._unschedulable.items()):
            if queued.timestamp < limit:
                strategy = self._worth(queued, UNSCHEDULABLE_TIMEOUT, None, None)
                del self._unschedulable[uid]
                self._requeue(queued, strategy, UNSCHEDULABLE_TIMEOUT.label)

    def next_expiry(self) -> float | None:
        """Return when the next back-off ends."""
        while self._backoff_heap:
            expiry, _, queued = self._backoff_heap[0]
            if self._backoff.get(queued.pod.uid) is queued:
                return expiry
            heapq.heappop(self._backoff_heap)
        return None

    @property
    def listening(self) -> bool:
        """Tell whether any pod waits to hear of events."""
        return bool(self._unschedulable or self._in_flight)

    def holds(self, uid: str) -> bool:
        return uid in self._active or uid in self._backoff or uid in self._unschedulable

    def where(self, uid: str) -> str:
        """Return the part a pod is in, for people."""
        for name, part in (
            ("active", self._active),
            ("backoff", self._backoff),
            ("in flight", self._in_flight),
        ):
            if uid in part:
                return name
        queued = self._unschedulable.get(uid)
        return "" if queued is None else "gated" if queued.gated_by else "unschedulable"

    def sizes(self) -> dict[str, int]:
        """Return how many pods each part holds, as metrics name the parts."""
        gated = sum(bool(queued.gated_by) for queued in self._unschedulable.values())
        return {
            "active": len(self._active),
            "backoff": len(self._backoff),
            "unschedulable": len(self._unschedulable) - gated,
            "gated": gated,
        }

    def in_flight_events(self) -> dict[str, int]:
        """Return how many events of each kind are kept for pods in flight."""
        found: dict[str, int] = {}
        for event, _, _ in self._events:
            found[event.label] = found.get(event.label, 0) + 1
        return found

    def blamed(self) -> dict[tuple[str, str], int]:
        """Return how many waiting pods each (plugin, profile) turned down."""
        found: dict[tuple[str, str], int] = {}
        for queued in self._unschedulable.values():
            for plugin in queued.rejectors | queued.pending:
                key = (plugin, queued.pod.spec.scheduler_name)
                found[key] = found.get(key, 0) + 1
        return found

    def pods(self) -> list[PodInfo]:
        """Return every pod in the queue, those in flight excepted."""
        parts = (self._active, self._backoff, self._unschedulable)
        return [queued.pod for part in parts for queued in part.values()]

    def backoff_end(self, queued: QueuedPod) -> float:
        """Return when a pod may be tried again: doubling per attempt, up to a limit."""
        if queued.attempts == 0:
            return queued.timestamp
        # The exponent is bounded so that a pod with thousands of attempts stays finite.
        exponent = min(queued.attempts - 1, 32)
        seconds = self._settings.initial_backoff * 2.0**exponent
        return queued.timestamp + min(seconds, self._settings.max_backoff)

    def _requeue(self, queued: QueuedPod, strategy: _Strategy, event: str) -> None:
        if strategy is _Strategy.SKIP:
            self._to_unschedulable(queued, event)
        elif strategy is _Strategy.AFTER_BACKOFF and self.backoff_end(queued) > self._now():
            self._to_backoff(queued, event)
        else:
            self._to_active(queued, event)

    def _to_unschedulable(self, queued: QueuedPod, event: str) -> None:
        self._unschedulable[queued.pod.uid] = queued
        self._observer.incoming("unschedulable", event)

    def _to_backoff(self, queued: QueuedPod, event: str) -> None:
        self._backoff[queued.pod.uid] = queued
        entry = (self.backoff_end(queued), next(self._sequence), queued)
        heapq.heappush(self._backoff_heap, entry)
        self._observer.incoming("backoff", event)

    def _to_active(self, queued: QueuedPod, event: str) -> None:
        """Let a pod in, unless some PreEnqueue plugin keeps it out."""
        profile = self._profiles.get(queued.pod.spec.scheduler_name)
        refusal = profile.pre_enqueue(queued.pod) if profile is not None else None
        if refusal is not None:
            queued.gated_by = refusal.plugin
            queued.rejectors.add(refusal.plugin)
            self._unschedulable[queued.pod.uid] = queued
            self._observer.incoming("gated", event)
            return
        queued.gated_by = ""
        self._active[queued.pod.uid] = queued
        self._push_active(queued)
        self._observer.incoming("active", event)
        self.ready()

    def _push_active(self, queued: QueuedPod) -> None:
        entry = (self._sort_key(queued), next(self._sequence), queued)
        heapq.heappush(self._active_heap, entry)

    def _worth(self, queued: QueuedPod, event: ClusterEvent, old: Any, new: Any) -> _Strategy:
        """Ask the rejectors' hints whether an event may have cured the pod."""
        rejectors = queued.rejectors | queued.pending
        if not rejectors or event.wildcard:
            return _Strategy.AFTER_BACKOFF
        strategy = _Strategy.SKIP
        for plugin, hint in self._listeners.of(queued.pod.spec.scheduler_name, event):
            if plugin not in rejectors:
                continue
            began = self._now()
            worth = hint is None or _hinted(plugin, event, hint, (queued.pod, old, new))
            label = Hint.QUEUE.value if worth else Hint.SKIP.value
            self._observer.hinted(plugin, event.label, label, self._now() - began)
            if not worth:
                continue
            if plugin in queued.pending:
                return _Strategy.AT_ONCE
            strategy = _Strategy.AFTER_BACKOFF
        return strategy

    def _nominate(self, pod: PodInfo) -> None:
        if pod.nominated_node:
            self.nominations.nominate(pod, pod.nominated_node)


def _hinted(
    plugin: str, event: ClusterEvent, hint: HintFunction, about: tuple[PodInfo, Any, Any]
) -> bool:
    try:
        return hint(*about) is Hint.QUEUE
    except Exception as problem:  # noqa: BLE001 - a hint is plugin code; one that fails means "retry"
        _log.warning(
            "QueueingHintFn returns error",
            key=about[0].key,
            plugin=plugin,
            event=event.label,
            error=problem,
        )
        return True


def _listeners(profiles: Mapping[str, QueueProfile]) -> Listeners:
    return Listeners({name: profile.registrations for name, profile in profiles.items()})


def pod_changes(old: PodInfo | None, new: PodInfo) -> list[ClusterEvent]:
    """Return the events a change of an unscheduled pod amounts to."""
    if old is None:
        return [ClusterEvent(UNSCHEDULED_POD, Action.UPDATE_OTHER)]
    actions: list[Action] = []
    if old.spec.labels != new.spec.labels:
        actions.append(Action.UPDATE_POD_LABEL)
    if any(new.spec.requests.get(n, 0) < value for n, value in old.spec.requests.items()):
        actions.append(Action.UPDATE_POD_SCALE_DOWN)
    if old.gates and not new.gates:
        actions.append(Action.UPDATE_POD_GATES_ELIMINATED)
    if old.spec.tolerations != new.spec.tolerations:
        actions.append(Action.UPDATE_POD_TOLERATIONS)
    return [ClusterEvent(UNSCHEDULED_POD, action) for action in actions or [Action.UPDATE_OTHER]]
