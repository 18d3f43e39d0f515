"""Eviction: a delete that asks the pod's disruption budget first.

The budget is charged by compare-and-swap, so that two evictions that race for the last allowed
disruption cannot both have it, whichever server they go through.
"""

from __future__ import annotations

from msgspec.structs import replace

from skerry.api.errors import ApiError, BadRequest, Conflict, Forbidden, TooManyRequests
from skerry.api.keys import type_prefix
from skerry.api.objects import Object
from skerry.kit.clock import Clock
from skerry.kit.timestamps import rfc3339
from skerry.logic.machinery.selectors import Selector
from skerry.server.admission.requests import RequestJudge
from skerry.server.codec import decode, dump, encode
from skerry.server.http.message import Answer, Response
from skerry.server.preparation import prepare
from skerry.server.request.call import Call, member
from skerry.server.request.options import DeleteOptions, delete_options, write_options
from skerry.server.rest.delete import Deleter
from skerry.store import base
from skerry.store.base import Store, Write

_SUCCESS = dump(
    {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
)
_REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."
# How long a budget that its controller has not looked at yet is given.
_UNPROCESSED_SECONDS = 10
_TRIES = 20
# Beyond this the budget's controller has stopped looking.
_MAX_DISRUPTED = 2000


class EvictionHandler:
    """Deletes a pod unless a disruption budget stands against it."""

    def __init__(self, store: Store, deleter: Deleter, clock: Clock, judge: RequestJudge) -> None:
        self._store = store
        self._judge = judge
        self._deleter = deleter
        self._clock = clock

    async def handle(self, call: Call) -> Answer:
        """Answer a POST to pods/NAME/eviction."""
        request = call.request
        eviction = prepare.sent_as(request, prepare.EVICTION)
        # What is rehearsed by the request itself; an eviction may say so of its deletion, too.
        dry_run = write_options(request, "CreateOptions").dry_run
        eviction = await self._judge.changed(call, eviction, dry_run=dry_run)
        if (name := member(eviction, "metadata", "name")) and name != call.info.name:
            raise BadRequest("name in URL does not match name in Eviction object")
        options = delete_options(request, member(eviction, "deleteOptions") or {})
        await self._judge.judge(call, eviction, dry_run=dry_run)
        entry = await self._store.get(call.key().path())
        if entry is None:
            raise call.not_found()
        pod = decode(entry.value, entry.revision)
        if not _ended(pod):
            options = await self._permitted(call, pod, options)
        await self._deleter.delete_object(call, options)
        return Response(status=201, body=_SUCCESS)

    async def _permitted(self, call: Call, pod: Object, options: DeleteOptions) -> DeleteOptions:
        """Charge the pod's budget, if it has one; return the options of the delete to come."""
        for _ in range(_TRIES):
            budgets = await self._budgets(call, pod)
            if not budgets:
                return options
            if len(budgets) > 1:
                raise ApiError(
                    "This pod has more than one PodDisruptionBudget, which the eviction "
                    "subresource does not support."
                )
            key, revision, budget = budgets[0]
            if _unready_may_go(pod, budget):
                # Only as it is now: a pod that became ready meanwhile counts.
                return replace(options, resource_version=pod["metadata"]["resourceVersion"])
            _charge(budget, pod["metadata"]["name"], rfc3339(self._clock.now()))
            if options.dry_run:
                return options
            try:
                await self._store.commit([Write(key, encode(budget), expected=revision)])
            except base.Conflict:
                continue
            return options
        why = "too many evictions at once; please try again"
        raise Conflict.of("", "pods/eviction", call.info.name, why)

    async def _budgets(self, call: Call, pod: Object) -> list[tuple[str, int, Object]]:
        prefix = type_prefix("policy", "poddisruptionbudgets", call.info.cluster, call.namespace)
        found = []
        for entry in (await self._store.range(prefix)).entries:
            budget = decode(entry.value, entry.revision)
            selector = Selector.from_label_selector(member(budget, "spec", "selector"))
            if selector.matches(pod["metadata"].get("labels")):
                found.append((entry.key, entry.revision, budget))
        return found


def _ended(pod: Object) -> bool:
    """Whether the pod counts for no budget: over, not begun, or on its way out already."""
    phase = member(pod, "status", "phase")
    return phase in ("Succeeded", "Failed", "Pending") or "deletionTimestamp" in pod["metadata"]


def _unready_may_go(pod: Object, budget: Object) -> bool:
    """Whether an unready pod may be evicted without charge: it protects nobody."""
    conditions = member(pod, "status", "conditions") or []
    if any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions):
        return False
    if member(budget, "spec", "unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    desired = status.get("desiredHealthy", 0)
    return bool(desired > 0 and status.get("currentHealthy", 0) >= desired)


def _charge(budget: Object, pod: str, now: str) -> None:
    """Take one disruption from *budget*, or refuse."""
    name, status = budget["metadata"]["name"], budget.setdefault("status", {})
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        why = f"The disruption budget {name} is still being processed by the server."
        raise _refused(why, _UNPROCESSED_SECONDS)
    allowed = status.get("disruptionsAllowed", 0)
    if allowed < 0:
        why = "pdb disruptions allowed is negative"
        raise Forbidden.of("policy", "poddisruptionbudgets", name, why)
    disrupted = status.setdefault("disruptedPods", {})
    if len(disrupted) > _MAX_DISRUPTED:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise Forbidden.of("policy", "poddisruptionbudgets", name, why)
    if allowed == 0:
        why = f"The disruption budget {name} needs {status.get('desiredHealthy', 0)} healthy "
        raise _refused(why + f"pods and has {status.get('currentHealthy', 0)} currently")
    status["disruptionsAllowed"] = allowed - 1
    disrupted[pod] = now


def _refused(why: str, retry_seconds: int = 0) -> TooManyRequests:
    error = TooManyRequests(_REFUSED, retry_seconds)
    if not retry_seconds:
        # Nobody knows when: a client that got a time would wait for it over and over.
        error.details.clear()
        error.headers.clear()
    error.details["causes"] = [{"reason": "DisruptionBudget", "message": why}]
    return error
