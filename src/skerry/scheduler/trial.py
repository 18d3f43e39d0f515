"""Filtering one node as if room already promised there were taken.

A nominated pod waits for victims to leave a node. Others of lower priority must not slip in
meanwhile, so a node passes only if it does with and without the pods nominated to it: with them,
because they will come; without them, because they may not, and affinity to them must not count.
"""

from __future__ import annotations

from skerry.scheduler.cache.node import NodeInfo
from skerry.scheduler.cache.pod import PodInfo
from skerry.scheduler.framework.runner import Framework
from skerry.scheduler.framework.state import CycleState
from skerry.scheduler.framework.status import Status
from skerry.scheduler.handle import NominationTable


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
    status = filter_with_promised(framework, nominations, state, pod, node, again=again)
    return status or framework.run_filter(state, pod, node, again=again)


def filter_with_promised(
    framework: Framework[PodInfo, NodeInfo],
    nominations: NominationTable,
    state: CycleState,
    pod: PodInfo,
    node: NodeInfo,
    *,
    again: bool = False,
) -> Status | None:
    """Return the first refusal of *node* once everybody nominated to it has come.

    Nobody nominated means no refusal: the other half, without them, is the caller's.
    """
    priority = pod.spec.priority
    promised = [
        other
        for other in nominations.nominated(node.name)
        if other.uid != pod.uid and other.spec.priority >= priority
    ]
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
