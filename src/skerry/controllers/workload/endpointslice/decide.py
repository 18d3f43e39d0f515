"""Make slices and Endpoints say what the pods say."""

from __future__ import annotations

import copy
from typing import Any

from skerry.api.objects import Object
from skerry.controllers.workload.endpointslice.events import SERVICE_NAME
from skerry.controllers.workload.endpointslice.observe import Leftover, Observed
from skerry.controllers.workload.kinds import ENDPOINTS, SLICES
from skerry.logic.machinery.plan import NOTHING, Action, Create, Delete, Plan, Target, Update
from skerry.logic.workloads.endpoint_slices import slice_actions
from skerry.logic.workloads.owners import TargetOf, owner_reference
from skerry.logic.workloads.pods import is_finished, is_ready, is_terminating
from skerry.logic.workloads.revisions import content_hash

_MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
_CONTROLLER = "endpointslice-controller.k8s.io"
_HEADLESS = "service.kubernetes.io/headless"
# As kube-controller-manager's default; the API allows 1000.
_MAX_ENDPOINTS = 100

_Ports = tuple[tuple[str, str, int, str], ...]  # name, protocol, number, appProtocol


def decide(observed: Observed | Leftover) -> Plan:
    """Bring slices and Endpoints to what the Service's pods say."""
    if isinstance(observed, Leftover):
        old = observed.endpoints
        uid = old["metadata"]["uid"]
        return Plan([Delete(TargetOf(ENDPOINTS)(old), reason="ServiceGone", uid=uid)])
    if "deletionTimestamp" in observed.service["metadata"]:
        return NOTHING
    return Plan([*_slices(observed), *_endpoints(observed)])


def pod_ports(service: Object, pod: Object) -> _Ports:
    """Return the Service's ports as this pod has them; a named port it lacks is left out."""
    found = []
    for port in service["spec"].get("ports") or ():
        number = _target_port(port, pod)
        if number is not None:
            protocol = port.get("protocol", "TCP")
            found.append((port.get("name", ""), protocol, number, port.get("appProtocol", "")))
    return tuple(found)


def _target_port(port: Object, pod: Object) -> int | None:
    target = port.get("targetPort") or port["port"]
    if isinstance(target, int):
        return target
    protocol = port.get("protocol", "TCP")
    for container in pod["spec"]["containers"]:
        for item in container.get("ports") or ():
            if item.get("name") == target and item.get("protocol", "TCP") == protocol:
                return int(item["containerPort"])
    return None


def _reported_pods(observed: Observed) -> list[Object]:
    """Return the pods that endpoints are made for: with an address, and not over."""
    return sorted(
        (
            pod
            for pod in observed.pods
            if (pod.get("status") or {}).get("podIP") and not is_finished(pod)
        ),
        key=lambda pod: str(pod["metadata"]["name"]),
    )


# Slices.


def _endpoint(service: Object, pod: Object) -> Object:
    serving, terminating = is_ready(pod), is_terminating(pod)
    ready = service["spec"].get("publishNotReadyAddresses") or (serving and not terminating)
    found: Object = {
        "addresses": [pod["status"]["podIP"]],
        "conditions": {"ready": bool(ready), "serving": serving, "terminating": terminating},
        "targetRef": _reference(pod),
    }
    if pod["spec"].get("nodeName"):
        found["nodeName"] = pod["spec"]["nodeName"]
    spec = pod["spec"]
    if spec.get("hostname") and spec.get("subdomain") == service["metadata"]["name"]:
        found["hostname"] = spec["hostname"]
    return found


def _slices(observed: Observed) -> list[Action]:
    ours = filter(_is_ours, observed.slices)
    return slice_actions(SLICES, ours, _wanted_slices(observed))


def _is_ours(item: Object) -> bool:
    return bool((item["metadata"].get("labels") or {}).get(_MANAGED_BY) == _CONTROLLER)


