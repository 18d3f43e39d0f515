"""Lets claims and volumes go once nobody uses them.

Reads PersistentVolumeClaims, PersistentVolumes and Pods; writes the finalizers of the first two.
Admission gives both a finalizer when they are made. That of a claim comes off when the claim is to
go and no scheduled pod names it; that of a volume when the volume is to go and is not bound. What
was made before admission knew of it gets its finalizer here.

Invariant: a claim that a pod on a node uses is never removed, whoever deletes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.logic.machinery.plan import NOTHING, Plan, Target, Update
from skerry.runtime.client import Selection
from skerry.runtime.context import ControllerContext
from skerry.runtime.controller import Controller, Reconciler
from skerry.runtime.index import Key, key_of
from skerry.runtime.informer import Handler
from skerry.runtime.workqueue import WorkQueue

NAME = "persistentvolume-protection-controller"
PODS = GroupVersionResource("", "v1", "pods")
CLAIMS = GroupVersionResource("", "v1", "persistentvolumeclaims")
VOLUMES = GroupVersionResource("", "v1", "persistentvolumes")
CLAIM_FINALIZER = "kubernetes.io/pvc-protection"
VOLUME_FINALIZER = "kubernetes.io/pv-protection"
BY_CLAIM = "claim-of-pod"
# All that is looked at of a pod, of which there may be very many.
_WHERE_AND_WHAT = Selection(parts=("spec.nodeName", "spec.volumes"))

# -- observe and decide ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Observed:
    """A claim or a volume, and whether it is used; nobody asks that unless it is to go."""

    obj: Object
    gvr: GroupVersionResource
    finalizer: str
    used: bool


def decide(observed: Observed) -> Plan:
    """Put the finalizer on what stays, and take it off what is to go and is not used."""
    metadata, finalizer = observed.obj["metadata"], observed.finalizer
    finalizers = metadata.get("finalizers") or []
    has, goes = finalizer in finalizers, "deletionTimestamp" in metadata
    if goes and has and not observed.used:
        wanted, reason = [each for each in finalizers if each != finalizer], "Unused"
    elif not goes and not has:
        wanted, reason = [*finalizers, finalizer], "Unprotected"
    else:
        return NOTHING
    key = key_of(observed.obj)
    changed = {**observed.obj, "metadata": {**metadata, "finalizers": wanted}}
    target = Target(observed.gvr, key.name, key.namespace, key.cluster)
    return Plan([Update(target, changed, reason)])


def claims_of(pod: Object) -> Iterable[str]:
    """Return the names of the claims that a pod uses: those it names, and those made for it."""
    metadata = pod["metadata"]
    for volume in pod["spec"].get("volumes") or ():
        if (named := volume.get("persistentVolumeClaim")) is not None:
            yield named["claimName"]
        elif "ephemeral" in volume:
            yield f"{metadata['name']}-{volume['name']}"


def uses(pod: Object, claim: Object) -> bool:
    """Tell whether a pod uses a claim.

    One that is on no node yet does not: no kubelet starts it with a claim that is to go. A claim
    that was made for the pod is used until the pod has been shut down.
    """
    if not pod["spec"].get("nodeName"):
        return False
    name, owners = claim["metadata"]["name"], claim["metadata"].get("ownerReferences") or ()
    for volume in pod["spec"].get("volumes") or ():
        if (volume.get("persistentVolumeClaim") or {}).get("claimName") == name:
            return True
        mine = any(each.get("uid") == pod["metadata"]["uid"] for each in owners)
        named = f"{pod['metadata']['name']}-{volume['name']}" == name
        if "ephemeral" in volume and named and mine and not _is_shut_down(pod):
            return True
    return False


def _is_shut_down(pod: Object) -> bool:
    metadata = pod["metadata"]
    return "deletionTimestamp" in metadata and metadata.get("deletionGracePeriodSeconds") == 0


# -- controller ------------------------------------------------------------------------------


def build(context: ControllerContext) -> Controller[Key, Observed]:
    """Return the controller; a key without a namespace is that of a volume."""
    claims, volumes = (context.factory.informer(each) for each in (CLAIMS, VOLUMES))
    pods = context.factory.informer(PODS, _WHERE_AND_WHAT)
    queue: WorkQueue[Key] = context.queue(NAME)
    pods.index.add_index(BY_CLAIM, _by_claim)
    claims.add_handler(_enqueue_unsettled(CLAIM_FINALIZER, queue.add))
    volumes.add_handler(_enqueue_unsettled(VOLUME_FINALIZER, queue.add))
    pods.add_handler(_enqueue_claims(queue.add))

    async def is_used(claim: Object) -> bool:
        key = key_of(claim)
        if any(uses(pod, claim) for pod in pods.index.by(BY_CLAIM, key)):
            return True
        # A pod may have come that the cache does not show yet: before a claim goes, ask.
        client = context.client.for_cluster(key.cluster)
        found = await client.list(PODS, Selection(namespace=key.namespace))
        return any(uses(pod, claim) for pod in found.items)

    async def observe(key: Key) -> Observed | None:
        if not key.namespace:
            volume = volumes.index.get(key)
            if volume is None:
                return None
            bound = (volume.get("status") or {}).get("phase") == "Bound"
            return Observed(volume, VOLUMES, VOLUME_FINALIZER, bound)
        claim = claims.index.get(key)
        if claim is None:
            return None
        goes = "deletionTimestamp" in claim["metadata"]
        return Observed(claim, CLAIMS, CLAIM_FINALIZER, goes and await is_used(claim))

    reconciler = Reconciler(observe, decide, context.executor(NAME))
    return context.controller(NAME, reconciler, queue, [claims, volumes, pods])


def _by_claim(pod: Object) -> Iterable[Key]:
    names = tuple(claims_of(pod))
    if not names:
        return ()
    key = key_of(pod)
    return [Key(key.cluster, key.namespace, name) for name in names]


def _enqueue_unsettled(finalizer: str, add: Callable[[Key], None]) -> Handler:
    """Enqueue what is to go, and what has no finalizer: nothing is to be done for others."""

    def handle(_: Object | None, new: Object | None) -> None:
        if new is None:
            return
        metadata = new["metadata"]
        goes = "deletionTimestamp" in metadata
        if goes == (finalizer in (metadata.get("finalizers") or ())):
            add(key_of(new))

    return handle


def _enqueue_claims(add: Callable[[Key], None]) -> Handler:
    """Enqueue the claims of a pod that comes, goes or is shut down."""

    def handle(old: Object | None, new: Object | None) -> None:
        if old is not None and new is not None and not _is_shut_down(new):
            return
        for pod in (old, new):
            if pod is not None:
                for key in _by_claim(pod):
                    add(key)

    return handle
