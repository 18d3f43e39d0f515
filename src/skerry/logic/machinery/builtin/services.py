"""Services. Addresses and node ports are allocated by the server; here is everything else."""

from __future__ import annotations

from collections.abc import Sequence

from skerry.api.errors import FieldError
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.logic.machinery.builtin.containers import PROTOCOLS, port_reference_errors
from skerry.logic.machinery.builtin.paths import (
    address,
    address_errors,
    block_errors,
    special_errors,
)
from skerry.logic.machinery.builtin.rules import (
    Errors,
    Rules,
    RuleTable,
    absent,
    child,
    each,
    member,
    one_of,
    text_at,
    unsupported,
)
from skerry.logic.machinery.names import (
    dns1035_label,
    dns1123_label,
    dns1123_subdomain,
    port_number,
    qualified_name,
)
from skerry.logic.machinery.schema.lists import repetitions
from skerry.logic.machinery.selectors import label_errors

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_AFFINITIES = ("ClientIP", "None")
_AFFINITY_SECONDS = 10800
_MAX_AFFINITY_SECONDS = 86400
_TRAFFIC = ("Cluster", "Local")
_FAMILIES = ("IPv4", "IPv6")
_FAMILY_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
_KUBELET_PORT = 10250
_ONLY_LOAD_BALANCER = "may only be used when `type` is 'LoadBalancer'"
_NOT_EXTERNAL_NAME = "may not be set for ExternalName services"
_RANGES_ANNOTATION = "service.beta.kubernetes.io/load-balancer-source-ranges"
_ONCE_SET = "may not change once set"


def _kind(service: Object) -> str:
    return member(service, "spec", "type") or ""


def is_headless(service: Object) -> bool:
    """Tell whether the service asks for no address of its own."""
    spec = service.get("spec") or {}
    return spec.get("clusterIP") == "None" or (spec.get("clusterIPs") or [""])[0] == "None"


def _externally_accessible(spec: Object) -> bool:
    kind = spec.get("type")
    return kind in ("LoadBalancer", "NodePort") or (
        kind == "ClusterIP" and bool(spec.get("externalIPs"))
    )


