"""What a pod plugin gets to work with.

Plugins are made once per profile, before anything runs; what they hold here they may use at any
extension point. Writing goes through ``writer``, so that explanations and benchmarks can hand in
one that does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from skerry.api.objects import Object
from skerry.kit.clock import Clock, SystemClock
from skerry.kit.ids import IdSource, SystemIds
from skerry.logic.machinery.plan import EventType
from skerry.scheduler.cache.cluster import Cluster
from skerry.scheduler.cache.node import NodeInfo
from skerry.scheduler.cache.pod import PodInfo

if TYPE_CHECKING:
    from skerry.scheduler.framework.runner import Framework


class Writer(Protocol):
    """The few things a scheduler writes. All raise ``api.errors.ApiError``."""

    async def bind(self, pod: PodInfo, node: str) -> None:
        """Write the binding, only for the very pod that was decided upon (its UID)."""

    async def delete_pod(self, pod: PodInfo) -> None:
        """Delete a pod, only this very one."""

    async def patch_pod_status(self, pod: PodInfo, status: Mapping[str, Any]) -> None:
        """Merge *status* into the pod's status."""

    async def update(self, kind: str, obj: Object) -> Object:
        """Replace an object of a kind of ``cache.objects.KINDS``; returns it as stored."""


class ExtenderError(Exception):
    """An extender could not be reached, refused, or answered with nonsense."""


class Extender(Protocol):
    """The part of an extender preemption needs; see ``scheduler.extender``."""

    name: str
    ignorable: bool

    def interested(self, pod: PodInfo) -> bool:
        """Tell whether the extender has a say about *pod*."""

    @property
    def preempts(self) -> bool:
        """Tell whether it wants to see victims."""

    async def process_preemption(
        self, pod: PodInfo, victims: Mapping[str, tuple[Sequence[PodInfo], int]]
    ) -> dict[str, tuple[list[PodInfo], int]]:
        """Return the candidates it agrees with; raises ExtenderError."""


class Events(Protocol):
    """Tells people what happened."""

    def event(self, pod: Object, type_: EventType, reason: str, action: str, note: str) -> None:
        """Record one event about *pod*."""


class NoEvents:
    """Tells nobody."""

    def event(self, pod: Object, type_: EventType, reason: str, action: str, note: str) -> None:
        return


class NoWriter:
    """Writes nothing; every write succeeds."""

    async def bind(self, pod: PodInfo, node: str) -> None:
        return

    async def delete_pod(self, pod: PodInfo) -> None:
        return

    async def patch_pod_status(self, pod: PodInfo, status: Mapping[str, Any]) -> None:
        return

    async def update(self, kind: str, obj: Object) -> Object:
        return obj


class NominationTable:
    """Nominations by node and by pod."""

    def __init__(self) -> None:
        self._by_node: dict[str, dict[str, PodInfo]] = {}
        self._node_of: dict[str, str] = {}

    def nominated(self, node: str) -> Sequence[PodInfo]:
        waiting = self._by_node.get(node)
        return list(waiting.values()) if waiting else ()

    def nodes(self) -> list[str]:
        """Return the nodes somebody waits for."""
        return list(self._by_node)

    def node_of(self, uid: str) -> str:
        return self._node_of.get(uid, "")

    def nominate(self, pod: PodInfo, node: str) -> None:
        self.withdraw(pod.uid)
        self._by_node.setdefault(node, {})[pod.uid] = pod
        self._node_of[pod.uid] = node

    def withdraw(self, uid: str) -> None:
        node = self._node_of.pop(uid, None)
        if node is not None:
            waiting = self._by_node[node]
            del waiting[uid]
            if not waiting:
                del self._by_node[node]

    def __len__(self) -> int:
        return len(self._node_of)


def _no_framework() -> Framework[PodInfo, NodeInfo]:
    raise LookupError("this plugin was made for no profile")


@dataclass(slots=True)
class Handle:
    """Everything a plugin may use."""

    cluster: Cluster
    writer: Writer = field(default_factory=NoWriter)
    events: Events = field(default_factory=NoEvents)
    nominations: NominationTable = field(default_factory=NominationTable)
    clock: Clock = field(default_factory=SystemClock)
    ids: IdSource = field(default_factory=SystemIds)
    extenders: Sequence[Extender] = ()
    # ``reject_waiting(uid, plugin, message)`` turns down a pod a permit plugin holds, if it does.
    reject_waiting: Callable[[str, str, str], bool] = field(default=lambda *_: False)
    # Observes how many pods one preemption evicts.
    count_victims: Callable[[int], None] = field(default=lambda _: None)
    # Returns the profile the plugin belongs to: not to be asked before all its plugins are made.
    framework: Callable[[], Framework[PodInfo, NodeInfo]] = field(default=_no_framework)