def _wanted_slices(observed: Observed) -> list[Object]:
    """Return the slices: pods with equal ports share them, a hundred to each."""
    service = observed.service
    groups: dict[_Ports, list[Object]] = {}
    for pod in _reported_pods(observed):
        groups.setdefault(pod_ports(service, pod), []).append(pod)
    if not groups:
        groups = {(): []}
    found = []
    for ports, pods in sorted(groups.items()):
        for start in range(0, max(1, len(pods)), _MAX_ENDPOINTS):
            part = [_endpoint(service, pod) for pod in pods[start : start + _MAX_ENDPOINTS]]
            found.append(_slice(service, ports, part, start // _MAX_ENDPOINTS))
    return found


def _slice(service: Object, ports: _Ports, endpoints: list[Object], number: int) -> Object:
    metadata = service["metadata"]
    # By content of the ports: the same slice is found again without looking for it.
    suffix = content_hash([metadata["uid"], [list(port) for port in ports], number])[:5]
    labels = dict(metadata.get("labels") or {})
    labels |= {SERVICE_NAME: metadata["name"], _MANAGED_BY: _CONTROLLER}
    if service["spec"].get("clusterIP") == "None":
        labels[_HEADLESS] = ""
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": f"{metadata['name'][:57]}-{suffix}",
            "namespace": metadata["namespace"],
            "labels": labels,
            "ownerReferences": [owner_reference(service, "v1", "Service")],
        },
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": [_port(*port) for port in ports],
    }


def _port(name: str, protocol: str, number: int, app: str) -> Object:
    found: Object = {"name": name, "port": number, "protocol": protocol}
    if app:
        found["appProtocol"] = app
    return found


# Endpoints.


def _endpoints(observed: Observed) -> list[Action]:
    service = observed.service
    metadata = service["metadata"]
    subsets = _subsets(observed)
    labels = dict(metadata.get("labels") or {})
    if service["spec"].get("clusterIP") == "None":
        labels[_HEADLESS] = ""
    target = Target(ENDPOINTS, metadata["name"], metadata["namespace"])
    old = observed.endpoints
    if old is None:
        obj: Object = {
            "apiVersion": "v1",
            "kind": "Endpoints",
            "metadata": {
                "name": metadata["name"],
                "namespace": metadata["namespace"],
                "labels": labels,
            },
        }
        if subsets:
            obj["subsets"] = subsets
        return [Create(target, obj, reason="EndpointsChanged")]
    if (old.get("subsets") or []) == subsets and (old["metadata"].get("labels") or {}) == labels:
        return []
    wanted = copy.deepcopy(old)
    wanted["subsets"] = subsets
    wanted["metadata"]["labels"] = labels
    return [Update(target, wanted, reason="EndpointsChanged")]


def _subsets(observed: Observed) -> list[Object]:
    service = observed.service
    unready_too = bool(service["spec"].get("publishNotReadyAddresses"))
    groups: dict[_Ports, dict[str, list[Object]]] = {}
    for pod in _reported_pods(observed):
        if is_terminating(pod):
            continue
        ports = pod_ports(service, pod)
        if not ports and service["spec"].get("ports"):
            continue
        kind = "addresses" if unready_too or is_ready(pod) else "notReadyAddresses"
        groups.setdefault(ports, {}).setdefault(kind, []).append(_address(pod))
    found = []
    for ports, addresses in sorted(groups.items(), key=lambda item: item[0]):
        subset: dict[str, Any] = {
            kind: sorted(items, key=lambda item: str(item["ip"]))
            for kind, items in sorted(addresses.items())
        }
        if ports:
            subset["ports"] = [_endpoints_port(*port) for port in ports]
        found.append(subset)
    return found


def _endpoints_port(name: str, protocol: str, number: int, app: str) -> Object:
    found = _port(name, protocol, number, app)
    return found if name else {key: value for key, value in found.items() if key != "name"}


def _reference(pod: Object) -> Object:
    metadata = pod["metadata"]
    return {
        "kind": "Pod",
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
    }


def _address(pod: Object) -> Object:
    found: Object = {
        "ip": pod["status"]["podIP"],
        "targetRef": _reference(pod),
    }
    if pod["spec"].get("nodeName"):
        found["nodeName"] = pod["spec"]["nodeName"]
    return found
