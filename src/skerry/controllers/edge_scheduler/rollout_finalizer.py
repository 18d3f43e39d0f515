"""Keeping a Rollout that is deleted until everybody has what the workspace has.

A slice names revisions as its Rollout gave them. Were that gone at once, all edges would get what
the workspace has in the same second; so a Rollout that is deleted goes on to its end first. A
person who does not want to wait says so by an annotation.

The finalizer comes before the status says anything, and goes after the status has said all. Others
change their finalizers and the status whenever they like, so none of our writes may state the whole
list as some cache has it:

    put on       for exactly the version that was seen: another one is a Conflict, and a reason to
                 look again. Nothing of the Rollout is written before it in the same plan.
    taken off    alone, from where it was seen in the list, whatever version our own status has made
                 since. Where it is elsewhere by now, the patch fails as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator

from skerry.api.edge import RELEASE, ROLLOUT_FINALIZER, ROLLOUTS
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.controllers.edge_scheduler.observed import ObservedRollout
from skerry.logic.fleet.placement.records import is_being_deleted
from skerry.logic.fleet.rollout.state import COMPLETED, State
from skerry.logic.machinery.plan import Action, Patch, Target


def kept(ref: ObjectRef, obj: Object) -> Iterator[Action]:
    """Yield what will keep a Rollout when it is deleted."""
    metadata = obj["metadata"]
    finalizers = metadata.get("finalizers") or []
    if is_being_deleted(obj) or ROLLOUT_FINALIZER in finalizers:
        return
    known = {key: metadata.get(key) for key in ("uid", "resourceVersion")}
    patch = {"metadata": {**known, "finalizers": [*finalizers, ROLLOUT_FINALIZER]}}
    yield Patch(_target(ref), patch, "RolloutFollowed", absent_is_fine=True)


def released(ref: ObjectRef, found: ObservedRollout, state: State) -> Iterator[Action]:
    """Yield what lets a deleted Rollout go, once everybody has what the workspace has."""
    obj = found.object
    if not is_being_deleted(obj):
        return
    asked = (obj["metadata"].get("annotations") or {}).get(RELEASE) == str(found.live)
    done = state.phase == COMPLETED and state.stable == found.live
    if done or asked or not state.stable:
        yield from without_finalizer(ref, obj)


def without_finalizer(ref: ObjectRef, obj: Object) -> Iterator[Action]:
    """Yield what takes our finalizer off a Rollout, and nobody else's."""
    metadata = obj["metadata"]
    finalizers = metadata.get("finalizers") or []
    if ROLLOUT_FINALIZER not in finalizers:
        return
    path = f"/metadata/finalizers/{finalizers.index(ROLLOUT_FINALIZER)}"
    patch = [
        {"op": "test", "path": "/metadata/uid", "value": metadata.get("uid")},
        {"op": "test", "path": path, "value": ROLLOUT_FINALIZER},
        {"op": "remove", "path": path},
    ]
    yield Patch(_target(ref), patch, "RolloutReleased", kind="json", absent_is_fine=True)


def _target(ref: ObjectRef) -> Target:
    return Target(ROLLOUTS, ref.name, cluster=ref.cluster)