def _default(service: Object) -> None:
    spec = child(service, "spec")
    _default_affinity(spec)
    if not spec.get("type"):
        spec["type"] = "ClusterIP"
    for port in spec.get("ports") or ():
        if not port.get("protocol"):
            port["protocol"] = "TCP"
        if not port.get("targetPort"):
            port["targetPort"] = port.get("port") or 0
    if _externally_accessible(spec) and not spec.get("externalTrafficPolicy"):
        spec["externalTrafficPolicy"] = "Cluster"
    if spec["type"] in ("NodePort", "LoadBalancer", "ClusterIP"):
        absent(spec, "internalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        absent(spec, "allocateLoadBalancerNodePorts", True)
        for ingress in member(service, "status", "loadBalancer", "ingress") or ():
            if ingress.get("ip"):
                absent(ingress, "ipMode", "VIP")


def _default_affinity(spec: Object) -> None:
    if not spec.get("sessionAffinity"):
        spec["sessionAffinity"] = "None"
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif member(spec, "sessionAffinityConfig", "clientIP", "timeoutSeconds") is None:
        spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": _AFFINITY_SECONDS}}


def _prepare_create(service: Object) -> None:
    service["status"] = {"loadBalancer": {}}
    spec = child(service, "spec")
    if spec.get("clusterIP") and not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    if spec.get("type") != "ExternalName":
        _set_families(service, spec)


def _set_families(service: Object, spec: Object) -> None:
    """Choose families as a single-stack cluster does: the first address's, else IPv4."""
    if not spec.get("ipFamilies"):
        first = address((spec.get("clusterIPs") or [""])[0])
        spec["ipFamilies"] = ["IPv6" if first is not None and first.version == 6 else "IPv4"]
    boundless = is_headless(service) and not spec.get("selector")
    absent(spec, "ipFamilyPolicy", "RequireDualStack" if boundless else "SingleStack")
    if boundless and spec["ipFamilyPolicy"] != "SingleStack" and len(spec["ipFamilies"]) == 1:
        spec["ipFamilies"].append("IPv6" if spec["ipFamilies"] == ["IPv4"] else "IPv4")


def _prepare_update(new: Object, old: Object) -> None:
    """Keep what was allocated where the client left it out, as ``kubectl replace`` does."""
    spec, former = child(new, "spec"), old.get("spec") or {}
    _normalize_addresses(spec, former)
    both_addressed = "ExternalName" not in (spec.get("type"), former.get("type"))
    if both_addressed and not spec.get("clusterIP") and not spec.get("clusterIPs"):
        _copy(spec, former, ("clusterIP", "clusterIPs"))
    if both_addressed:
        _copy(spec, former, ("ipFamilies", "ipFamilyPolicy"))
    exposed = ("NodePort", "LoadBalancer")
    if spec.get("type") in exposed and former.get("type") in exposed:
        _keep_node_ports(spec.get("ports") or (), former.get("ports") or ())
    if spec.get("type") == former.get("type") == "LoadBalancer":
        _copy(spec, former, ("healthCheckNodePort",))
    if spec.get("type") != former.get("type"):
        _drop_unused(spec, former)


def _normalize_addresses(spec: Object, former: Object) -> None:
    """Let a client that knows only ``clusterIP`` speak for ``clusterIPs`` too."""
    one, many = spec.get("clusterIP") or "", spec.get("clusterIPs") or []
    if one == (former.get("clusterIP") or ""):
        return
    if not one and many == (former.get("clusterIPs") or []):
        spec.pop("clusterIPs", None)
    elif one and (not many or many == (former.get("clusterIPs") or [])):
        spec["clusterIPs"] = [one, *many[1:]]


def _copy(spec: Object, former: Object, fields: Sequence[str]) -> None:
    for field in fields:
        if not spec.get(field) and former.get(field):
            spec[field] = former[field]


def _keep_node_ports(ports: Sequence[Object], former: Sequence[Object]) -> None:
    known = {(p.get("protocol"), p.get("port")): p.get("nodePort") for p in former}
    for port in ports:
        kept = known.get((port.get("protocol"), port.get("port")))
        if kept and not port.get("nodePort"):
            port["nodePort"] = kept


def _drop_unused(spec: Object, former: Object) -> None:
    """Forget what belongs to the former type and was not said anew."""
    kind = spec.get("type")
    if kind == "ExternalName":
        _drop_kept(spec, former, ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"))
    if kind in ("ClusterIP", "ExternalName"):
        before = [port.get("nodePort") for port in former.get("ports") or ()]
        if [port.get("nodePort") for port in spec.get("ports") or ()] == before:
            for port in spec.get("ports") or ():
                port.pop("nodePort", None)
    if kind != "LoadBalancer":
        fields = ("allocateLoadBalancerNodePorts", "loadBalancerClass", "healthCheckNodePort")
        _drop_kept(spec, former, fields)
    if not _externally_accessible(spec):
        _drop_kept(spec, former, ("externalTrafficPolicy",))


def _drop_kept(spec: Object, former: Object, fields: Sequence[str]) -> None:
    for field in fields:
        if spec.get(field) == former.get(field):
            spec.pop(field, None)


def _validate(service: Object) -> Errors:
    spec = service.get("spec") or {}
    errors: Errors = []
    ports = spec.get("ports") or ()
    if not ports and not is_headless(service) and _kind(service) != "ExternalName":
        errors.append(FieldError.required("spec.ports"))
    errors += _type_errors(service, spec)
    names: set[str] = set()
    for index, port in enumerate(ports):
        errors += _port_errors(port, f"spec.ports[{index}]", len(ports) > 1, names)
    if spec.get("selector"):
        errors += label_errors(spec["selector"], "spec.selector")
    errors += _affinity_errors(spec)
    errors += _address_errors(service, spec)
    for index, text in enumerate(spec.get("externalIPs") or ()):
        where = f"spec.externalIPs[{index}]"
        errors += address_errors(text, where) or special_errors(text, where)
    errors += one_of(spec.get("type"), "spec.type", _TYPES)
    errors += _repeated_port_errors(spec)
    errors += _load_balancer_errors(service, spec)
    return errors + _traffic_errors(spec)


def _type_errors(service: Object, spec: Object) -> Errors:
    kind = spec.get("type")
    if kind == "ExternalName":
        return _external_name_errors(spec)
    errors: Errors = []
    if kind == "LoadBalancer":
        for index, port in enumerate(spec.get("ports") or ()):
            if port.get("port") == _KUBELET_PORT:
                text = f"may not expose port {_KUBELET_PORT} externally since it is used by kubelet"
                errors.append(FieldError.invalid(f"spec.ports[{index}]", _KUBELET_PORT, text))
    if kind in ("LoadBalancer", "NodePort") and is_headless(service):
        text = f"may not be set to 'None' for {kind} services"
        errors.append(FieldError.invalid("spec.clusterIPs[0]", "None", text))
    return errors


def _external_name_errors(spec: Object) -> Errors:
    errors = [
        FieldError.forbidden(f"spec.{field}", _NOT_EXTERNAL_NAME)
        for field in ("clusterIPs", "ipFamilies", "ipFamilyPolicy")
        if spec.get(field)
    ]
    name = (spec.get("externalName") or "").removesuffix(".")
    if not name:
        return [*errors, FieldError.required("spec.externalName")]
    return errors + each("spec.externalName", name, dns1123_subdomain(name))


def _port_errors(port: Object, path: str, require_name: bool, names: set[str]) -> Errors:
    errors: Errors = []
    name, number = port.get("name") or "", port.get("port") or 0
    if require_name and not name:
        errors.append(FieldError.required(f"{path}.name"))
    elif name:
        errors += each(f"{path}.name", name, dns1123_label(name))
        if name in names:
            errors.append(FieldError.duplicate(f"{path}.name", name))
        names.add(name)
    errors += each(f"{path}.port", number, port_number(number))
    errors += one_of(port.get("protocol"), f"{path}.protocol", PROTOCOLS)
    errors += port_reference_errors(port.get("targetPort"), f"{path}.targetPort")
    protocol = port.get("appProtocol")
    if protocol is not None:
        errors += each(f"{path}.appProtocol", protocol, qualified_name(protocol))
    return errors


def _repeated_port_errors(spec: Object) -> Errors:
    errors: Errors = []
    nodes: set[tuple[object, object]] = set()
    ports: set[tuple[object, object]] = set()
    for index, port in enumerate(spec.get("ports") or ()):
        where, node = f"spec.ports[{index}]", port.get("nodePort")
        if node and spec.get("type") == "ClusterIP":
            text = "may not be used when `type` is 'ClusterIP'"
            errors.append(FieldError.forbidden(f"{where}.nodePort", text))
        key = (port.get("protocol"), node)
        if node and key in nodes:
            errors.append(FieldError.duplicate(f"{where}.nodePort", node))
        nodes.add(key)
        key = (port.get("protocol"), port.get("port"))
        if key in ports:
            shown = {"protocol": key[0], "port": key[1]}
            errors.append(FieldError.duplicate(where, shown))
        ports.add(key)
    return errors


def _affinity_errors(spec: Object) -> Errors:
    path = "spec.sessionAffinityConfig"
    errors = one_of(spec.get("sessionAffinity"), "spec.sessionAffinity", _AFFINITIES)
    config = spec.get("sessionAffinityConfig")
    if spec.get("sessionAffinity") == "ClientIP":
        seconds = member(config or {}, "clientIP", "timeoutSeconds")
        where = f"{path}.clientIP.timeoutSeconds"
        if seconds is None:
            errors.append(FieldError.required(where, "when session affinity type is ClientIP"))
        elif not 0 < seconds <= _MAX_AFFINITY_SECONDS:
            text = f"must be greater than 0 and less than {_MAX_AFFINITY_SECONDS}"
            errors.append(FieldError.invalid(where, seconds, text))
    elif spec.get("sessionAffinity") == "None" and config is not None:
        text = "must not be set when session affinity is None"
        errors.append(FieldError.forbidden(path, text))
    return errors


def _address_errors(service: Object, spec: Object) -> Errors:
    if spec.get("type") == "ExternalName":
        return []
    one, many = spec.get("clusterIP") or "", spec.get("clusterIPs") or []
    path = "spec.clusterIPs"
    errors: Errors = []
    if one and not many:
        errors.append(FieldError.required(path))
    elif one and many[0] != one:
        errors.append(FieldError.invalid(path, many, "first value must match `clusterIP`"))
    elif not one and many:
        text = "must be empty when `clusterIP` is not specified"
        errors.append(FieldError.invalid(path, many, text))
    errors += _family_errors(spec)
    wrong = _listed_address_errors(many, path)
    if len(many) > 2:
        text = "may only hold up to 2 values"
        errors.append(FieldError.invalid(path, many, text))
    if wrong or is_headless(service):
        return errors + wrong
    return errors + _agreement_errors(many, spec.get("ipFamilies") or (), path)


def _listed_address_errors(many: Sequence[str], path: str) -> Errors:
    errors: Errors = []
    for index, text in enumerate(many):
        if index == 0 and text == "None":
            if len(many) > 1:
                wanted = "'None' must be the first and only value"
                errors.append(FieldError.invalid(path, many, wanted))
            continue
        errors += address_errors(text, f"{path}[{index}]")
    return errors


def _family_errors(spec: Object) -> Errors:
    errors: Errors = []
    families = spec.get("ipFamilies") or ()
    repeated = repetitions(families)
    for index, family in enumerate(families):
        where = f"spec.ipFamilies[{index}]"
        if family not in _FAMILIES:
            errors.append(unsupported(where, family, _FAMILIES))
        if index in repeated:
            errors.append(FieldError.duplicate(where, family))
    policy = spec.get("ipFamilyPolicy")
    if policy is not None and policy not in _FAMILY_POLICIES:
        errors.append(unsupported("spec.ipFamilyPolicy", policy, _FAMILY_POLICIES))
    return errors


def _agreement_errors(many: Sequence[str], families: Sequence[str], path: str) -> Errors:
    errors: Errors = []
    found = [f"IPv{known.version}" for known in map(address, many) if known is not None]
    if len(many) > 1 and len(set(found)) != len(many):
        text = "may specify no more than one IP for each IP family"
        errors.append(FieldError.invalid(path, many, text))
    for index, (seen, wanted) in enumerate(zip(found, families, strict=False)):
        if seen != wanted:
            text = f"expected an {wanted} value as indicated by `ipFamilies[{index}]`"
            errors.append(FieldError.invalid(f"{path}[{index}]", many[index], text))
    return errors


def _load_balancer_errors(service: Object, spec: Object) -> Errors:
    errors: Errors = []
    balanced = spec.get("type") == "LoadBalancer"
    ranges, path = spec.get("loadBalancerSourceRanges"), "spec.LoadBalancerSourceRanges"
    annotation = (member(service, "metadata", "annotations") or {}).get(_RANGES_ANNOTATION)
    if ranges:
        errors += [
            error
            for index, block in enumerate(ranges)
            for error in block_errors(block.strip(), f"{path}[{index}]")
        ]
    elif annotation is not None:
        path = f"metadata.annotations[{_RANGES_ANNOTATION}]"
        for block in filter(None, annotation.strip().split(",")):
            errors += block_errors(block.strip(), path)
    if (ranges or annotation is not None) and not balanced:
        errors.insert(0, FieldError.forbidden(path, _ONLY_LOAD_BALANCER))
    if spec.get("allocateLoadBalancerNodePorts") is not None and not balanced:
        field = "spec.allocateLoadBalancerNodePorts"
        errors.append(FieldError.forbidden(field, _ONLY_LOAD_BALANCER))
    balancer = spec.get("loadBalancerClass")
    if balancer is not None and balanced:
        errors += each("spec.loadBalancerClass", balancer, qualified_name(balancer))
    elif balancer is not None:
        errors.append(FieldError.forbidden("spec.loadBalancerClass", _ONLY_LOAD_BALANCER))
    return errors


def _traffic_errors(spec: Object) -> Errors:
    errors: Errors = []
    external, internal = spec.get("externalTrafficPolicy"), spec.get("internalTrafficPolicy")
    if _externally_accessible(spec):
        errors += one_of(external, "spec.externalTrafficPolicy", _TRAFFIC)
    elif external:
        text = "may only be set for externally-accessible services"
        errors.append(FieldError.invalid("spec.externalTrafficPolicy", external, text))
    # The server allocates the port where one is needed; here it must only be allowed.
    check = spec.get("healthCheckNodePort")
    if check and not (spec.get("type") == "LoadBalancer" and external == "Local"):
        text = (
            "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        )
        errors.append(FieldError.invalid("spec.healthCheckNodePort", check, text))
    elif check:
        errors += each("spec.healthCheckNodePort", check, port_number(check))
    if internal is not None and internal not in _TRAFFIC:
        errors.append(unsupported("spec.internalTrafficPolicy", internal, _TRAFFIC))
    distribution = spec.get("trafficDistribution")
    if distribution is not None and distribution != "PreferClose":
        errors.append(unsupported("spec.trafficDistribution", distribution, ("PreferClose",)))
    return errors


def _validate_update(new: Object, old: Object) -> Errors:
    errors: Errors = []
    spec, former = new.get("spec") or {}, old.get("spec") or {}
    if "ExternalName" not in (_kind(new), _kind(old)):
        errors += _address_change_errors(new, old)
    if _kind(new) == _kind(old) == "LoadBalancer":
        balancer = spec.get("loadBalancerClass")
        if balancer != former.get("loadBalancerClass"):
            errors.append(FieldError.invalid("spec.loadBalancerClass", balancer, _ONCE_SET))
        port, before = spec.get("healthCheckNodePort") or 0, former.get("healthCheckNodePort") or 0
        kept = spec.get("externalTrafficPolicy") == former.get("externalTrafficPolicy") == "Local"
        if kept and port != before:
            errors.append(FieldError.forbidden("spec.healthCheckNodePort", "field is immutable"))
    return errors + _validate(new)


def _address_change_errors(new: Object, old: Object) -> Errors:
    if is_headless(new) and is_headless(old):
        return []
    path = "spec.clusterIPs[0]"
    many, before = member(new, "spec", "clusterIPs") or [], member(old, "spec", "clusterIPs") or []
    if before and not many:
        return [FieldError.invalid(path, many, "primary clusterIP can not be unset")]
    if before and many[0] != before[0]:
        return [FieldError.invalid(path, many, _ONCE_SET)]
    if len(many) == len(before) == 2 and many[1] != before[1]:
        return [FieldError.invalid("spec.clusterIPs[1]", many, _ONCE_SET)]
    policy = member(new, "spec", "ipFamilyPolicy")
    if len(before) == 2 and len(many) == 1 and policy != "SingleStack":
        text = "must be set to 'SingleStack' when releasing the secondary clusterIP"
        return [FieldError.invalid("spec.ipFamilyPolicy", policy, text)]
    return []


def ingress_point_errors(points: Sequence[Object], path: str) -> Errors:
    """Return what is wrong with the addresses a load balancer reports."""
    errors: Errors = []
    for index, point in enumerate(points):
        where = f"{path}[{index}]"
        text, host = point.get("ip"), point.get("hostname")
        if text:
            errors += address_errors(text, f"{where}.ip")
        if host:
            errors += each(f"{where}.hostname", host, dns1123_subdomain(host))
            if address(host) is not None:
                wanted = "must be a DNS name, not an IP address"
                errors.append(FieldError.invalid(f"{where}.hostname", host, wanted))
    return errors


def _validate_status(new: Object, _: Object) -> Errors:
    points = member(new, "status", "loadBalancer", "ingress") or ()
    path = "status.loadBalancer.ingress"
    if points and _kind(new) != "LoadBalancer":
        text = "may only be used when `spec.type` is 'LoadBalancer'"
        return [FieldError.forbidden(path, text)]
    return ingress_point_errors(points, path)


RULES: RuleTable = {
    GroupResource("", "services"): Rules(
        default=_default,
        prepare_create=_prepare_create,
        prepare_update=_prepare_update,
        validate_create=_validate,
        validate_update=_validate_update,
        validate_status=_validate_status,
        check_name=dns1035_label,
        counts_generation=False,
        selectable_fields={
            "spec.clusterIP": text_at("spec", "clusterIP"),
            "spec.type": text_at("spec", "type"),
        },
    ),
}
