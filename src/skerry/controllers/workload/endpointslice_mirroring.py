"""Shows Endpoints that people keep by hand as EndpointSlices, which is what newer readers read.

Reads Endpoints and Services. Writes EndpointSlices it labelled as its own. Only Endpoints of a
Service without a selector are mirrored: those of others come from the endpointslice controller.
Left alone are Endpoints that ask for it by label, and those that serve an election.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from skerry.api.objects import Object
from skerry.controllers.workload.events import enqueue_self
from skerry.controllers.workload.kinds import ENDPOINTS, SERVICES, SLICES
from skerry.logic.machinery.plan import Plan
from skerry.logic.workloads.endpoint_slices import slice_actions
from skerry.logic.workloads.owners import owner_reference
from skerry.logic.workloads.revisions import content_hash
from skerry.runtime.context import ControllerContext
from skerry.runtime.controller import Controller, Reconciler
from skerry.runtime.index import Key, key_of
from skerry.runtime.informer import Handler
from skerry.runtime.workqueue import WorkQueue

NAME = "endpointslicemirroring-controller"
_MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
_CONTROLLER = f"{NAME}.k8s.io"
_SERVICE_NAME = "kubernetes.io/service-name"
_SKIP = "endpointslice.kubernetes.io/skip-mirror"
_ELECTION = "control-plane.alpha.kubernetes.io/leader"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_MIRRORED = "mirrored"
# Of each subset, as kube-controller-manager's default; the API allows no more in a slice.
_MAX_ENDPOINTS = 1000
_KINDS = (("addresses", True), ("notReadyAddresses", False))

# -- observe and decide ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Observed:
    """Endpoints that are to be mirrored, or None, and the slices that mirror them so far."""

    endpoints: Object | None
    slices: tuple[Object, ...]


def is_mirrored(endpoints: Object, service: Object | None) -> bool:
    """Tell whether *endpoints* are to be shown as slices; *service* has the same name."""
    metadata = endpoints["metadata"]
    return (
        service is not None
        and not service["spec"].get("selector")
        and (metadata.get("labels") or {}).get(_SKIP) != "true"
        and _ELECTION not in (metadata.get("annotations") or {})
    )


def decide(observed: Observed) -> Plan:
    """Bring the slices to what the Endpoints say; without Endpoints there are none."""
    return Plan(slice_actions(SLICES, observed.slices, _wanted(observed.endpoints)))


def _wanted(endpoints: Object | None) -> list[Object]:
    """Return slices for each family of addresses and list of ports.

    Subsets of the same ports are shown together: a slice is called by what is in all of it.
    """
    found: dict[tuple[str, str], tuple[list[Object], list[Object]]] = {}
    for subset in (endpoints or {}).get("subsets") or ():
        ports = subset.get("ports") or []
        shown = [(address, ready) for kind, ready in _KINDS for address in subset.get(kind) or ()]
        for address, ready in shown[:_MAX_ENDPOINTS]:
            group = (_family(address["ip"]), content_hash(ports))
            found.setdefault(group, (ports, []))[1].append(_endpoint(address, ready))
    return [
        _slice(endpoints or {}, family, ports, members[first : first + _MAX_ENDPOINTS], number)
        for (family, _), (ports, members) in sorted(found.items())
        for number, first in enumerate(range(0, len(members), _MAX_ENDPOINTS))
    ]


def _family(address: str) -> str:
    return f"IPv{ipaddress.ip_address(address).version}"


def _endpoint(address: Object, ready: bool) -> Object:
    found: Object = {"addresses": [address["ip"]], "conditions": {"ready": ready}}
    kept = {name: address[name] for name in ("hostname", "nodeName") if address.get(name)}
    reference = {"targetRef": address["targetRef"]} if address.get("targetRef") else {}
    return found | kept | reference


def _slice(
    endpoints: Object, family: str, ports: list[Object], members: list[Object], number: int
) -> Object:
    """Return one slice; *number* tells those apart that only differ in their members."""
    metadata = endpoints["metadata"]
    labels = {**(metadata.get("labels") or {}), _SERVICE_NAME: metadata["name"]}
    annotations = dict(metadata.get("annotations") or {})
    annotations.pop(_LAST_APPLIED, None)
    # By what does not change: the same slice is found again without looking for it.
    suffix = content_hash([metadata["uid"], family, ports], number or None)[:5]
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": f"{metadata['name'][:57]}-{suffix}",
            "namespace": metadata["namespace"],
            "labels": {**labels, _MANAGED_BY: _CONTROLLER},
            "annotations": annotations,
            "ownerReferences": [owner_reference(endpoints, "v1", "Endpoints")],
        },
        "addressType": family,
        "endpoints": members,
        "ports": [{"name": "", **port} for port in ports],
    }


# -- controller ------------------------------------------------------------------------------


def _mirrored_by(obj: Object) -> Iterable[Key]:
    labels = obj["metadata"].get("labels") or {}
    if labels.get(_MANAGED_BY) != _CONTROLLER or not labels.get(_SERVICE_NAME):
        return ()
    place = key_of(obj)
    return (Key(place.cluster, place.namespace, labels[_SERVICE_NAME]),)


def _enqueue_mirrored(add: Callable[[Key], None]) -> Handler:
    def handle(old: Object | None, new: Object | None) -> None:
        for obj in (old, new):
            for key in _mirrored_by(obj) if obj is not None else ():
                add(key)

    return handle


def build(context: ControllerContext) -> Controller[Key, Observed]:
    """Return the controller; Endpoints, their Service and their slices have one name."""
    endpoints, services, slices = (
        context.factory.informer(each) for each in (ENDPOINTS, SERVICES, SLICES)
    )
    queue: WorkQueue[Key] = context.queue(NAME)
    slices.index.add_index(_MIRRORED, _mirrored_by)
    endpoints.add_handler(enqueue_self(queue.add))
    services.add_handler(enqueue_self(queue.add))
    slices.add_handler(_enqueue_mirrored(queue.add))

    async def observe(key: Key) -> Observed | None:
        found = endpoints.index.get(key)
        if found is not None and not is_mirrored(found, services.index.get(key)):
            found = None
        mirrors = tuple(slices.index.by(_MIRRORED, key))
        return Observed(found, mirrors) if found is not None or mirrors else None

    reconciler = Reconciler(observe, decide, context.executor(NAME))
    return context.controller(NAME, reconciler, queue, [endpoints, services, slices])
