"""Write the summary that is true, and delete one without a cause."""

from __future__ import annotations

from skerry.api.edge import CLUSTER_STATUS_SUMMARIES, STATUS_SUMMARIES
from skerry.api.objects import Object
from skerry.controllers.summarizer.observe import (
    DesiredSummary,
    Observed,
)
from skerry.controllers.summarizer.projections import summary_digest
from skerry.logic.fleet.summary.content import summary_object
from skerry.logic.fleet.tables.completeness import Verdict, verdict
from skerry.logic.machinery.plan import NOTHING, Action, Create, Delete, Plan, Target, Update
from skerry.runtime.index import Key


def decide(observed: Observed) -> Plan:
    """Make the summary say what the copies do; nothing while something has to be read first."""
    actions = _summary(observed)
    return Plan(actions) if actions else NOTHING


def _summary(observed: Observed) -> list[Action]:
    existing, target = observed.existing, _target(observed.key)
    obj = None if observed.desired is None else _object(observed.key, observed.desired)
    same = existing is not None and obj is not None and _is_same(existing, obj)
    found = verdict(obj, existing, same=same, missing=observed.missing)
    if found is Verdict.CREATE and obj is not None:
        return [Create(target, obj, reason="ObjectPlaced")]
    if found is Verdict.DELETE and existing is not None:
        return [Delete(target, reason="CauseGone", uid=existing["metadata"]["uid"])]
    if found is Verdict.UPDATE and existing is not None and obj is not None:
        return [Update(target, _merged(existing, obj), reason="ReportsChanged")]
    return []


def _is_same(existing: Object, desired: Object) -> bool:
    """Tell whether content, owner and label are ours; further labels may stay."""
    actual, ours = existing["metadata"], desired["metadata"]
    labels: dict[str, str] = actual.get("labels") or {}
    owned = bool(actual.get("ownerReferences") == ours["ownerReferences"])
    marked = owned and labels.items() >= ours["labels"].items()
    return marked and bool(existing["digest"] == summary_digest(desired))


def _merged(existing: Object, desired: Object) -> Object:
    """Return the desired summary as the next version of the existing one."""
    metadata = existing["metadata"]
    labels = {**(metadata.get("labels") or {}), **desired["metadata"]["labels"]}
    kept = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
    return {**desired, "metadata": {**desired["metadata"], "labels": labels, **kept}}


def _object(key: Key, desired: DesiredSummary) -> Object:
    return summary_object(
        key.name, desired.placement.name, desired.owner_uid, desired.subject, desired.totals
    )


def _target(key: Key) -> Target:
    gvr = STATUS_SUMMARIES if key.namespace else CLUSTER_STATUS_SUMMARIES
    return Target(gvr, key.name, key.namespace, key.cluster)
