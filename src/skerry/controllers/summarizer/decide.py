"""Write the summary that is true, take away one without a cause, and give a status back."""

from __future__ import annotations

from dataclasses import dataclass

from skerry.api.edge import EDGE_PLACEMENTS
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.controllers.summarizer.forms import summary_digest
from skerry.controllers.summarizer.observe import Observed, Returned, Wanted
from skerry.logic.fleet.summary.content import CLUSTER_SCOPED, NAMESPACED, summary_object
from skerry.logic.machinery.plan import NOTHING, Action, Create, Delete, Patch, Plan, Target, Update
from skerry.runtime.index import Key


def decide(observed: Observed) -> Plan:
    """Make the summary say what the copies do."""
    actions = _summary(observed)
    if observed.returned is not None:
        actions.append(_give_back(observed.key.cluster, observed.returned))
    return Plan(actions) if actions else NOTHING


def _summary(observed: Observed) -> list[Action]:
    existing, wanted, target = observed.existing, observed.wanted, _target(observed.key)
    if wanted is None:
        if existing is None:
            return []
        return [Delete(target, reason="CauseGone", uid=existing["metadata"]["uid"])]
    obj = _object(observed.key, wanted)
    if existing is None:
        return [Create(target, obj, reason="ObjectPlaced")]
    if existing["digest"] == summary_digest(obj) and _is_marked(existing, obj):
        return []
    metadata = existing["metadata"]
    labels = {**(metadata.get("labels") or {}), **obj["metadata"]["labels"]}
    obj["metadata"] |= {
        "labels": labels,
        "uid": metadata["uid"],
        "resourceVersion": metadata["resourceVersion"],
    }
    return [Update(target, obj, reason="ReportsChanged")]


def _is_marked(existing: Object, wanted: Object) -> bool:
    """Tell whether owner and label are ours; further labels may stay."""
    there, ours = existing["metadata"], wanted["metadata"]
    labels: dict[str, str] = there.get("labels") or {}
    owned = bool(there.get("ownerReferences") == ours["ownerReferences"])
    return owned and labels.items() >= ours["labels"].items()


def _give_back(cluster: str, returned: Returned) -> Action:
    source = returned.source
    metadata = source["metadata"]
    target = Target(returned.gvr, metadata["name"], metadata.get("namespace", ""), cluster)
    obj = {**source, "status": returned.status}
    return Update(target, obj, reason="SingletonReported", subresource="status")


def _object(key: Key, wanted: Wanted) -> Object:
    return summary_object(
        key.name, wanted.ref.name, wanted.owner_uid, wanted.subject, wanted.totals
    )


def _target(key: Key) -> Target:
    gvr = NAMESPACED if key.namespace else CLUSTER_SCOPED
    return Target(gvr, key.name, key.namespace, key.cluster)


@dataclass(frozen=True, slots=True)
class ObservedDelivery:
    """A placement, and how many of its objects without status have been delivered."""

    ref: ObjectRef
    placement: Object
    delivered: int


def decide_delivery(observed: ObservedDelivery) -> Plan:
    """Make the placement's status tell the count.

    The rest of the status is the scheduler's, and a status without it is not valid: until it has
    been written there is nothing to add to.
    """
    status = observed.placement.get("status") or {}
    if "specGeneration" not in status or status.get("deliveredObjects") == observed.delivered:
        return NOTHING
    target = Target(EDGE_PLACEMENTS, observed.ref.name, cluster=observed.ref.cluster)
    patch = {"status": {"deliveredObjects": observed.delivered}}
    return Plan(
        [
            Patch(
                target,
                patch,
                reason="DeliveriesChanged",
                subresource="status",
                retry_on_conflict=True,
                absent_is_fine=True,
            )
        ]
    )
