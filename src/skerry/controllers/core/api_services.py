"""Says of each APIService whether its server can be had.

Reads APIServices, Services and EndpointSlices, and asks the servers for what they serve. Writes the
condition ``Available``, by which requests are passed on or refused at once: a server that hangs
costs the one who asks here, and nobody else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object, labels_of
from skerry.kit.timestamps import rfc3339
from skerry.logic.machinery.aggregation import (
    AVAILABLE,
    AggregatedVersion,
    aggregated_version,
)
from skerry.logic.machinery.conditions import condition, set_conditions
from skerry.logic.machinery.plan import Plan, Target, Update
from skerry.runtime.context import ControllerContext
from skerry.runtime.controller import Controller, Reconciler
from skerry.runtime.index import Key, by_namespace, key_of
from skerry.runtime.informer import Handler, Informer
from skerry.runtime.workqueue import WorkQueue

NAME = "apiservice-availability"
API_SERVICES = GroupVersionResource("apiregistration.k8s.io", "v1", "apiservices")
SERVICES = GroupVersionResource("", "v1", "services")
SLICES = GroupVersionResource("discovery.k8s.io", "v1", "endpointslices")
_SLICE_LABEL = "kubernetes.io/service-name"
# How often a server that is thought to live is asked again, as kube-aggregator does.
PERIOD = 30.0
IN_NAMESPACE = "namespace"

# Asks a server what it serves; the text says why it could not be asked, and is empty otherwise.
Probe = Callable[[AggregatedVersion], Awaitable[str]]

# -- observe and decide ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Observed:
    """An APIService, the Service it names, that one's slices, and what a probe came to."""

    obj: Object
    version: AggregatedVersion | None = None
    service: Object | None = None
    slices: tuple[Object, ...] = ()
    failure: str = ""


def decide(observed: Observed, now: datetime) -> Plan:
    """Bring the condition up to date; a server is asked again later in any case."""
    obj = observed.obj
    status, reason, message = judged(observed)
    old = obj.get("status") or {}
    wanted = condition(AVAILABLE, status, reason, message)
    conditions = set_conditions(old.get("conditions") or (), [wanted], rfc3339(now))
    again = None if observed.version is None else PERIOD
    if conditions == (old.get("conditions") or []):
        return Plan([], requeue_after_seconds=again)
    target = Target(API_SERVICES, obj["metadata"]["name"])
    changed = {**obj, "status": {**old, "conditions": conditions}}
    update = Update(target, changed, reason, subresource="status")
    return Plan([update], requeue_after_seconds=again)


def judged(observed: Observed) -> tuple[bool, str, str]:
    """Return whether a server can be had, and why, in kube-aggregator's words."""
    version = observed.version
    if version is None:
        return True, "Local", "Local APIServices are always available"
    if (missing := obstacle(observed)) is not None:
        return False, *missing
    if observed.failure:
        return False, "FailedDiscoveryCheck", observed.failure
    return True, "Passed", "all checks passed"


def obstacle(observed: Observed) -> tuple[str, str] | None:
    """Return what keeps a server from being asked at all."""
    version = observed.version
    if version is None:
        return None
    where = f'service/{version.service} in "{version.namespace}"'
    if observed.service is None:
        return "ServiceNotFound", f"{where} is not present"
    spec: dict[str, Any] = observed.service.get("spec") or {}
    if spec.get("type") == "ExternalName":
        return None
    ports = spec.get("ports") or ()
    port = next((each for each in ports if each.get("port") == version.port), None)
    if port is None:
        return "ServicePortError", f"{where} is not listening on port {version.port}"
    if not observed.slices:
        return "EndpointsNotFound", f"cannot find endpoints for {where}"
    name = port.get("name") or ""
    if not any(_has_addresses(each, name) for each in observed.slices):
        text = f'endpoints for {where} have no addresses with port name "{name}"'
        return "MissingEndpoints", text
    return None


def _has_addresses(piece: Object, port_name: str) -> bool:
    if not any((port.get("name") or "") == port_name for port in piece.get("ports") or ()):
        return False
    return any(
        each.get("addresses") and (each.get("conditions") or {}).get("ready") is not False
        for each in piece.get("endpoints") or ()
    )


# -- controller ------------------------------------------------------------------------------


def build(context: ControllerContext, probe: Probe) -> Controller[Key, Observed]:
    """Return the controller; *probe* asks a server."""
    api_services, services, slices = (
        context.factory.informer(each) for each in (API_SERVICES, SERVICES, SLICES)
    )
    slices.index.add_index(IN_NAMESPACE, by_namespace)
    queue: WorkQueue[Key] = context.queue(NAME)
    api_services.add_handler(_enqueue_wishes(queue.add))
    services.add_handler(_enqueue_users(api_services, queue.add, lambda obj: key_of(obj).name))
    slices.add_handler(
        _enqueue_users(api_services, queue.add, lambda obj: labels_of(obj).get(_SLICE_LABEL, ""))
    )

    async def observe(key: Key) -> Observed | None:
        obj = api_services.index.get(key)
        if obj is None:
            return None
        version = aggregated_version(obj)
        if version is None:
            return Observed(obj)
        found = tuple(
            each
            for each in slices.index.by(IN_NAMESPACE, (key.cluster, version.namespace))
            if labels_of(each).get(_SLICE_LABEL) == version.service
        )
        service = services.index.get(Key(key.cluster, version.namespace, version.service))
        observed = Observed(obj, version, service, found)
        if obstacle(observed) is not None:
            return observed
        return Observed(obj, version, service, found, await probe(version))

    reconciler = Reconciler(
        observe,
        lambda observed: decide(observed, context.client.clock.now()),
        context.executor(NAME),
    )
    return context.controller(NAME, reconciler, queue, [api_services, services, slices])


def _enqueue_wishes(add: Callable[[Key], None]) -> Handler:
    """Enqueue an APIService whose spec changed; its status is written here."""

    def handle(old: Object | None, new: Object | None) -> None:
        if new is not None and (old is None or old.get("spec") != new.get("spec")):
            add(key_of(new))

    return handle


def _enqueue_users(
    api_services: Informer, add: Callable[[Key], None], name_of: Callable[[Object], str]
) -> Handler:
    """Enqueue the APIServices that name the Service an object is about."""

    def handle(old: Object | None, new: Object | None) -> None:
        obj = new or old
        if obj is None:
            return
        place = key_of(obj)
        for each in api_services.index.objects():
            version = aggregated_version(each)
            if version is not None and (version.namespace, version.service) == (
                place.namespace,
                name_of(obj),
            ):
                add(key_of(each))

    return handle
