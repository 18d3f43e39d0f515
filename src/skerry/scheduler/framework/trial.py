"""Filtering one node as if room already promised there were taken.

A nominated pod waits for victims to leave a node. Others of lower priority must not slip in
meanwhile, so a node passes only if it does with and without the pods nominated to it: with them,
because they will come; without them, because they may not, and affinity to them must not count.

Where filters look at one node only, what a trial finds stays true until the node or the promises
there change. Hundreds of like pods waiting for room would otherwise try the same nodes over and
over.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, NamedTuple, TypeVar

from skerry.scheduler.cache.node import NodeInfo
from skerry.scheduler.cache.pod import PodInfo, PodTemplate
from skerry.scheduler.framework.handle import NominationTable
from skerry.scheduler.framework.runner import Framework
from skerry.scheduler.framework.state import CycleState
from skerry.scheduler.framework.status import Status

Promised = tuple[PodInfo, ...]
T = TypeVar("T")

# Kinds of pods whose trials are remembered; each costs up to an entry per node.
_KINDS_KEPT = 16


class Trial(NamedTuple, Generic[T]):
    """What one trial found, and of which node with which promises."""

    node: NodeInfo
    changes: int
    promised: Promised
    answer: T


class Trials(Generic[T]):
    """What trials found, by kind of pod and node."""

    def __init__(self) -> None:
        self._kinds: OrderedDict[PodTemplate, dict[int, Trial[T]]] = OrderedDict()

    def known(self, pod: PodInfo) -> dict[int, Trial[T]]:
        """Return what is remembered for pods like *pod*, by row; ask ``recall`` if it is true."""
        found = self._kinds.get(pod.spec)
        if found is None:
            found = self._kinds[pod.spec] = {}
            if len(self._kinds) > _KINDS_KEPT:
                self._kinds.popitem(last=False)
        else:
            self._kinds.move_to_end(pod.spec)
        return found

    def clear(self) -> None:
        """Forget everything."""
        self._kinds.clear()


def recall(known: dict[int, Trial[T]], node: NodeInfo, promised: Promised) -> Trial[T] | None:
    """Return the trial of *node*, if nothing has changed since."""
    trial = known.get(node.row)
    if (
        trial is None
        or trial.node is not node
        or trial.changes != node.changes
        or trial.promised != promised
    ):
        return None
    return trial


def remember(known: dict[int, Trial[T]], node: NodeInfo, promised: Promised, answer: T) -> None:
    """Note what a trial of *node* found."""
    known[node.row] = Trial(node, node.changes, promised, answer)


def promised_on(nominations: NominationTable, pod: PodInfo, node: str) -> Promised:
    """Return the pods that will come to *node* and that *pod* must leave room for."""
    nominated = nominations.nominated(node)
    if not nominated:
        return ()
    priority = pod.spec.priority
    return tuple(
        other for other in nominated if other.uid != pod.uid and other.spec.priority >= priority
    )


def filter_with_nominated(
    framework: Framework[PodInfo, NodeInfo],
    nominations: NominationTable,
    state: CycleState,
    pod: PodInfo,
    node: NodeInfo,
    *,
    again: bool = False,
) -> Status | None:
    """Return the first refusal of *node*, counting pods nominated to it.

    *again* as for ``Framework.run_filter``.
    """
    promised = promised_on(nominations, pod, node.name)
    status = filter_with_promised(framework, promised, state, pod, node, again=again)
    return status or framework.run_filter(state, pod, node, again=again)


def filter_with_promised(
    framework: Framework[PodInfo, NodeInfo],
    promised: Promised,
    state: CycleState,
    pod: PodInfo,
    node: NodeInfo,
    *,
    again: bool = False,
) -> Status | None:
    """Return the first refusal of *node* once everybody *promised* it has come.

    Nobody promised means no refusal: the other half, without them, is the caller's.
    """
    if not promised:
        return None
    tracked = framework.tracks(state)
    trial_state, trial_node = state.clone() if tracked else state, node.copy()
    for other in promised:
        trial_node.add(other)
        if tracked:
            problem = framework.add_item(trial_state, pod, other, trial_node)
            if problem is not None:
                return problem
    return framework.run_filter(trial_state, pod, trial_node, again=again)
